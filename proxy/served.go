package proxy

import (
	"net/http"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

// served is one request from its arrival to its end: it owns the exchange with
// the upstream, and is what metrics and the access log are made of. All of it
// is one allocation.
type served struct {
	proxy    *Proxy
	request  *http.Request
	ask      Ask
	verdict  *Verdict
	exchange exchange // of its zero value where nothing was forwarded
	telling  telling
	stays    bool        // the exchange goes on when the caller leaves
	queued   shed.Reason // why it was answered with a job; empty where it was not
}

// release gives back what the upstream's work holds.
func (s *served) release() { s.verdict.Release() }

// answered puts our headers on an answer that is passed on, and learns from it
// which origins may read answers.
func (s *served) answered(res *http.Response) {
	v := s.verdict
	s.telling.watch(&v.Estimate.Call, res)
	if origin := first(s.request.Header["Origin"]); origin != "" {
		v.route.cors.learn(origin, res.Header)
		v.route.cors.expose(origin, res.Header)
	}
	if v.class.shadow && v.Shadow == "" && time.Now().After(v.Deadline) {
		v.Shadow = shed.Deadline
		s.proxy.admission.countShadow(v)
	}
	if !v.route.headers.on(s.request, res.Header) {
		return
	}
	v.stamp(res.Header, time.Since(s.ask.Arrived)-v.Waited)
	if v.Shadow != "" {
		res.Header[headerShadow] = []string{string(v.Shadow)}
	}
}

// finish counts a request that is over and, where asked to, logs it.
func (s *served) finish() {
	p, v := s.proxy, s.verdict
	total := time.Since(s.ask.Arrived)
	s.telling.close(&v.Estimate.Call)
	out, reason := s.became()
	series := p.admission.unrouted
	if v.route != nil {
		series = v.route.series
	}
	series.count(v, out, reason)
	if v.class != nil {
		t := series.times(v.Estimate.Class)
		t.admission.Observe(v.Waited.Seconds())
		t.total.Observe(total.Seconds())
		if out == outcomeAnswered {
			t.upstream.Observe(s.exchange.waited.Seconds())
			if s.exchange.status < http.StatusBadRequest && s.telling.answer == classify.AnswerGood {
				series.compare(v.Estimate.Op, v.Estimate.Seconds, s.exchange.waited)
			}
		}
	}
	if p.accessLog.Load() {
		p.logAccess(s, out, reason, total)
	}
}

// became says what became of the request, and why.
func (s *served) became() (outcome, shed.Reason) {
	switch ref := s.verdict.Refusal; {
	case s.queued != "":
		return outcomeQueued, s.queued
	case ref == nil && s.stays && s.exchange.fault == faultNone && s.request.Context().Err() != nil:
		return outcomeGone, callerGone
	case ref == nil:
		if s.exchange.fault == faultNone && s.telling.answer == classify.AnswerFault {
			return outcomeFailed, errorInside
		}
		return s.exchange.fault.outcome(), s.exchange.fault.reason()
	case ref.Reason == callerGone:
		return outcomeGone, ref.Reason
	default:
		return outcomeShed, ref.Reason
	}
}
