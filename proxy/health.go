package proxy

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Readiness says whether this process should be sent requests, and if not why.
// It speaks of this process alone: an upstream or a store that is down does not
// take every replica out of service.
type Readiness struct {
	mu      sync.Mutex
	reasons map[string]string
}

// Set adds or, where why is empty, removes a reason not to be ready.
func (r *Readiness) Set(what, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reasons == nil {
		r.reasons = make(map[string]string)
	}
	if why == "" {
		delete(r.reasons, what)
		return
	}
	r.reasons[what] = why
}

// ServeHTTP answers readyz: 200, or 503 with the reasons.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	status := http.StatusOK
	if len(r.reasons) > 0 {
		status = http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"ready": len(r.reasons) == 0, "reasons": r.reasons}) // the prober may have left
}

// NewHealth answers healthz, readyz, metrics, and the health of the queues of
// jobs: the listener that may face the cluster.
func (p *Proxy) NewHealth(ready *Readiness, gatherer prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("ok\n")) // the prober may have left
	})
	mux.Handle("GET /readyz", ready)
	mux.HandleFunc("GET /jobs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		text := []byte("{}")
		if p.jobs != nil {
			text = p.jobs.engine.HealthJSON()
		}
		_, _ = w.Write(text) // the prober may have left
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// NewAdmin answers explain and pprof: the listener that may not face anybody
// but operators.
func (p *Proxy) NewAdmin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /geoproxy/explain", p.explain)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
