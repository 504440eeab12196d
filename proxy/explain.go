package proxy

import (
	"fmt"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/ratelimit"
)

// Explanation is what would happen to a request, and why. Nothing was run,
// drawn or held for it.
type Explanation struct {
	Route      string            `json:"route"`
	Family     string            `json:"family"`
	Op         string            `json:"op"`
	Class      string            `json:"class"`
	Collection string            `json:"collection,omitempty"`
	Layer      string            `json:"layer,omitempty"`
	Format     string            `json:"format,omitempty"`
	Features   float64           `json:"features,omitempty"`
	Vertices   float64           `json:"vertices,omitempty"`
	Cells      float64           `json:"cells,omitempty"`
	Bytes      float64           `json:"bytes,omitempty"`
	Seconds    float64           `json:"seconds"`
	Confidence string            `json:"confidence"`
	Basis      string            `json:"basis"`
	Mode       Mode              `json:"mode"`
	Reason     string            `json:"reason"`
	WithJob    string            `json:"with_a_job,omitempty"`
	Batch      bool              `json:"batch,omitempty"`
	Exempt     bool              `json:"exempt,omitempty"`
	Admission  string            `json:"admission,omitempty"`
	Deadline   string            `json:"deadline,omitempty"`
	Shadow     bool              `json:"shadow,omitempty"`
	Gate       *ExplainedGate    `json:"gate,omitempty"`
	Policies   []ExplainedPolicy `json:"policies,omitempty"`
	Refused    *ExplainedRefusal `json:"refused,omitempty"`
}

// ExplainedGate is the gate a request would enter.
type ExplainedGate struct {
	Name    string `json:"name"`
	Seats   int    `json:"seats"`
	Held    int    `json:"held"`
	Waiting int    `json:"waiting"`
	Takes   int    `json:"takes"`
	Shadow  bool   `json:"shadow,omitempty"`
}

// ExplainedPolicy is a rate limit a request would draw from.
type ExplainedPolicy struct {
	Name   string  `json:"name"`
	Per    string  `json:"per"`
	Unit   string  `json:"unit"`
	Cost   float64 `json:"cost"`
	Burst  float64 `json:"burst"`
	Rate   string  `json:"rate"`
	Never  bool    `json:"never_fits,omitempty"`
	Shadow bool    `json:"shadow,omitempty"`
}

// ExplainedRefusal is why a request would be refused whatever the load.
type ExplainedRefusal struct {
	Status int    `json:"status"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// Explain says what Decide would do with a request. It runs, draws and holds
// nothing, and waits for nothing but ask.ReadBody.
func (a *Admission) Explain(ask *Ask) Explanation {
	if ask.Arrived.IsZero() {
		ask.Arrived = time.Now()
	}
	c := a.state.Load()
	v := &Verdict{Mode: ModeInline, config: c}
	a.assess(c, v, ask)
	e := Explanation{Route: v.routeName(), Mode: v.Mode, Exempt: v.Exempt}
	if v.Refusal != nil {
		e.Refused = &ExplainedRefusal{v.Refusal.Status, string(v.Refusal.Reason), v.Refusal.Detail}
	}
	if v.class == nil {
		return e
	}
	est := &v.Estimate
	e.Family, e.Op, e.Class = est.Family, est.Op, est.Class.String()
	e.Collection, e.Layer, e.Format = est.Collection, est.Layer, est.Format
	e.Features, e.Vertices, e.Cells, e.Bytes = est.Features, est.Vertices, est.Cells, est.Bytes
	e.Seconds, e.Basis, e.Confidence = est.Seconds, est.Basis, "normal"
	if est.Low {
		e.Confidence = "low"
	}
	e.Reason, e.Batch = v.ModeReason(), v.mode.batch
	e.Admission, e.Deadline = v.class.admission.String(), v.Deadline.Sub(ask.Arrived).Round(time.Millisecond).String()
	e.Shadow = v.class.shadow
	if v.Exempt {
		return e
	}
	possible := v.modeIn
	possible.possible = possible.onRequest
	if would := chooseMode(possible); would.mode == ModeQueued && v.Mode != ModeQueued {
		e.WithJob = "queued: " + would.words(possible)
	}
	e.Gate = v.explainGate()
	e.Policies = v.explainPolicies()
	return e
}

func (v *Verdict) explainGate() *ExplainedGate {
	gate := v.route.gate
	if gate == nil {
		gate = v.route.shadowGate
	}
	if gate == nil {
		return nil
	}
	s := gate.Stats()
	return &ExplainedGate{
		Name: gate.Name(), Seats: s.Seats, Held: s.Held, Waiting: s.Waiting,
		Takes: gate.SeatsFor(v.want()), Shadow: v.route.gate == nil || v.class.shadow,
	}
}

func (v *Verdict) explainPolicies() []ExplainedPolicy {
	var list []ExplainedPolicy
	for _, p := range v.route.policies {
		if !p.Matches(&v.Estimate, v.Tenant.Name, v.Tenant.Class) {
			continue
		}
		limit, cost := p.LimitFor(v.Tenant.Factor), p.Cost(&v.Estimate)
		list = append(list, ExplainedPolicy{
			Name: p.Name, Per: per(p), Unit: p.Unit.String(), Cost: units(cost), Burst: units(limit.Burst),
			Rate: fmt.Sprintf("%g every %s", units(limit.Tokens), limit.Every), Never: cost > limit.Burst,
			Shadow: p.Shadow || v.class.shadow,
		})
	}
	return list
}

// per says in words whose bucket a policy draws from.
func per(p *ratelimit.Policy) string {
	switch {
	case p.PerTenant && p.PerAddress:
		return "tenant and address"
	case p.PerTenant:
		return "tenant"
	case p.PerAddress:
		return "address"
	default:
		return "route"
	}
}

func units(m ratelimit.Milli) float64 { return float64(m) / 1000 }

// String writes an explanation for a person.
func (e Explanation) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	if e.Route != "" {
		line("route", "%s", e.Route)
	}
	if e.Refused != nil {
		line("refused", "%d %s %s", e.Refused.Status, e.Refused.Reason, e.Refused.Detail)
	}
	if e.Class == "" {
		return b.String()
	}
	line("request", "%s %s, class %s", e.Family, e.Op, e.Class)
	line("inputs", "features %.0f, vertices %.0f, cells %.0f, bytes %.0f", e.Features, e.Vertices, e.Cells, e.Bytes)
	line("estimate", "%.3f s, confidence %s", e.Seconds, e.Confidence)
	line("basis", "%s", e.Basis)
	line("mode", "%s: %s", e.Mode, e.Reason)
	if e.WithJob != "" {
		line("with a job", "%s", e.WithJob)
	}
	line("admission", "waits at most %s; answers by %s", e.Admission, e.Deadline)
	if e.Gate != nil {
		line("gate", "%s: takes %d of %d seats (%d held, %d waiting)%s", e.Gate.Name, e.Gate.Takes, e.Gate.Seats, e.Gate.Held, e.Gate.Waiting, inShadowWords(e.Gate.Shadow))
	}
	for _, p := range e.Policies {
		never := ""
		if p.Never {
			never = "; never fits"
		}
		line("rate", "%s, per %s: costs %g of %g %s, %s%s%s", p.Name, p.Per, p.Cost, p.Burst, p.Unit, p.Rate, never, inShadowWords(p.Shadow))
	}
	return b.String()
}

func inShadowWords(shadow bool) string {
	if shadow {
		return ", in shadow"
	}
	return ""
}
