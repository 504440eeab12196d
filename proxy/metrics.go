package proxy

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

// outcome is what became of a request: a metric label, from a closed set.
type outcome string

const (
	outcomeAnswered outcome = "answered" // the upstream's answer was passed on, whatever its status
	outcomeQueued   outcome = "queued"   // answered with a job, an overrun included
	outcomeShed     outcome = "shed"     // refused without touching the upstream
	outcomeOverran  outcome = "overran"  // no header by the deadline
	outcomeFailed   outcome = "failed"   // the upstream could not be reached or broke off, or told of an error under a status of success
	outcomeGone     outcome = "gone"     // the caller left
)

// metrics are what the proxy counts. Label sets are closed: routes, families,
// operations and reasons are known to the config or the code, never taken from
// a request.
type metrics struct {
	requests  *prometheus.CounterVec
	admission *prometheus.HistogramVec
	upstream  *prometheus.HistogramVec
	total     *prometheus.HistogramVec
	estimate  *prometheus.HistogramVec
	shadow    *prometheus.CounterVec
	silent    *prometheus.CounterVec
	gates     *gateCollector
}

// secondsBuckets span what geoproxy adds (well under a millisecond) to the
// longest deadline.
var secondsBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics(reg prometheus.Registerer, s *streams) *metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "geoproxy_requests_total",
			Help: "Requests by what they asked for and what became of them. outcome: answered, queued, shed, overran, failed, gone; " +
				"reason: that of Geoproxy-Reason, empty where answered, error-inside where an answer of success tells of an error; mode: inline, queued, refuse.",
		}, []string{"route", "family", "op", "class", "mode", "outcome", "reason"}),
		admission: histogram("geoproxy_admission_seconds", "Time from a request's header to the decision.", secondsBuckets, "route", "class"),
		upstream:  histogram("geoproxy_upstream_seconds", "Time spent waiting for upstream bytes, of answered requests.", secondsBuckets, "route", "class"),
		total:     histogram("geoproxy_request_seconds", "Time from a request's header to the end of its answer.", secondsBuckets, "route", "class"),
		estimate: histogram("geoproxy_estimate_ratio", "Estimated over observed upstream seconds, of answers below 400 that tell of no error.",
			[]float64{.05, .1, .25, .5, .67, .8, 1, 1.25, 1.5, 2, 4, 10, 20}, "route", "op"),
		shadow: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "geoproxy_shadow_refusals_total",
			Help: "Requests that went on although what decides in shadow would have refused them.",
		}, []string{"route", "class", "reason"}),
		silent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "geoproxy_silent_refusals_total",
			Help: "Refusals answered with a 2xx status (shed.silent).",
		}, []string{"route", "reason"}),
		gates: &gateCollector{},
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "geoproxy_streams", Help: "Upgraded connections, event streams and gRPC calls that are open and hold no seat.",
	}, func() float64 { return float64(s.open.Load()) })
	buffered := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "geoproxy_response_buffer_bytes", Help: "Bytes set aside for answers that are read ahead of slow callers.",
	}, func() float64 { return float64(s.buffered.Load()) })
	reg.MustRegister(m.requests, m.admission, m.upstream, m.total, m.estimate, m.shadow, m.silent, m.gates, open, buffered)
	return m
}

// routeSeries are a route's time series, each looked up once and kept: a
// look-up by label values costs more than all of a decision's arithmetic.
type routeSeries struct {
	metrics *metrics
	route   string

	mu     sync.Mutex // serialises growth of known
	known  atomic.Pointer[map[seriesKey]prometheus.Counter]
	timing [32]atomic.Pointer[classSeries] // by class
	ratios atomic.Pointer[map[string]prometheus.Observer]
}

type seriesKey struct {
	family, op string
	class      classify.Class
	mode       Mode
	outcome    outcome
	reason     shed.Reason
}

type classSeries struct{ admission, upstream, total prometheus.Observer }

func newRouteSeries(m *metrics, route string) *routeSeries {
	s := &routeSeries{metrics: m, route: route}
	s.known.Store(&map[seriesKey]prometheus.Counter{})
	s.ratios.Store(&map[string]prometheus.Observer{})
	return s
}

// opLabel is an operation's name without what follows a ':', which a caller
// chooses ("process:buffer").
func opLabel(op string) string {
	name, _, _ := strings.Cut(op, ":")
	return name
}

func (s *routeSeries) count(v *Verdict, out outcome, reason shed.Reason) {
	key := seriesKey{v.Estimate.Family, opLabel(v.Estimate.Op), v.Estimate.Class, v.Mode, out, reason}
	if c, ok := (*s.known.Load())[key]; ok {
		c.Inc()
		return
	}
	class := ""
	if key.class != 0 {
		class = key.class.String()
	}
	c := s.metrics.requests.WithLabelValues(s.route, key.family, key.op, class, string(key.mode), string(out), string(reason))
	s.mu.Lock()
	defer s.mu.Unlock()
	grown := maps.Clone(*s.known.Load())
	grown[key] = c
	s.known.Store(&grown)
	c.Inc()
}

func (s *routeSeries) times(class classify.Class) *classSeries {
	if t := s.timing[class].Load(); t != nil {
		return t
	}
	t := &classSeries{
		admission: s.metrics.admission.WithLabelValues(s.route, class.String()),
		upstream:  s.metrics.upstream.WithLabelValues(s.route, class.String()),
		total:     s.metrics.total.WithLabelValues(s.route, class.String()),
	}
	s.timing[class].Store(t)
	return t
}

// compare records how an estimate stood against what was observed.
func (s *routeSeries) compare(op string, estimated float64, observed time.Duration) {
	if observed <= 0 {
		return
	}
	op = opLabel(op)
	o, ok := (*s.ratios.Load())[op]
	if !ok {
		o = s.metrics.estimate.WithLabelValues(s.route, op)
		s.mu.Lock()
		grown := maps.Clone(*s.ratios.Load())
		grown[op] = o
		s.ratios.Store(&grown)
		s.mu.Unlock()
	}
	o.Observe(estimated / observed.Seconds())
}

// gateCollector reads the gates when it is scraped.
type gateCollector struct {
	gates atomic.Pointer[map[string]*shed.Gate]
}

var (
	descSeats   = prometheus.NewDesc("geoproxy_gate_seats", "Seats of a gate.", []string{"gate"}, nil)
	descHeld    = prometheus.NewDesc("geoproxy_gate_seats_held", "Seats held now.", []string{"gate"}, nil)
	descWaiting = prometheus.NewDesc("geoproxy_gate_waiting", "Requests waiting in a gate's line.", []string{"gate"}, nil)
)

// Describe implements [prometheus.Collector].
func (*gateCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descSeats
	ch <- descHeld
	ch <- descWaiting
}

// Collect implements [prometheus.Collector].
func (c *gateCollector) Collect(ch chan<- prometheus.Metric) {
	gates := c.gates.Load()
	if gates == nil {
		return
	}
	for name, g := range *gates {
		s := g.Stats()
		ch <- prometheus.MustNewConstMetric(descSeats, prometheus.GaugeValue, float64(s.Seats), name)
		ch <- prometheus.MustNewConstMetric(descHeld, prometheus.GaugeValue, float64(s.Held), name)
		ch <- prometheus.MustNewConstMetric(descWaiting, prometheus.GaugeValue, float64(s.Waiting), name)
	}
}
