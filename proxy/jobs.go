package proxy

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/jobs"
)

// JobParts are what jobs need. Without them no job is possible.
type JobParts struct {
	// Store keeps them. Where it is nil requests are decided on as if there
	// were one, and none is served: for checks that run nothing. Whoever made
	// it closes it, after the proxy.
	Store jobs.Store
	// Key seals what is kept: 16 bytes or more, the same for all replicas.
	Key []byte
	// Timing is for tests.
	Timing jobs.Timing
}

// jobQueue is what the front end has of jobs.
type jobQueue struct {
	proxy  *Proxy
	engine *jobs.Engine
	store  jobs.Store
	sealer *jobs.Sealer
	marks  *jobs.Marks

	mu       sync.Mutex
	waiting  map[string]int // ?wait and event streams, by who asks
	asked    map[jobs.ID]lastAnswer
	deciding map[string]bool // idempotency keys that are being submitted
}

func newJobQueue(p *Proxy, parts *JobParts, reg prometheus.Registerer, log *slog.Logger) (*jobQueue, error) {
	q := &jobQueue{
		proxy: p, store: parts.Store,
		waiting: make(map[string]int), asked: make(map[jobs.ID]lastAnswer), deciding: make(map[string]bool),
	}
	var err, err2 error
	q.sealer, err = jobs.NewSealer(parts.Key)
	q.marks, err2 = jobs.NewMarks(p.secret)
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	var name [8]byte
	_, _ = rand.Read(name[:]) // never fails
	q.engine = jobs.NewEngine(jobs.EngineConfig{
		Store: q.store, Execute: q.execute, Worker: hex.EncodeToString(name[:]), Timing: parts.Timing, Registry: reg, Log: log,
	})
	return q, nil
}

// follow makes the engine work on the routes of a config, on those that take
// no more jobs too: what they have accepted is run.
func (q *jobQueue) follow(c *compiled) {
	queues := make(map[string]jobs.Queue, len(c.routes.all))
	for _, r := range c.routes.all {
		queues[r.name] = jobs.Queue{Workers: r.jobs.Workers, MaxStored: r.jobs.MaxStored}
	}
	q.engine.SetQueues(queues)
}

// StopJobs ends what jobs are run here: nothing is started any more, and when
// ctx ends what still runs is handed back to the queue. Jobs that are queued
// stay so, for the next process.
func (p *Proxy) StopJobs(ctx context.Context) {
	if p.jobs != nil {
		p.jobs.engine.Stop(ctx)
	}
}

// storeTime bounds what a request waits for the store of jobs.
const storeTime = 5 * time.Second
