package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Timing is how the engine keeps its leases. Its zero value is right for
// everything but tests.
type Timing struct {
	Lease time.Duration // defaults to 10s
	Beat  time.Duration // defaults to 3s
	Tick  time.Duration // one query for all that is waited for; defaults to 1s
	Sweep time.Duration // defaults to 30s
	// OrphanAge is how old a blob that nothing refers to must be to be deleted.
	// It is longer than a submission may take. Defaults to 10m.
	OrphanAge time.Duration
	// Unserved is how long no worker must have served a queue before what waits
	// in it fails: longer than it takes to replace every process. Defaults to 2m.
	Unserved time.Duration
}

func (t Timing) withDefaults() Timing {
	for d, def := range map[*time.Duration]time.Duration{
		&t.Lease: 10 * time.Second, &t.Beat: 3 * time.Second, &t.Tick: time.Second,
		&t.Sweep: 30 * time.Second, &t.OrphanAge: 10 * time.Minute, &t.Unserved: 2 * time.Minute,
	} {
		if *d == 0 {
			*d = def
		}
	}
	return t
}

// Queue is what the engine is to do for a route.
type Queue struct {
	Workers   int   // attempts at once in this process
	MaxStored int64 // bytes of results, of all replicas
}

// Execute runs one attempt. Its context ends when the attempt is no longer this
// worker's (cause [ErrLost]), when the process stops (cause [ErrStopping]), and
// with nothing else; what the attempt's time is, is for Execute to keep. It does
// not write the result's end itself: what it returns is written under the
// attempt's fence.
type Execute func(ctx context.Context, j *Job) Ending

// ErrStopping says that the process stops.
var ErrStopping = errors.New("the process stops")

// Engine runs jobs: it claims what is queued, keeps the leases of what runs,
// writes the ends, takes up what dead workers left, and tells waiters.
type Engine struct {
	store   Store
	execute Execute
	worker  string
	timing  Timing
	log     *slog.Logger
	metrics *metrics

	kick chan struct{} // something may be claimed
	over chan struct{} // closed when Stop was called: nobody waits any more
	stop context.CancelFunc
	ctx  context.Context //nolint:containedctx // the engine's own
	done sync.WaitGroup
	// claiming is the one loop that begins attempts: it ends before they are
	// waited for.
	claiming sync.WaitGroup

	mu       sync.Mutex
	queues   map[string]Queue
	running  map[Key]*attempt
	busy     map[string]int // attempts by queue
	stopping bool
	full     map[string]bool // queues without room for results
	beating  time.Time       // since when every beat has succeeded; zero where the last did not
	watched  map[ID]*watch
	attempts sync.WaitGroup
}

type attempt struct {
	job    *Job
	cancel context.CancelCauseFunc
	beat   time.Time // when the last successful renewal was sent
}

// EngineConfig is what an engine is given. Only Timing may be left out.
type EngineConfig struct {
	Store    Store
	Execute  Execute
	Worker   string // a name that no other process of the store has
	Timing   Timing
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// NewEngine starts an engine, without queues. The caller ends it with Stop.
func NewEngine(cfg EngineConfig) *Engine {
	e := &Engine{
		store: cfg.Store, execute: cfg.Execute, worker: cfg.Worker, timing: cfg.Timing.withDefaults(), log: cfg.Log,
		kick: make(chan struct{}, 1), over: make(chan struct{}), queues: make(map[string]Queue), running: make(map[Key]*attempt), busy: make(map[string]int),
		full: make(map[string]bool), watched: make(map[ID]*watch),
	}
	e.metrics = newMetrics(cfg.Registry, e)
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.claiming.Go(e.claims)
	e.done.Go(e.beats)
	e.done.Go(e.ticks)
	e.done.Go(e.sweeps)
	return e
}

// SetQueues says which queues to work on. What runs goes on.
func (e *Engine) SetQueues(queues map[string]Queue) {
	e.mu.Lock()
	e.queues = maps.Clone(queues)
	e.mu.Unlock()
	e.Kick()
}

// Kick has the engine look for something to claim at once.
func (e *Engine) Kick() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// Submit keeps a job, and starts it where there is a worker for it. See
// [Store.Submit].
func (e *Engine) Submit(ctx context.Context, s Submission) (*Job, error) {
	e.mu.Lock()
	full := e.full[s.Job.Queue]
	e.mu.Unlock()
	if full {
		e.metrics.submitted(s.Job.Queue, errStoreFull)
		return nil, errStoreFull
	}
	j, err := e.store.Submit(ctx, s)
	e.metrics.submitted(s.Job.Queue, err)
	if err == nil {
		e.Kick()
	}
	return j, err
}

var errStoreFull = errors.New("no room for more results")

// Refused reports whether a submission failed because it was refused: nothing
// of it is kept. Of another failure nobody knows.
func Refused(err error) bool {
	_, full := errors.AsType[*FullError](err)
	return full || errors.Is(err, errStoreFull) || errors.Is(err, ErrMismatch)
}

// StoreFull reports whether a submission failed for lack of room for results.
func StoreFull(err error) bool { return errors.Is(err, errStoreFull) }

// Cancel dismisses a job, and stops it at once where it runs here.
func (e *Engine) Cancel(ctx context.Context, id ID) (*Job, error) {
	j, err := e.store.Cancel(ctx, id)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	for k, a := range e.running {
		if k.ID == id && j.State.Ended() {
			a.cancel(ErrLost)
		}
	}
	e.mu.Unlock()
	e.changed(id)
	return j, nil
}

// Stop ends the engine: nothing is claimed any more, who waits is told to come
// back, and when ctx ends what still runs is stopped and handed back. Stopping
// again does nothing.
func (e *Engine) Stop(ctx context.Context) {
	e.mu.Lock()
	if e.stopping { // Stop was called before
		e.mu.Unlock()
		e.done.Wait()
		return
	}
	e.stopping = true
	e.mu.Unlock()
	close(e.over)
	e.claiming.Wait()
	ended := make(chan struct{})
	go func() {
		e.attempts.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		e.mu.Lock()
		for _, a := range e.running {
			a.cancel(ErrStopping)
		}
		e.mu.Unlock()
		<-ended
	}
	e.stop()
	e.done.Wait()
	e.metrics.unregister()
}

// claims starts what is queued, as far as there are workers for it.
func (e *Engine) claims() {
	tick := time.NewTicker(e.timing.Tick)
	defer tick.Stop()
	for {
		select {
		case <-e.over:
			return
		case <-tick.C:
		case <-e.kick:
		}
		e.claim()
	}
}

func (e *Engine) claim() {
	if e.free("") == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(e.ctx, e.timing.Lease/2)
	defer cancel()
	ready, err := e.store.Ready(ctx)
	if err != nil {
		e.trouble("looking for jobs", err)
		return
	}
	for _, queue := range ready {
		n := e.free(queue)
		if n == 0 {
			continue
		}
		sent := time.Now()
		list, err := e.store.Claim(ctx, e.worker, queue, n, e.timing.Lease)
		if err != nil {
			e.trouble("claiming jobs", err)
			return
		}
		for _, j := range list {
			e.begin(j, sent)
		}
	}
}

// free is how many more attempts of a queue may begin here; of all of them
// where it is not named.
func (e *Engine) free(queue string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return 0
	}
	if queue != "" {
		return max(0, e.queues[queue].Workers-e.busy[queue])
	}
	n := 0
	for name, q := range e.queues {
		n += max(0, q.Workers-e.busy[name])
	}
	return n
}

func (e *Engine) begin(j *Job, sent time.Time) {
	ctx, cancel := context.WithCancelCause(e.ctx)
	k := Key{j.ID, j.Fence}
	e.mu.Lock()
	e.running[k] = &attempt{job: j, cancel: cancel, beat: sent}
	e.busy[j.Queue]++
	if e.stopping {
		cancel(ErrStopping)
	}
	e.attempts.Add(1)
	e.mu.Unlock()
	e.changed(j.ID)
	go func() {
		defer e.attempts.Done()
		defer cancel(nil)
		e.attempt(ctx, k, j)
		e.mu.Lock()
		delete(e.running, k)
		e.busy[j.Queue]--
		e.mu.Unlock()
		e.changed(j.ID)
		e.Kick()
	}()
}

// attempt runs a job once and writes how it ended.
func (e *Engine) attempt(ctx context.Context, k Key, j *Job) {
	began := time.Now()
	ending := e.run(ctx, j)
	if cause := context.Cause(ctx); errors.Is(cause, ErrStopping) && ending.State != Successful && !ending.Refund {
		ending = Ending{State: Accepted, HandBack: true}
	}
	err := e.finish(ctx, k, ending)
	switch {
	case err == nil:
		e.metrics.ended(j, ending, time.Since(began))
		if ending.State.Ended() && j.Body != "" {
			e.drop(j.Body)
		}
	case ending.Result != "":
		// Somebody else's end counts, or nobody knows: Sweep will. What is
		// certainly not published is dropped at once.
		if errors.Is(err, ErrLost) {
			e.drop(ending.Result)
		}
	}
}

// run is Execute, of which a panic fails the job and not the process.
func (e *Engine) run(ctx context.Context, j *Job) (ending Ending) {
	defer func() {
		if p := recover(); p != nil {
			e.log.ErrorContext(ctx, "a job's attempt panicked", slog.String("job", string(j.ID)), slog.String("panic", fmt.Sprint(p)))
			ending = Ending{State: Failed, Reason: ReasonUpstream, Error: "geoproxy failed while running it"}
		}
	}()
	return e.execute(ctx, j)
}

// finish writes an end. While the lease may still be ours it is worth trying
// again; after that whoever reaps decides.
func (e *Engine) finish(ctx context.Context, k Key, ending Ending) error {
	for {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.timing.Lease/2)
		err := e.store.Finish(once, k, ending)
		cancel()
		if err == nil || errors.Is(err, ErrLost) || errors.Is(context.Cause(ctx), ErrLost) || e.ctx.Err() != nil {
			return err
		}
		e.trouble("writing a job's end", err)
		if errors.Is(context.Cause(ctx), ErrStopping) {
			return err
		}
		t := time.NewTimer(min(e.timing.Tick, time.Second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

func (e *Engine) drop(blob string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), e.timing.Lease)
	defer cancel()
	if err := e.store.DeleteBlob(ctx, blob); err != nil {
		e.trouble("deleting a blob", err) // Sweep tries again
	}
}

// beats renews the leases of all that runs, with one statement. An attempt
// that was not renewed for so long that its lease may be over is stopped,
// although nobody can be asked.
func (e *Engine) beats() {
	tick := time.NewTicker(e.timing.Beat)
	defer tick.Stop()
	for {
		e.beat()
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Engine) beat() {
	e.mu.Lock()
	keys := slices.Collect(maps.Keys(e.running))
	slots := make(map[string]int, len(e.queues))
	for name, q := range e.queues {
		slots[name] = q.Workers
	}
	e.mu.Unlock()
	sent := time.Now()
	ctx, cancel := context.WithTimeout(e.ctx, e.timing.Beat)
	defer cancel()
	mine, err := e.store.Beat(ctx, e.worker, e.timing.Lease, keys, slots)
	if err != nil && e.ctx.Err() == nil {
		e.trouble("renewing leases", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil:
		e.beating = time.Time{}
	case e.beating.IsZero():
		e.beating = sent
	}
	for _, k := range keys {
		a := e.running[k]
		switch {
		case a == nil:
		case err == nil && slices.Contains(mine, k):
			a.beat = sent
		case err == nil, time.Since(a.beat) > e.timing.Lease-e.timing.Beat:
			a.cancel(ErrLost)
		}
	}
}

// ticks asks once in a while for all that is waited for, and takes up what dead
// workers left.
func (e *Engine) ticks() {
	tick := time.NewTicker(e.timing.Tick)
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(e.ctx, max(e.timing.Tick, time.Second))
		if n, err := e.store.Reap(ctx); err != nil {
			e.trouble("reaping", err)
		} else if n > 0 {
			e.metrics.reaped.Add(float64(n))
			e.Kick()
		}
		e.look(ctx)
		e.metrics.read(ctx, e)
		cancel()
		e.fence()
	}
}

// fence stops attempts whose lease may be over; see beats.
func (e *Engine) fence() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		if time.Since(a.beat) > e.timing.Lease-e.timing.Beat {
			a.cancel(ErrLost)
		}
	}
}

func (e *Engine) sweeps() {
	tick := time.NewTicker(e.timing.Sweep)
	defer tick.Stop()
	for {
		e.sweep()
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (e *Engine) sweep() {
	ctx, cancel := context.WithTimeout(e.ctx, e.timing.Sweep)
	defer cancel()
	e.mu.Lock()
	most := make(map[string]int64, len(e.queues))
	for name, q := range e.queues {
		most[name] = q.MaxStored
	}
	// Only who has heard from the store all the time knows that a queue's
	// workers have had the time to speak up.
	steady := !e.beating.IsZero() && time.Since(e.beating) > e.timing.Unserved
	e.mu.Unlock()
	if steady {
		if _, err := e.store.FailUnserved(ctx, e.timing.Unserved); err != nil {
			e.trouble("failing what no route serves", err)
		}
	}
	swept, err := e.store.Sweep(ctx, most, e.timing.OrphanAge)
	if err != nil {
		e.trouble("sweeping", err)
		return
	}
	e.metrics.swept(swept)
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.full)
	for name, limit := range most {
		e.full[name] = limit > 0 && swept.Stored[name] > limit
	}
}

// trouble counts what the store did not do, and says so unless the engine ends.
func (e *Engine) trouble(what string, err error) {
	if e.ctx.Err() != nil {
		return
	}
	e.metrics.troubles.Inc()
	e.log.Warn("the store of jobs: "+what, slog.Any("error", err))
}
