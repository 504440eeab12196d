package sqlstore_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
)

var roomy = jobs.Limits{Depth: 1000, Wait: time.Hour}

// submission is a small job of a queue and a tenant.
func submission(queue, tenant string) jobs.Submission {
	return jobs.Submission{Limits: roomy, Job: &jobs.Job{
		ID: jobs.NewID(), Queue: queue, Tenant: tenant, Owner: "owner-" + tenant, MaxAttempts: 3,
		Estimate: time.Second, Timeout: time.Minute, Keep: time.Hour, Request: []byte("sealed"),
		Info: jobs.Info{Op: "items", Seconds: 1},
	}}
}

func submit(t *testing.T, s *sqlstore.Store, sub jobs.Submission) *jobs.Job {
	t.Helper()
	j, err := s.Submit(t.Context(), sub)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func claim(t *testing.T, s *sqlstore.Store, worker, queue string, lease time.Duration) *jobs.Job {
	t.Helper()
	list, err := s.Claim(t.Context(), worker, queue, 1, lease)
	if err != nil || len(list) != 1 {
		t.Fatalf("claimed %d jobs, %v", len(list), err)
	}
	return list[0]
}

func get(t *testing.T, s *sqlstore.Store, id jobs.ID) *jobs.Job {
	t.Helper()
	j, err := s.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func key(j *jobs.Job) jobs.Key { return jobs.Key{ID: j.ID, Fence: j.Fence} }

func store(t *testing.T, s *sqlstore.Store, j *jobs.Job, text string) jobs.Ending {
	t.Helper()
	name := fmt.Sprintf("%s.%d", j.ID, j.Fence)
	w, err := s.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	return jobs.Ending{State: jobs.Successful, Answer: []byte("head"), Result: name, Size: int64(len(text))}
}

func TestAJobFromSubmissionToItsEnd(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		first := submit(t, s, submission("q", "a"))
		second := submit(t, s, submission("q", "a"))
		if first.State != jobs.Accepted || first.Created.IsZero() || string(first.Request) != "sealed" {
			t.Fatalf("submitted: %+v", first)
		}
		if got := get(t, s, second.ID).Ahead; got.Position != 2 || got.Wait != time.Second {
			t.Errorf("the second job's place is %+v", got)
		}
		if queues, err := s.Ready(t.Context()); err != nil || len(queues) != 1 || queues[0] != "q" {
			t.Errorf("ready: %v, %v", queues, err)
		}
		j := claim(t, s, "w", "q", time.Minute)
		if j.ID != first.ID || j.State != jobs.Running || j.Attempt != 1 || j.Fence != 1 {
			t.Fatalf("claimed %+v", j)
		}
		mine, err := s.Beat(t.Context(), "w", time.Minute, []jobs.Key{key(j), {ID: second.ID, Fence: 1}}, map[string]int{"q": 2})
		if err != nil || len(mine) != 1 || mine[0] != key(j) {
			t.Fatalf("beat: %v, %v", mine, err)
		}
		if load, err := s.Load(t.Context(), "q", "b"); err != nil || load.Depth != 2 || load.Slots != 2 || load.Tenants != 2 || load.Mine != 0 {
			t.Errorf("load: %+v, %v", load, err)
		}
		e := store(t, s, j, "the answer")
		for range 2 { // the answer to the first may be lost
			if err := s.Finish(t.Context(), key(j), e); err != nil {
				t.Fatal(err)
			}
		}
		j = get(t, s, first.ID)
		if j.State != jobs.Successful || j.Request != nil || j.Result != e.Result || j.Size != 10 || j.Expires.Sub(j.Finished) != time.Hour {
			t.Fatalf("ended: %+v", j)
		}
		blob, err := s.OpenBlob(t.Context(), j.Result)
		if err != nil {
			t.Fatal(err)
		}
		defer blob.Close()
		if text, err := io.ReadAll(io.NewSectionReader(blob, 4, 100)); err != nil || string(text) != "answer" {
			t.Errorf("the result from 4 is %q, %v", text, err)
		}
		list, err := s.List(t.Context(), "owner-a", jobs.Filter{Limit: 1})
		if err != nil || len(list) != 1 || list[0].ID != second.ID {
			t.Fatalf("the list begins with %v, %v", list, err)
		}
		list, err = s.List(t.Context(), "owner-a", jobs.Filter{Limit: 5, After: jobs.Cursor{Created: list[0].Created, ID: list[0].ID}})
		if err != nil || len(list) != 1 || list[0].ID != first.ID {
			t.Fatalf("the list goes on with %v, %v", list, err)
		}
		if err := s.Forget(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), first.ID); !errors.Is(err, jobs.ErrUnknown) {
			t.Errorf("after Forget: %v", err)
		}
		if _, err := s.OpenBlob(t.Context(), j.Result); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the result after Forget: %v", err)
		}
		if err := s.Forget(t.Context(), second.ID); !errors.Is(err, jobs.ErrUnknown) {
			t.Errorf("forgetting a job that has not ended: %v", err)
		}
	})
}

// A worker whose lease ran out ends nothing, whatever became of its job.
func TestAZombieChangesNothing(t *testing.T) {
	ends := map[string]func(t *testing.T, s *sqlstore.Store, id jobs.ID){
		"queued again": func(*testing.T, *sqlstore.Store, jobs.ID) {},
		"running": func(t *testing.T, s *sqlstore.Store, _ jobs.ID) {
			t.Helper()
			claim(t, s, "w2", "q", time.Minute)
		},
		"successful": func(t *testing.T, s *sqlstore.Store, _ jobs.ID) {
			t.Helper()
			j := claim(t, s, "w2", "q", time.Minute)
			if err := s.Finish(t.Context(), key(j), store(t, s, j, "new")); err != nil {
				t.Fatal(err)
			}
		},
		"failed": func(t *testing.T, s *sqlstore.Store, _ jobs.ID) {
			t.Helper()
			j := claim(t, s, "w2", "q", time.Minute)
			if err := s.Finish(t.Context(), key(j), jobs.Ending{State: jobs.Failed, Reason: jobs.ReasonUpstream}); err != nil {
				t.Fatal(err)
			}
		},
		"dismissed": func(t *testing.T, s *sqlstore.Store, id jobs.ID) {
			t.Helper()
			if _, err := s.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		},
	}
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		for name, move := range ends {
			for _, e := range []jobs.State{jobs.Successful, jobs.Failed, jobs.Accepted} {
				sub := submit(t, s, submission("q", "a"))
				old := claim(t, s, "w1", "q", 0)
				reap(t, s)
				move(t, s, sub.ID)
				before := get(t, s, sub.ID)
				ending := jobs.Ending{State: e, Reason: "x"}
				if e == jobs.Successful {
					ending = store(t, s, old, "old")
				}
				if err := s.Finish(t.Context(), key(old), ending); !errors.Is(err, jobs.ErrLost) {
					t.Errorf("%s: a zombie's %s gives %v", name, e, err)
				}
				after := get(t, s, sub.ID)
				if after.State != before.State || after.Fence != before.Fence || after.Result != before.Result || after.Reason != before.Reason {
					t.Errorf("%s: a zombie's %s made %+v of %+v", name, e, after, before)
				}
				if _, err := s.Cancel(t.Context(), sub.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func reap(t *testing.T, s *sqlstore.Store) {
	t.Helper()
	// A lease of nothing has run out when the clock's millisecond has passed.
	for range 1000 {
		n, err := s.Reap(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	t.Fatal("nothing was reaped")
}

// A request that kills its workers ends after its last attempt.
func TestAPoisonRequestEnds(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		id := submit(t, s, submission("q", "a")).ID
		for attempt := 1; attempt <= 3; attempt++ {
			if j := claim(t, s, "w", "q", 0); j.Attempt != attempt {
				t.Fatalf("attempt %d is counted %d", attempt, j.Attempt)
			}
			reap(t, s)
		}
		if j := get(t, s, id); j.State != jobs.Failed || j.Reason != jobs.ReasonLost || j.Attempt != 3 {
			t.Errorf("it ended as %+v", j)
		}
	})
}

// Shutdowns give two attempts back and then count; what was never sent always is.
func TestHandBacksAreBounded(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		id := submit(t, s, submission("q", "a")).ID
		for range 4 {
			if err := s.Finish(t.Context(), key(claim(t, s, "w", "q", time.Minute)), jobs.Ending{State: jobs.Accepted, Refund: true}); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []struct {
			attempt int
			state   jobs.State
		}{{0, jobs.Accepted}, {0, jobs.Accepted}, {1, jobs.Accepted}, {2, jobs.Accepted}, {3, jobs.Failed}} {
			if err := s.Finish(t.Context(), key(claim(t, s, "w", "q", time.Minute)), jobs.Ending{State: jobs.Accepted, HandBack: true}); err != nil {
				t.Fatal(err)
			}
			if j := get(t, s, id); j.Attempt != want.attempt || j.State != want.state {
				t.Errorf("after %d hand-backs: %s, attempt %d", i+1, j.State, j.Attempt)
			}
		}
	})
}

// However many submit at once, over several replicas, the limits hold.
func TestAdmissionIsExact(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		stores := []*sqlstore.Store{open(t)}
		if strings.HasSuffix(t.Name(), "postgres") {
			for range 3 {
				stores = append(stores, open(t))
			}
		}
		const depth = 20
		for range depth - 1 {
			submit(t, stores[0], submission("q", "a"))
		}
		var accepted, refused atomic.Int64
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				sub := submission("q", "a")
				sub.Limits.Depth = depth
				_, err := stores[i%len(stores)].Submit(t.Context(), sub)
				var full *jobs.FullError
				switch {
				case err == nil:
					accepted.Add(1)
				case errors.As(err, &full) && full.Projected > 0:
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if accepted.Load() != 1 || refused.Load() != 99 {
			t.Errorf("%d accepted, %d refused with a wait", accepted.Load(), refused.Load())
		}
	})
}

func TestAnIdempotencyKeySubmitsOnce(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		ids := make(chan jobs.ID, 16)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				sub := submission("q", "a")
				sub.IdemKey, sub.IdemSum = "key", "sum"
				j, err := s.Submit(t.Context(), sub)
				if err != nil {
					t.Error(err)
					return
				}
				ids <- j.ID
			})
		}
		wg.Wait()
		close(ids)
		id := <-ids
		for other := range ids {
			if other != id {
				t.Errorf("two jobs: %s and %s", id, other)
			}
		}
		sub := submission("q", "a")
		sub.IdemKey, sub.IdemSum = "key", "another"
		if _, err := s.Submit(t.Context(), sub); !errors.Is(err, jobs.ErrMismatch) {
			t.Errorf("the same key for another request gives %v", err)
		}
	})
}

func TestCancelEndsAJobAtOnce(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		queued := submit(t, s, submission("q", "a"))
		if j, err := s.Cancel(t.Context(), queued.ID); err != nil || j.State != jobs.Dismissed || j.Request != nil {
			t.Fatalf("cancelled: %+v, %v", j, err)
		}
		submit(t, s, submission("q", "a"))
		j := claim(t, s, "w", "q", time.Minute)
		e := store(t, s, j, "late")
		if j, err := s.Cancel(t.Context(), j.ID); err != nil || j.State != jobs.Dismissed {
			t.Fatalf("cancelled: %+v, %v", j, err)
		}
		if mine, err := s.Beat(t.Context(), "w", time.Minute, []jobs.Key{key(j)}, nil); err != nil || len(mine) != 0 {
			t.Errorf("its worker still holds %v, %v", mine, err)
		}
		if err := s.Finish(t.Context(), key(j), e); !errors.Is(err, jobs.ErrLost) {
			t.Errorf("its late result gives %v", err)
		}
		if j, err := s.Cancel(t.Context(), j.ID); err != nil || j.State != jobs.Dismissed || j.Result != "" {
			t.Errorf("cancelled again: %+v, %v", j, err)
		}
		if _, err := s.Cancel(t.Context(), jobs.NewID()); !errors.Is(err, jobs.ErrUnknown) {
			t.Errorf("an unknown job: %v", err)
		}
		swept, err := s.Sweep(t.Context(), nil, 0)
		if err != nil || swept.Orphans != 1 {
			t.Errorf("the late result was swept: %+v, %v", swept, err)
		}
	})
}

func TestSweep(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		end := func(keep time.Duration, text string) jobs.ID {
			sub := submission("q", "a")
			sub.Job.Keep = keep
			submit(t, s, sub)
			j := claim(t, s, "w", "q", time.Minute)
			if err := s.Finish(t.Context(), key(j), store(t, s, j, text)); err != nil {
				t.Fatal(err)
			}
			return j.ID
		}
		short, old, newer, unfetched := end(300*time.Millisecond, "short"), end(time.Hour, "0123456789"), end(time.Hour, "0123456789"), end(time.Hour, "0123456789")
		for _, id := range []jobs.ID{old, newer} {
			if err := s.Collected(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		overdue := submission("q2", "a")
		overdue.Job.Keep = 0
		submit(t, s, overdue)

		eventually(t, func() bool {
			if _, err := s.Sweep(t.Context(), nil, time.Hour); err != nil {
				t.Fatal(err)
			}
			j, err := s.Get(t.Context(), short)
			return err == nil && j.Gone && j.Result == ""
		})
		swept, err := s.Sweep(t.Context(), map[string]int64{"q": 25}, time.Hour)
		if err != nil || swept.Stored["q"] > 25 || swept.Evicted == 0 {
			t.Errorf("swept %+v, %v", swept, err)
		}
		if j := get(t, s, unfetched); j.Gone {
			t.Error("a result that nobody has fetched made room")
		}
		eventually(t, func() bool {
			if _, err := s.Sweep(t.Context(), nil, time.Hour); err != nil {
				t.Fatal(err)
			}
			_, err := s.Get(t.Context(), short)
			return errors.Is(err, jobs.ErrUnknown)
		})
	})
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if ok() {
			return
		}
	}
	t.Fatal("it did not come to pass")
}

// What a process of SQLite was running is taken up by its successor at once.
func TestSQLiteReclaimsItsOwn(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlstore.OpenSQLite(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	submit(t, s, submission("q", "a"))
	old := claim(t, s, "w", "q", time.Hour)
	if _, err := sqlstore.OpenSQLite(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second process: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = sqlstore.OpenSQLite(t.Context(), dir)
	opened(t, s, err)
	if j := claim(t, s, "w", "q", time.Hour); j.ID != old.ID || j.Attempt != 2 || j.Fence != 2 {
		t.Errorf("the successor has %+v", j)
	}
}

// Replicas that start together migrate once.
func TestMigrationsTakeTurns(t *testing.T) {
	dsn := server.dsn(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := sqlstore.OpenPostgres(t.Context(), dsn)
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	wg.Wait()
}

func TestBlobsAreWholeOrAbsent(t *testing.T) {
	engines(t, func(t *testing.T, open func(*testing.T) *sqlstore.Store) {
		t.Helper()
		t.Helper()
		s := open(t)
		w, err := s.Create(t.Context(), "b.1")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Repeat("0123456789abcdef", 50_000)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if _, err := s.OpenBlob(t.Context(), "b.1"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a blob that is being written: %v", err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		b, err := s.OpenBlob(t.Context(), "b.1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil || string(got) != text {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
		w, err = s.Create(t.Context(), "b.2")
		if err != nil {
			t.Fatal(err)
		}
		w.Abort()
		if _, err := s.OpenBlob(t.Context(), "b.2"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a blob that was given up: %v", err)
		}
	})
}
