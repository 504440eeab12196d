package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A healthy queue is less deep, has a shorter wait at the 95th percentile, and
// refuses less, than this.
const (
	healthyDepth    = 150
	healthyWait     = 300.0
	healthyRejected = 0.05
	// recent is how many submissions and starts the health is worked out of.
	recent = 256
)

// metrics are what the engine counts, and the health of its queues.
type metrics struct {
	registry    prometheus.Registerer
	collectors  []prometheus.Collector
	submissions *prometheus.CounterVec
	ends        *prometheus.CounterVec
	waits       *prometheus.HistogramVec
	reaped      prometheus.Counter
	troubles    prometheus.Counter
	expired     *prometheus.CounterVec
	depth       *prometheus.GaugeVec
	stored      *prometheus.GaugeVec

	mu     sync.Mutex
	queues map[string]*queueHealth
}

// queueHealth is what is remembered of a queue.
type queueHealth struct {
	depth    int
	slots    int
	waits    []float64 // seconds from submission to the first start, newest last
	rejected []bool    // of the newest submissions
	inline   uint64
	queued   uint64
}

func newMetrics(reg prometheus.Registerer, e *Engine) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: reg, queues: make(map[string]*queueHealth),
		submissions: counter("geoproxy_job_submissions_total", "Jobs submitted. result: accepted, queue-depth, queue-wait, store-full, store, mismatch.", "route", "result"),
		ends:        counter("geoproxy_job_attempts_total", "Attempts that ended. state: successful, failed, accepted (to be tried again); reason: why.", "route", "state", "reason"),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "geoproxy_job_wait_seconds", Help: "Time from a job's submission to its first start.",
			Buckets: []float64{.01, .1, .5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
		}, []string{"route"}),
		reaped:   prometheus.NewCounter(prometheus.CounterOpts{Name: "geoproxy_job_reaped_total", Help: "Attempts taken up from workers that were lost."}),
		troubles: prometheus.NewCounter(prometheus.CounterOpts{Name: "geoproxy_job_store_failures_total", Help: "What the store of jobs did not do when it was asked."}),
		expired: counter("geoproxy_job_results_removed_total", "Results removed. why: expired, uncollected (expired and nobody had fetched it: many say that "+
			"callers do not find their results), evicted.", "why"),
		depth:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "geoproxy_job_queue_depth", Help: "Jobs queued and running."}, []string{"route"}),
		stored: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "geoproxy_job_stored_bytes", Help: "Bytes of results that are kept."}, []string{"route"}),
	}
	m.collectors = []prometheus.Collector{healthCollector{e}, m.submissions, m.ends, m.waits, m.reaped, m.troubles, m.expired, m.depth, m.stored}
	reg.MustRegister(m.collectors...)
	return m
}

// healthCollector gives the health of the queues when it is scraped.
type healthCollector struct{ e *Engine }

var (
	descHealthy  = prometheus.NewDesc("geoproxy_job_queue_healthy", "1 where the queue's depth, tail wait and rejections are all below their thresholds (150, 300 s, 5 %).", []string{"route"}, nil)
	descWait95   = prometheus.NewDesc("geoproxy_job_queue_wait_p95_seconds", "The 95th percentile of the waits of the newest jobs.", []string{"route"}, nil)
	descRejected = prometheus.NewDesc("geoproxy_job_queue_rejected_share", "The share of the newest submissions that the queue refused.", []string{"route"}, nil)
	descModes    = prometheus.NewDesc("geoproxy_job_possible_requests_total", "Requests for which a job was possible. mode: inline, queued.", []string{"route", "mode"}, nil)
)

// Describe implements [prometheus.Collector].
func (healthCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descHealthy, descWait95, descRejected, descModes} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c healthCollector) Collect(ch chan<- prometheus.Metric) {
	for route, h := range c.e.Health() {
		healthy := 0.0
		if h.Healthy {
			healthy = 1
		}
		ch <- prometheus.MustNewConstMetric(descHealthy, prometheus.GaugeValue, healthy, route)
		ch <- prometheus.MustNewConstMetric(descWait95, prometheus.GaugeValue, h.Wait95, route)
		ch <- prometheus.MustNewConstMetric(descRejected, prometheus.GaugeValue, h.Rejected, route)
		ch <- prometheus.MustNewConstMetric(descModes, prometheus.CounterValue, float64(h.Inline), route, "inline")
		ch <- prometheus.MustNewConstMetric(descModes, prometheus.CounterValue, float64(h.Queued), route, "queued")
	}
}

func (m *metrics) unregister() {
	for _, c := range m.collectors {
		m.registry.Unregister(c)
	}
}

func (m *metrics) of(queue string) *queueHealth {
	h := m.queues[queue]
	if h == nil {
		h = &queueHealth{}
		m.queues[queue] = h
	}
	return h
}

func (m *metrics) submitted(queue string, err error) {
	result := "accepted"
	var full *FullError
	switch {
	case err == nil:
	case errors.As(err, &full) && full.ByWait:
		result = "queue-wait"
	case full != nil:
		result = "queue-depth"
	case StoreFull(err):
		result = "store-full"
	case errors.Is(err, ErrMismatch):
		result = "mismatch"
	default:
		result = "store"
	}
	m.submissions.WithLabelValues(queue, result).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(queue)
	h.rejected = newest(h.rejected, full != nil)
}

func (m *metrics) ended(j *Job, e Ending, _ time.Duration) {
	m.ends.WithLabelValues(j.Queue, string(e.State), e.Reason).Inc()
	if j.Attempt != 1 {
		return
	}
	wait := j.Started.Sub(j.Created).Seconds()
	m.waits.WithLabelValues(j.Queue).Observe(wait)
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.of(j.Queue)
	h.waits = newest(h.waits, wait)
}

func newest[T any](list []T, v T) []T {
	list = append(list, v)
	if len(list) > recent {
		list = slices.Delete(list, 0, len(list)-recent)
	}
	return list
}

func (m *metrics) swept(s Swept) {
	m.expired.WithLabelValues("expired").Add(float64(s.Expired - s.Uncollected))
	m.expired.WithLabelValues("uncollected").Add(float64(s.Uncollected))
	m.expired.WithLabelValues("evicted").Add(float64(s.Evicted))
	m.stored.Reset()
	for queue, bytes := range s.Stored {
		m.stored.WithLabelValues(queue).Set(float64(bytes))
	}
}

// read asks how deep the queues are.
func (m *metrics) read(ctx context.Context, e *Engine) {
	depths, err := e.store.Depths(ctx)
	if err != nil {
		return // the tick has said so
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, q := range e.queues {
		h := m.of(name)
		h.depth, h.slots = depths[name], q.Workers
		m.depth.WithLabelValues(name).Set(float64(h.depth))
	}
	for name := range m.queues {
		if _, ok := e.queues[name]; !ok {
			delete(m.queues, name)
			m.depth.DeleteLabelValues(name)
		}
	}
}

// Count notes that a request was answered inline or queued.
func (e *Engine) Count(queue string, queued bool) {
	e.metrics.mu.Lock()
	defer e.metrics.mu.Unlock()
	h := e.metrics.of(queue)
	if queued {
		h.queued++
	} else {
		h.inline++
	}
}

// Health is the health of a queue: its depth, its tail and what it refuses,
// together, since each alone can look well while the others do not.
type Health struct {
	Healthy  bool    `json:"healthy"`
	Depth    int     `json:"depth"`
	Wait95   float64 `json:"wait_p95_seconds"`
	Rejected float64 `json:"rejected_share"`
	Inline   uint64  `json:"inline"`
	Queued   uint64  `json:"queued"`
	Workers  int     `json:"workers"`
}

// Health gives the health of every queue.
func (e *Engine) Health() map[string]Health {
	m := e.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]Health, len(m.queues))
	for name, q := range m.queues {
		h := Health{Depth: q.depth, Workers: q.slots, Inline: q.inline, Queued: q.queued}
		if n := len(q.waits); n > 0 {
			sorted := slices.Sorted(slices.Values(q.waits))
			h.Wait95 = sorted[min(n-1, n*95/100)]
		}
		refused := 0
		for _, r := range q.rejected {
			if r {
				refused++
			}
		}
		if n := len(q.rejected); n > 0 {
			h.Rejected = float64(refused) / float64(n)
		}
		h.Healthy = h.Depth < healthyDepth && h.Wait95 < healthyWait && h.Rejected < healthyRejected
		all[name] = h
	}
	return all
}

// HealthJSON is Health as a document.
func (e *Engine) HealthJSON() []byte {
	b, err := json.Marshal(map[string]any{"queues": e.Health()})
	if err != nil {
		return []byte("{}") // only finite numbers
	}
	return b
}
