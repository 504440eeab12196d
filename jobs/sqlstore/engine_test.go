package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
)

func newEngine(t *testing.T, s jobs.Store, execute jobs.Execute) *jobs.Engine {
	t.Helper()
	e := jobs.NewEngine(jobs.EngineConfig{
		Store: s, Execute: execute, Worker: string(jobs.NewID()), Timing: quick, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		e.Stop(ctx)
	})
	e.SetQueues(map[string]jobs.Queue{"q": {Workers: 2, MaxStored: 100}})
	return e
}

// unreachable is a store that stops answering.
type unreachable struct {
	*sqlstore.Store
	down atomic.Bool
}

var errDown = errors.New("the database does not answer")

func (s *unreachable) Beat(ctx context.Context, w string, l time.Duration, k []jobs.Key, n map[string]int) ([]jobs.Key, error) {
	if s.down.Load() {
		return nil, errDown
	}
	return s.Store.Beat(ctx, w, l, k, n)
}

func (s *unreachable) Marks(ctx context.Context, ids []jobs.ID) (map[jobs.ID]string, error) {
	if s.down.Load() {
		return nil, errDown
	}
	return s.Store.Marks(ctx, ids)
}

// A worker that cannot renew its lease stops its attempt before the lease is
// over, although nobody can be asked.
func TestSelfFence(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		s := &unreachable{Store: open(t)}
		started, stopped := make(chan time.Time, 9), make(chan time.Time, 9)
		e := newEngine(t, s, func(ctx context.Context, _ *jobs.Job) jobs.Ending {
			s.down.Store(true)
			started <- time.Now()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), jobs.ErrLost) {
				t.Errorf("stopped for %v", context.Cause(ctx))
			}
			stopped <- time.Now()
			return jobs.Ending{State: jobs.Failed, Reason: "late"}
		})
		if _, err := e.Submit(t.Context(), submission("q", "a")); err != nil {
			t.Fatal(err)
		}
		if after := (<-stopped).Sub(<-started); after > quick.Lease {
			t.Errorf("it stopped %s after its last renewal could have been, with a lease of %s", after, quick.Lease)
		}
	})
}

// What is cancelled in another process stops within a tick or two.
func TestCancelledElsewhere(t *testing.T) {
	dsn := server.dsn(t)
	here, err := sqlstore.OpenPostgres(t.Context(), dsn)
	opened(t, here, err)
	there, err := sqlstore.OpenPostgres(t.Context(), dsn)
	opened(t, there, err)
	started, stopped := make(chan jobs.ID), make(chan error)
	e := newEngine(t, here, func(ctx context.Context, j *jobs.Job) jobs.Ending {
		started <- j.ID
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return jobs.Ending{State: jobs.Failed}
	})
	if _, err := e.Submit(t.Context(), submission("q", "a")); err != nil {
		t.Fatal(err)
	}
	id := <-started
	began := time.Now()
	if _, err := there.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if cause := <-stopped; !errors.Is(cause, jobs.ErrLost) || time.Since(began) > time.Second {
		t.Errorf("stopped for %v after %s", cause, time.Since(began))
	}
}

// Who waits is told of what happens in another process.
func TestWaitingAcrossProcesses(t *testing.T) {
	dsn := server.dsn(t)
	here, err := sqlstore.OpenPostgres(t.Context(), dsn)
	opened(t, here, err)
	there, err := sqlstore.OpenPostgres(t.Context(), dsn)
	opened(t, there, err)
	e := newEngine(t, here, nil)
	e.SetQueues(nil)
	j := submit(t, here, submission("q", "a"))
	done := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		done <- e.Wait(ctx, j)
	}()
	time.Sleep(300 * time.Millisecond) // it is being watched
	claim(t, there, "w", "q", time.Minute)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A store whose server is not there yet heals by itself once it is; one that
// refuses us says so at once.
func TestAServerThatComesLater(t *testing.T) {
	direct, err := url.Parse(server.dsn(t))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var up atomic.Bool
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			if !up.Load() {
				_ = from.Close()
				continue
			}
			to, err := net.Dial("tcp", direct.Host)
			if err != nil {
				t.Error(err)
				return
			}
			go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
			go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
		}
	}()
	defer func() {
		_ = l.Close()
		<-served
	}()
	far := *direct
	far.Host = l.Addr().String()
	s, err := sqlstore.OpenPostgres(t.Context(), far.String())
	opened(t, s, err)
	if _, err := s.Submit(t.Context(), submission("q", "a")); err == nil {
		t.Error("a submission to nowhere succeeds")
	}
	up.Store(true)
	eventually(t, func() bool {
		_, err := s.Submit(t.Context(), submission("q", "a"))
		return err == nil
	})
	unknown := *direct
	unknown.Path = "/no_such_database"
	if s, err := sqlstore.OpenPostgres(t.Context(), unknown.String()); err == nil {
		_ = s.Close()
		t.Error("a database that is not there is opened")
	}
}

// An engine that stops hands back what does not end in time.
func TestStoppingHandsBack(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		s := open(t)
		started := make(chan struct{})
		e := newEngine(t, s, func(ctx context.Context, _ *jobs.Job) jobs.Ending {
			close(started)
			<-ctx.Done()
			return jobs.Ending{State: jobs.Failed, Reason: "cut off"}
		})
		j, err := e.Submit(t.Context(), submission("q", "a"))
		if err != nil {
			t.Fatal(err)
		}
		<-started
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		e.Stop(ctx)
		if j := get(t, s, j.ID); j.State != jobs.Accepted || j.Attempt != 0 {
			t.Errorf("it is %s, attempt %d", j.State, j.Attempt)
		}
	})
}

// Results above max_stored stop submissions, until somebody has fetched some.
func TestStoreFull(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		s := open(t)
		e := newEngine(t, s, func(ctx context.Context, j *jobs.Job) jobs.Ending {
			name := fmt.Sprintf("%s.%d", j.ID, j.Fence)
			w, err := s.Create(ctx, name)
			if err != nil { // the test is over
				return jobs.Ending{State: jobs.Failed}
			}
			defer w.Abort()
			_, _ = io.WriteString(w, "x")
			if err := w.Commit(); err != nil {
				return jobs.Ending{State: jobs.Failed}
			}
			return jobs.Ending{State: jobs.Successful, Result: name, Size: 101}
		})
		j, err := e.Submit(t.Context(), submission("q", "a"))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool {
			_, err := e.Submit(t.Context(), submission("q2", "a")) // any other queue goes on
			if err != nil {
				t.Fatal(err)
			}
			sub := submission("q", "b")
			sub.Limits.Depth = 0 // it would be refused anyway
			_, err = e.Submit(t.Context(), sub)
			return jobs.StoreFull(err)
		})
		if err := s.Collected(t.Context(), j.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool {
			_, err := e.Submit(t.Context(), submission("q", "a"))
			return err == nil
		})
		if j := get(t, s, j.ID); !j.Gone {
			t.Error("what was collected is still kept")
		}
	})
}

// A Postgres that crashes and comes back in the middle of work loses nothing
// that was accepted.
func TestPostgresRestarts(t *testing.T) {
	var own postgresServer
	dsn := own.dsn(t)
	defer own.stop()
	s, err := sqlstore.OpenPostgres(t.Context(), dsn)
	opened(t, s, err)
	var ids []jobs.ID
	for range 30 {
		sub := submission("q", "a")
		sub.Job.MaxAttempts = 10
		ids = append(ids, submit(t, s, sub).ID)
	}
	newEngine(t, s, func(ctx context.Context, j *jobs.Job) jobs.Ending {
		t := time.NewTimer(100 * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		return jobs.Ending{State: jobs.Failed, Reason: "ran", Error: strconv.Itoa(j.Attempt)}
	})
	eventually(t, func() bool { return get(t, s, ids[3]).State.Ended() })
	if out, err := own.command("pg_ctl", "-D", own.dir+"/data", "-m", "immediate", "-w", "-l", own.dir+"/log", "restart").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, id := range ids {
		eventually(t, func() bool {
			j, err := s.Get(t.Context(), id)
			return err == nil && j.State == jobs.Failed && j.Reason == "ran"
		})
	}
}

// What waits in a queue whose route is gone fails, and only once every worker
// has had the time to say that it serves it.
func TestARouteThatIsGone(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		s := open(t)
		here := submit(t, s, submission("q", "a"))
		gone := submit(t, s, submission("gone", "a"))
		timing := quick
		timing.Unserved = 500 * time.Millisecond
		hold := make(chan struct{})
		e := jobs.NewEngine(jobs.EngineConfig{
			Store: s, Worker: "w", Timing: timing, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
			Execute: func(context.Context, *jobs.Job) jobs.Ending {
				<-hold
				return jobs.Ending{State: jobs.Failed, Reason: "ran"}
			},
		})
		e.SetQueues(map[string]jobs.Queue{"q": {Workers: 1}})
		second := submit(t, s, submission("q", "a")) // it waits, for longer than is needed to tell
		eventually(t, func() bool { return get(t, s, gone.ID).State.Ended() })
		if j := get(t, s, gone.ID); j.State != jobs.Failed || j.Reason != jobs.ReasonNoRoute {
			t.Errorf("it ended as %s, %s", j.State, j.Reason)
		}
		if a, b := get(t, s, here.ID), get(t, s, second.ID); a.State.Ended() || b.State.Ended() {
			t.Errorf("those of a route that is there: %s, %s", a.State, b.State)
		}
		close(hold)
		e.Stop(t.Context())
	})
}

// A replica that is killed has its jobs taken up by another within 15 s, with
// the leases that are used in earnest.
func TestTakeover(t *testing.T) {
	repeats := 1
	if n, err := strconv.Atoi(os.Getenv("GEOPROXY_SOAK_TAKEOVERS")); err == nil {
		repeats = n
	}
	var took []time.Duration
	for range repeats {
		dsn := server.dsn(t)
		s, err := sqlstore.OpenPostgres(t.Context(), dsn)
		opened(t, s, err)
		id := submit(t, s, submission("q", "a")).ID
		w := startWorker(t, dsn, "real leases", 0, time.Hour)
		eventually(t, func() bool { return get(t, s, id).State == jobs.Running })
		if err := w.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		w.stop()
		again := make(chan time.Time, 1)
		e := jobs.NewEngine(jobs.EngineConfig{
			Store: s, Worker: "another", Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
			Execute: func(_ context.Context, j *jobs.Job) jobs.Ending {
				if j.Attempt != 2 {
					t.Errorf("attempt %d", j.Attempt)
				}
				again <- time.Now()
				return jobs.Ending{State: jobs.Failed}
			},
		})
		e.SetQueues(map[string]jobs.Queue{"q": {Workers: 1}})
		took = append(took, (<-again).Sub(killed))
		e.Stop(t.Context())
	}
	slices.Sort(took)
	t.Logf("taken over after %s at the median and %s at most", took[len(took)/2], took[len(took)-1])
	if most := took[len(took)-1]; most > 15*time.Second {
		t.Errorf("a takeover took %s", most)
	}
}

// model is what a job of the store must be, by the rules.
type model struct {
	state   jobs.State
	attempt int
	fence   int64
}

// Whatever workers, zombies, reapers and callers do in whatever order, the
// store does what the drawn states say.
func TestTheStatesAreTheDrawnOnes(t *testing.T) {
	s, err := sqlstore.OpenSQLite(t.Context(), t.TempDir())
	opened(t, s, err)
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		sub := submission(string(jobs.NewID()), "a")
		queue := sub.Job.Queue
		if _, err := s.Submit(ctx, sub); err != nil {
			t.Fatal(err)
		}
		id, want := sub.Job.ID, model{state: jobs.Accepted}
		var keys []jobs.Key // of all claims, those of zombies too
		check := func(t *rapid.T) {
			j, err := s.Get(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if got := (model{j.State, j.Attempt, j.Fence}); got != want {
				t.Fatalf("it is %+v and should be %+v", got, want)
			}
			if (j.Result != "") != (j.State == jobs.Successful) || (j.Request == nil) != j.State.Ended() {
				t.Fatalf("%+v", j)
			}
		}
		finish := func(t *rapid.T, e jobs.Ending, then func()) {
			if len(keys) == 0 {
				t.Skip()
			}
			k := rapid.SampledFrom(keys).Draw(t, "claim")
			if e.State == jobs.Successful {
				e.Result, e.Size = fmt.Sprintf("%s.%d", k.ID, k.Fence), 1
			}
			mine := want.state == jobs.Running && k.Fence == want.fence
			repeated := want.state == jobs.Successful && e.State == jobs.Successful && k.Fence == want.fence
			err := s.Finish(ctx, k, e)
			switch {
			case mine:
				if err != nil {
					t.Fatal(err)
				}
				then()
			case repeated && err != nil, !repeated && !errors.Is(err, jobs.ErrLost):
				t.Fatalf("ending %+v as %s of %+v gives %v", k, e.State, want, err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": check,
			"claim": func(t *rapid.T) {
				list, err := s.Claim(ctx, "w", queue, 2, time.Hour)
				if err != nil || len(list) > 1 || (len(list) == 1) != (want.state == jobs.Accepted) {
					t.Fatalf("%d claimed of %+v, %v", len(list), want, err)
				}
				if len(list) == 1 {
					want.state, want.attempt, want.fence = jobs.Running, want.attempt+1, want.fence+1
					keys = append(keys, jobs.Key{ID: id, Fence: list[0].Fence})
				}
			},
			"succeed": func(t *rapid.T) {
				finish(t, jobs.Ending{State: jobs.Successful}, func() { want.state = jobs.Successful })
			},
			"fail": func(t *rapid.T) { finish(t, jobs.Ending{State: jobs.Failed}, func() { want.state = jobs.Failed }) },
			"try again": func(t *rapid.T) {
				finish(t, jobs.Ending{State: jobs.Accepted}, func() {
					if want.state = jobs.Accepted; want.attempt == 3 {
						want.state = jobs.Failed
					}
				})
			},
			"nothing was sent": func(t *rapid.T) {
				finish(t, jobs.Ending{State: jobs.Accepted, Refund: true}, func() { want.state, want.attempt = jobs.Accepted, want.attempt-1 })
			},
			"the lease ends": func(t *rapid.T) {
				if err := s.Lapse(ctx, id); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Reap(ctx); err != nil {
					t.Fatal(err)
				}
				if want.state == jobs.Running {
					if want.state = jobs.Accepted; want.attempt == 3 {
						want.state = jobs.Failed
					}
				}
			},
			"beat": func(t *rapid.T) {
				mine, err := s.Beat(ctx, "w", time.Hour, keys, nil)
				if err != nil || (len(mine) == 1) != (want.state == jobs.Running) || len(mine) > 1 {
					t.Fatalf("%v of %+v, %v", mine, want, err)
				}
			},
			"cancel": func(t *rapid.T) {
				if !rapid.Bool().Draw(t, "really") {
					t.Skip()
				}
				if _, err := s.Cancel(ctx, id); err != nil {
					t.Fatal(err)
				}
				if !want.state.Ended() {
					want.state = jobs.Dismissed
				}
			},
		})
		if _, err := s.Cancel(ctx, id); err != nil {
			t.Fatal(err)
		}
	})
}
