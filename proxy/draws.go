package proxy

import (
	"context"
	"time"

	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// reserve draws from every bucket that counts the request and waits until it
// is due. It gives what was drawn, to be refunded where it is not used, and
// whether the request was refused. The wait ends by latest, or with ctx.
func (a *Admission) reserve(ctx context.Context, v *Verdict, latest time.Time) ([]ratelimit.Draw, bool) {
	draws, from := v.draws(v.drawnArray[:0], v.drawnFromArray[:0], enforced)
	v.drawnFrom = from
	if len(draws) == 0 {
		return nil, false
	}
	grant, err := a.buckets.Reserve(ctx, draws, max(0, time.Until(latest)))
	if err != nil {
		if ctx.Err() != nil {
			v.gone(ctx)
		} else {
			v.refuse(shed.Dependency, constantWait, "")
		}
		return nil, true
	}
	v.grant, v.decided = grant, v.drawnFrom[grant.Draw]
	if !grant.OK {
		v.noToken(draws[grant.Draw])
		return nil, true
	}
	if grant.Wait > 0 && !sleep(ctx, grant.Wait) {
		a.buckets.Refund(draws)
		v.gone(ctx)
		return nil, true
	}
	return draws, false
}

// noToken refuses a request whose cost does not fit a bucket in time, or ever.
func (v *Verdict) noToken(d ratelimit.Draw) {
	limit := v.limitOf(d)
	if v.grant.Never {
		v.refuse(shed.NeverFits, 0, "").with(limit)
		return
	}
	wait := 0 // Retry-After is absent where waiting takes longer than it may say
	if v.grant.Wait <= longestRetry {
		wait = wholeSecondsUp(v.grant.Wait)
	}
	v.refuse(shed.Rate, wait, "").with(limit)
}

// limitOf is the limit of the policy that decided, and what d asks of it.
func (v *Verdict) limitOf(d ratelimit.Draw) shed.Limit {
	return shed.Limit{
		Name: v.decided.Name, Unit: v.decided.Unit.String(),
		Value: float64(d.Limit.Burst) / 1000, Yours: float64(d.Cost) / 1000,
	}
}

// Which policies to draw.
const (
	enforced = false
	inShadow = true
)

// draws lists what the request draws from the buckets of its route's policies,
// and from whose: of those that are enforced, or of those that decide in shadow. A claimed
// tenant draws from its address's bucket as well, so that inventing tenants
// gains nothing.
func (v *Verdict) draws(into []ratelimit.Draw, from []*ratelimit.Policy, shadow bool) ([]ratelimit.Draw, []*ratelimit.Policy) {
	for _, p := range v.route.policies {
		if (p.Shadow || v.class.shadow) != shadow || !p.Matches(&v.Estimate, v.Tenant.Name, v.Tenant.Class) {
			continue
		}
		limit := p.LimitFor(v.Tenant.Factor)
		cost := p.Cost(&v.Estimate)
		add := func(tenant string) {
			key := p.Key(tenant, v.Tenant.Address)
			if shadow {
				key.Policy = shadowGates + key.Policy
			}
			into = append(into, ratelimit.Draw{Key: key, Limit: limit, Cost: cost, Outage: v.route.outage})
			from = append(from, p)
		}
		add(v.Tenant.ID)
		if p.PerTenant && v.Tenant.countsAddress() {
			add(v.Tenant.Address)
		}
	}
	return into, from
}

// shadow decides without waiting, on buckets and seats of its own, what the
// request would have been refused for. A would-be admitted one takes its
// tokens and keeps its seat there until its slot ends; a would-be refused one
// takes nothing.
func (a *Admission) shadow(ctx context.Context, v *Verdict, want shed.Want) {
	if !v.class.shadow && !v.route.shadowed {
		return
	}
	if v.Shadow = a.wouldRefuse(ctx, v, want); v.Shadow != "" {
		a.countShadow(v)
	}
}

func (a *Admission) countShadow(v *Verdict) {
	a.metrics.shadow.WithLabelValues(v.route.name, v.Estimate.Class.String(), string(v.Shadow)).Inc()
}

func (a *Admission) wouldRefuse(ctx context.Context, v *Verdict, want shed.Want) shed.Reason {
	if v.class.shadow && v.Mode == ModeRefuse {
		return shed.OverBudget
	}
	draws, _ := v.draws(nil, nil, inShadow)
	if len(draws) > 0 {
		grant, err := a.buckets.Reserve(ctx, draws, v.class.admission)
		switch {
		case err != nil: // it could not be decided
			draws = nil
		case grant.Never:
			return shed.NeverFits
		case !grant.OK:
			return shed.Rate
		}
	}
	if gate := v.route.shadowGate; gate != nil && (v.class.shadow || v.route.onlyShadow) {
		slot, ok := gate.TryEnter(want)
		if !ok {
			a.buckets.Refund(draws)
			return shed.Concurrency
		}
		v.shadow = slot
	}
	return ""
}

// sleep waits for d and reports whether it did so to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
