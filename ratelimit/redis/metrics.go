package redis

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/ratelimit"
)

// outcome is what became of a call to Redis: a metric label.
type outcome string

const (
	outcomeOK      outcome = "ok"
	outcomeTimeout outcome = "timeout" // no answer in the call's time
	outcomeError   outcome = "error"   // no connection, or an answer that is an error
	outcomeBusy    outcome = "busy"    // its time passed while others were asking
	outcomeGone    outcome = "gone"    // the caller left
	outcomeDropped outcome = "dropped" // a refund that was not made
)

// What is called.
const (
	callDraw   = "draw"   // one bucket of a request
	callAdopt  = "adopt"  // a bucket goes over to a changed limit
	callRefund = "refund" // one bucket is given back
	callTell   = "tell"   // one bucket after an outage
	callBeat   = "beat"   // the heartbeat, and the probe while Redis is down
)

type metrics struct {
	up        prometheus.Gauge
	replicas  prometheus.Gauge
	openings  prometheus.Counter
	calls     *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	fallbacks *prometheus.CounterVec

	drawOK      prometheus.Counter // calls draw ok, looked up once
	drawSeconds prometheus.Observer
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		up: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "geoproxy_redis_up", Help: "1 while Redis decides on rates, 0 while it does not answer and redis_down does.",
		}),
		replicas: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "geoproxy_redis_replicas", Help: "Living replicas, as last counted in Redis: what a limit is divided by while Redis is down.",
		}),
		openings: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "geoproxy_redis_breaker_openings_total", Help: "How often Redis was found down or without its memory.",
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "geoproxy_redis_calls_total",
			Help: "Calls to Redis. call: draw, adopt, refund, tell, beat; outcome: ok, timeout, error, busy, gone, dropped.",
		}, []string{"call", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "geoproxy_redis_call_seconds", Help: "Time of a call to Redis, waiting for its turn included. call: draw, beat.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1},
		}, []string{"call"}),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "geoproxy_redis_fallback_decisions_total",
			Help: "Requests that redis_down decided on. policy: local, allow, deny; decision: admitted, refused.",
		}, []string{"policy", "decision"}),
	}
	m.up.Set(1)
	m.replicas.Set(1)
	m.drawOK = m.calls.WithLabelValues(callDraw, string(outcomeOK))
	m.drawSeconds = m.seconds.WithLabelValues(callDraw)
	reg.MustRegister(m.up, m.replicas, m.openings, m.calls, m.seconds, m.fallbacks)
	return m
}

func (m *metrics) called(call string, out outcome, n int) {
	m.calls.WithLabelValues(call, string(out)).Add(float64(n))
}

func (m *metrics) fellBack(policy ratelimit.Outage, admitted bool) {
	decision := "refused"
	if admitted {
		decision = "admitted"
	}
	m.fallbacks.WithLabelValues(policy.String(), decision).Inc()
}
