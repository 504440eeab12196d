package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/ratelimit"
)

// Proxy is the HTTP front end: it decides on requests through its Admission
// and forwards those that are admitted.
type Proxy struct {
	admission *Admission
	metrics   *metrics
	log       *slog.Logger
	secret    []byte
	accessLog atomic.Bool

	reloading sync.Mutex      // one reload at a time
	stopping  context.Context //nolint:containedctx // it is the process's own: the base of every request's
	stop      context.CancelCauseFunc
	requests  inFlight  // upgraded ones included, which no server waits for
	streams   streams   // what all exchanges share
	jobs      *jobQueue // nil where none are possible
}

// Parts are what a Proxy is given.
type Parts struct {
	// Buckets hold the rate limits' state. Defaults to this process's own.
	Buckets ratelimit.Buckets
	// Registry takes the metrics. Required.
	Registry prometheus.Registerer
	// Log takes what an operator must know. Required.
	Log *slog.Logger
	// Secret keys the HMACs of tenants. Required; 16 bytes or more.
	Secret []byte
	// Jobs are what jobs need; without it no job is possible.
	Jobs *JobParts
}

// New makes a proxy of a checked config.
func New(cfg Config, parts Parts) (*Proxy, error) {
	if len(parts.Secret) < 16 {
		return nil, errors.New("the secret must have 16 bytes or more")
	}
	if parts.Buckets == nil {
		parts.Buckets = ratelimit.NewLocal(cfg.Tenant.MaxOrDefault())
	}
	p := &Proxy{log: parts.Log, secret: parts.Secret}
	p.metrics = newMetrics(parts.Registry, &p.streams)
	p.admission = &Admission{buckets: parts.Buckets, metrics: p.metrics, unrouted: newRouteSeries(p.metrics, "")}
	p.stopping, p.stop = context.WithCancelCause(context.Background())
	p.admission.jobs = parts.Jobs != nil
	if err := p.Reload(cfg); err != nil {
		return nil, err
	}
	if parts.Jobs != nil && parts.Jobs.Store != nil {
		var err error
		if p.jobs, err = newJobQueue(p, parts.Jobs, parts.Registry, parts.Log); err != nil {
			p.Close()
			return nil, err
		}
		p.jobs.follow(p.admission.state.Load())
	}
	return p, nil
}

// Reload puts a checked config in the place of the running one. Requests end
// under the config that they began with; gates and buckets live on by name. On
// an error nothing has changed.
func (p *Proxy) Reload(cfg Config) error {
	p.reloading.Lock()
	defer p.reloading.Unlock()
	old := p.admission.state.Load()
	next, err := compile(cfg, old, p.secret, p.metrics, p.log)
	if err != nil {
		return fmt.Errorf("config: %w", err)
	}
	next.commit()
	p.admission.state.Store(next)
	p.metrics.gates.gates.Store(&next.gates)
	p.accessLog.Store(cfg.AccessLog)
	if old != nil {
		old.retire(next)
	}
	if p.jobs != nil {
		p.jobs.follow(next)
	}
	return nil
}

// Admission gives what decides, for other front ends and for explain.
func (p *Proxy) Admission() *Admission { return p.admission }

// Drain ends what the proxy is doing: it returns when no request is left. When
// ctx ends first, those that wait are refused with 503 and those under way are
// cancelled, upgraded connections included, and it returns a second later at
// the latest.
func (p *Proxy) Drain(ctx context.Context) {
	if p.requests.drained(ctx) {
		return
	}
	p.stop(errDraining)
	last, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	p.requests.drained(last)
}

// lastWords is how long what a drain has cancelled may still write. Whoever
// takes nothing by then holds its request up for as long as it likes: the
// server closes its connection, or the end of the process does.
const lastWords = time.Second

// Close ends what runs in the background. Call it after Drain, and after
// StopJobs where jobs are to have time to end.
func (p *Proxy) Close() {
	p.stop(errDraining)
	if p.jobs != nil {
		at, cancel := context.WithCancel(context.Background())
		cancel()
		p.jobs.engine.Stop(at)
	}
	state := p.admission.state.Load()
	state.tenants.close()
	for _, u := range state.upstreams {
		u.close()
	}
}

// Context ends when a drain has run out of time: the base of every request's
// context, so that a server built on it cancels what is still under way.
func (p *Proxy) Context() context.Context { return p.stopping }
