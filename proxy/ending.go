package proxy

import (
	"net/http"
	"time"

	"github.com/geoproxy/geoproxy/shed"
)

// ending is what is known of a request when it is over: what metrics and the
// access log are made of.
type ending struct {
	ask      *Ask
	verdict  *Verdict
	exchange *exchange // nil where nothing was forwarded
}

// finish counts a request that is over and, where asked to, logs it.
func (p *Proxy) finish(e *ending) {
	v := e.verdict
	total := time.Since(e.ask.Arrived)
	out, reason := e.became()
	series := p.admission.unrouted
	if v.route != nil {
		series = v.route.series
	}
	series.count(v, out, reason)
	if v.class != nil {
		t := series.times(v.Estimate.Class)
		t.admission.Observe(v.Waited.Seconds())
		t.total.Observe(total.Seconds())
		if x := e.exchange; x != nil && out == outcomeAnswered {
			t.upstream.Observe(x.waited.Seconds())
			if x.status < http.StatusBadRequest {
				series.compare(v.Estimate.Op, v.Estimate.Seconds, x.waited)
			}
		}
	}
	if p.accessLog.Load() {
		p.logAccess(e, out, reason, total)
	}
}

// became says what became of the request, and why.
func (e *ending) became() (outcome, shed.Reason) {
	switch ref := e.verdict.Refusal; {
	case ref == nil:
		return e.exchange.fault.outcome(), e.exchange.fault.reason()
	case ref.Reason == callerGone:
		return outcomeGone, ref.Reason
	default:
		return outcomeShed, ref.Reason
	}
}
