package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// Ask is a request as a front end hands it over.
type Ask struct {
	classify.Request
	// Peer is the address of whoever is connected.
	Peer netip.Addr
	// TLS is the connection's state; nil where it is not encrypted.
	TLS *tls.ConnectionState
	// Arrived is when the request's header had been read: the clock of
	// admission and of every deadline starts there.
	Arrived time.Time
	// ReadBody reads as much of the body as its price depends on: at most max
	// bytes, for at most within. Nil where Body holds all that can be seen.
	ReadBody func(max int64, within time.Duration) classify.Body

	// tenant is whom the request was found to be of before; nil to find out.
	tenant *Tenant
}

// Admission decides on requests, for every front end.
type Admission struct {
	buckets  ratelimit.Buckets
	metrics  *metrics
	unrouted *routeSeries // of requests that no route matched
	state    atomic.Pointer[compiled]
	jobs     bool // there is a store of jobs
}

// errDraining is the cause with which waiting requests are cancelled when the
// process stops.
var errDraining = errors.New("geoproxy is stopping")

// Decide decides on a request and, where it admits it, holds what the
// upstream's work needs. It may wait: for the body as long as classify.wait,
// for tokens and seats together as long as the class's admission, counted from
// the request's arrival. When ctx ends it gives up; nothing is held then.
func (a *Admission) Decide(ctx context.Context, ask *Ask) *Verdict {
	c := a.state.Load()
	v := &Verdict{Mode: ModeInline, config: c}
	a.decide(ctx, c, v, ask)
	v.Waited = time.Since(ask.Arrived)
	return v
}

func (a *Admission) decide(ctx context.Context, c *compiled, v *Verdict, ask *Ask) {
	a.assess(c, v, ask)
	if !v.Admitted() || v.Exempt || v.Mode == ModeQueued {
		return // a job takes tokens and seats when it runs
	}
	want := v.want()
	if !v.class.shadow {
		a.enforce(ctx, v, want, ask.Arrived)
	}
	// What decides in shadow takes its own of what goes on, and lets everything
	// through.
	if v.Admitted() {
		a.shadow(ctx, v, want)
	}
}

// enforce reserves tokens, then takes seats, under one deadline.
func (a *Admission) enforce(ctx context.Context, v *Verdict, want shed.Want, arrived time.Time) {
	latest := arrived.Add(v.class.admission)
	if v.Deadline.Before(latest) {
		latest = v.Deadline
	}
	draws, refused := a.reserve(ctx, v, latest)
	if refused || v.route.gate == nil {
		return
	}
	slot, err := v.route.gate.Enter(ctx, want, latest)
	if err != nil {
		a.buckets.Refund(draws)
		v.noSeat(ctx)
		return
	}
	v.slot = slot
}

// assess identifies, routes, prices and classes a request and chooses its
// mode: all that needs no token and no seat.
func (a *Admission) assess(c *compiled, v *Verdict, ask *Ask) {
	if ask.Method == http.MethodConnect {
		v.refuse(shed.BadRequest, 0, "nothing can price what goes through a tunnel: CONNECT is not served")
		return
	}
	// Identify.
	if ask.tenant != nil {
		v.Tenant = *ask.tenant
	} else {
		who := caller{Header: ask.Header, Query: ask.Query, Peer: ask.Peer, TLS: ask.TLS}
		v.Tenant = c.tenants.identify(&who)
	}

	// Route.
	r, err := c.routes.find(ask.Host, ask.Path)
	switch {
	case err != nil:
		v.refuse(shed.BadRequest, 0, err.Error())
		return
	case r == nil:
		v.refuse(shed.NoRoute, 0, "no route matches this host and path")
		return
	}
	v.route = r
	if classify.TooLong(ask.Query) {
		v.refuseAs(http.StatusRequestURITooLong, shed.BadRequest, 0, "the query has more than 256 keys or 64 KiB")
		return
	}
	v.Exempt = isPreflight(&ask.Request) || r.exempts(ask.Path)
	tooLarge := r.config.MaxBody > 0 && ask.Body.Length > r.config.MaxBody

	// Estimate. Nothing before it takes time but reading the body.
	passed := time.Duration(0)
	if ask.ReadBody != nil && !v.Exempt && !tooLarge && r.classifier.NeedsBody(&ask.Request) {
		ask.Body = ask.ReadBody(c.body.Bytes, c.body.Wait)
		passed = time.Since(ask.Arrived)
	}
	v.Estimate = r.classifier.Estimate(&ask.Request)
	if v.Estimate.Forbidden != "" {
		v.refuse(shed.BadRequest, 0, v.Estimate.Forbidden)
		return
	}

	// Class, and the time it leaves.
	v.class = r.classes[v.Estimate.Class]
	v.steer = readSteer(ask.Header)
	within := v.class.deadlineFor(&v.Estimate)
	within = sooner(within, v.steer.within)
	within = sooner(within, c.frontTimeout)
	v.Deadline = ask.Arrived.Add(within)
	if tooLarge {
		limit := shed.Limit{Name: "max_body", Value: float64(r.config.MaxBody), Unit: "byte", Yours: float64(ask.Body.Length)}
		v.refuseAs(http.StatusRequestEntityTooLarge, shed.BadRequest, 0, "").with(limit)
		return
	}
	if v.Exempt {
		return
	}

	// Mode. Where no job is possible, what would be queued runs inline or is
	// refused, by its class.
	v.modeIn = modeInput{
		seconds: v.Estimate.Seconds, low: v.Estimate.Low, remaining: within - passed,
		class: v.class, interactive: r.interactive && !v.steer.batch, asked: v.steer.async && v.steer.wait == 0,
		possible: a.jobs && v.jobPossible(ask), onRequest: a.jobs && v.jobOnRequest(ask),
	}
	v.mode = chooseMode(v.modeIn)
	v.Mode = v.mode.mode
	if v.Mode == ModeRefuse && !v.class.shadow {
		limit := shed.Limit{Name: "inline", Value: v.ceiling(within), Unit: "s", Yours: v.Estimate.Seconds}
		v.refuse(shed.OverBudget, 0, "").with(limit)
		v.Refusal.Job = v.modeIn.onRequest
	}
}

// want is what the request takes of its gate.
func (v *Verdict) want() shed.Want {
	batch := v.mode.batch || v.steer.batch || v.Estimate.Class == classify.Download
	return shed.Want{Class: v.Estimate.Class, Batch: batch, Seconds: v.Estimate.Seconds}
}

// noSeat refuses a request that got no seat.
func (v *Verdict) noSeat(ctx context.Context) *Verdict {
	if ctx.Err() != nil {
		return v.gone(ctx)
	}
	// What a waiting request is told is a constant of the gate, not the state
	// of the line: the same refusal has the same bytes.
	wait := wholeSecondsUp(v.class.admission)
	return v.refuse(shed.Concurrency, wait, "")
}

// gone ends the verdict of a request whose context ended while it waited: the
// caller left, or the process is stopping.
func (v *Verdict) gone(ctx context.Context) *Verdict {
	if errors.Is(context.Cause(ctx), errDraining) {
		return v.refuse(shed.Draining, constantWait, "")
	}
	return v.refuseAs(statusCallerGone, callerGone, 0, "")
}

const (
	// constantWait is what a refused caller is told to wait, in seconds, for
	// reasons whose end nobody can foresee.
	constantWait = 5
	// statusCallerGone is nginx's status for a caller that left, in logs and
	// metrics only.
	statusCallerGone = 499
	callerGone       = shed.Reason("gone")
)

// refuse makes the verdict a refusal with the reason's status.
func (v *Verdict) refuse(reason shed.Reason, wait int, detail string) *Verdict {
	return v.refuseAs(reason.Status(), reason, wait, detail)
}

func (v *Verdict) refuseAs(status int, reason shed.Reason, wait int, detail string) *Verdict {
	v.Refusal = v.refusal(status, reason, wait, detail)
	return v
}

// refusal describes a refusal of this request: status is the wire contract's,
// which the route may map to another.
func (v *Verdict) refusal(status int, reason shed.Reason, wait int, detail string) *shed.Refusal {
	ref := &shed.Refusal{
		Reason: reason, Status: status, Wait: wait, Detail: detail,
		Family: v.Estimate.Family, Op: v.Estimate.Op, Class: v.Estimate.Class,
		Native: v.Estimate.Native, Dialect: v.Estimate.Dialect, Format: v.Estimate.Format,
	}
	if v.route == nil {
		return ref
	}
	ref.Status = v.route.config.Shed.StatusFor(reason, v.Estimate.Class, v.Estimate.Family, status)
	ref.Seconds, ref.Basis = v.route.disclose.of(&v.Estimate)
	ref.Low = v.Estimate.Low
	return ref
}

// with adds the limit that was passed.
func (v *Verdict) with(limit shed.Limit) { v.Refusal.Limit = limit }

// ceiling is the limit that was passed by a request too big to wait for. It is
// the whole of the time that the request had, not what was left of it: the
// same refusal has the same bytes.
func (v *Verdict) ceiling(within time.Duration) float64 {
	if v.mode.why == whyCeiling {
		return v.class.alwaysQueue
	}
	return math.Min(v.class.alwaysQueue, within.Seconds())
}

// longestRetry is the most that Retry-After says.
const longestRetry = time.Hour

func wholeSecondsUp(d time.Duration) int {
	return int(min(max(1, math.Ceil(d.Seconds())), longestRetry.Seconds()))
}
