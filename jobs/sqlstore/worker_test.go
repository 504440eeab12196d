package sqlstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
)

// The workers are this test's own binary, told by these variables what to be.
const (
	envStore  = "GEOPROXY_TEST_STORE"  // a folder, or the URL of a Postgres
	envKill   = "GEOPROXY_TEST_KILL"   // where to kill itself; empty for nowhere
	envSubmit = "GEOPROXY_TEST_SUBMIT" // how many jobs to submit
	envKeep   = "GEOPROXY_TEST_KEEP"   // how long their results are kept
	envReal   = "GEOPROXY_TEST_REAL"   // anything: the leases that are used in earnest
)

var quick = jobs.Timing{
	Lease: 1500 * time.Millisecond, Beat: 200 * time.Millisecond, Tick: 50 * time.Millisecond,
	Sweep: 100 * time.Millisecond, OrphanAge: time.Minute,
}

func openStore(ctx context.Context, where string) (*sqlstore.Store, error) {
	if strings.HasPrefix(where, "postgres://") {
		return sqlstore.OpenPostgres(ctx, where)
	}
	return sqlstore.OpenSQLite(ctx, where)
}

// runAsWorker runs this binary as a process that submits and runs jobs, says so
// line by line, and kills itself where it was told to.
func runAsWorker() (int, bool) {
	where := os.Getenv(envStore)
	if where == "" {
		return 0, false
	}
	ctx := context.Background()
	inner, err := openStore(ctx, where)
	if err != nil {
		fmt.Println("error", err)
		return 1, true
	}
	defer inner.Close()
	point := os.Getenv(envKill)
	if point == "expire" {
		inner.OnRemove(func(name string) {
			if !strings.HasSuffix(name, ".body") {
				die()
			}
		})
	}
	s := &deadly{Store: inner, point: point}
	timing := quick
	if point == "real leases" || os.Getenv(envReal) != "" {
		timing = jobs.Timing{}
	}
	engine := jobs.NewEngine(jobs.EngineConfig{
		Store: s, Execute: s.execute, Worker: strconv.Itoa(os.Getpid()), Timing: timing,
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	engine.SetQueues(map[string]jobs.Queue{"q": {Workers: 3}})
	keep, err := time.ParseDuration(os.Getenv(envKeep))
	if err != nil {
		keep = time.Hour
	}
	n, _ := strconv.Atoi(os.Getenv(envSubmit))
	for i := 0; i < n || slices.Contains(killPoints, point); i++ {
		if i >= n {
			time.Sleep(20 * time.Millisecond) // a replica took what it was to die over
		}
		sub := submission("q", "a")
		sub.Job.Keep = keep
		j, err := engine.Submit(ctx, sub)
		if err != nil {
			fmt.Println("error", err)
			continue
		}
		fmt.Println("accepted", j.ID)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test lets go
	stop, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	engine.Stop(stop)
	return 0, true
}

// deadly is a store around which a process dies.
type deadly struct {
	*sqlstore.Store
	point string
	reaps atomic.Int64
}

func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }

func (s *deadly) at(point string) {
	if s.point == point {
		die()
	}
}

// content is what a job's result must be.
func content(id jobs.ID) string { return strings.Repeat(string(id)+" ", 20_000) }

// execute fails the first attempt of every other job for a moment, and else
// writes the result.
func (s *deadly) execute(ctx context.Context, j *jobs.Job) jobs.Ending {
	if s.point == "real leases" {
		<-ctx.Done()
		return jobs.Ending{State: jobs.Accepted}
	}
	if j.Attempt == 1 && j.ID[0]%2 == 0 {
		return jobs.Ending{State: jobs.Accepted, Delay: 50 * time.Millisecond}
	}
	name, text := fmt.Sprintf("%s.%d", j.ID, j.Fence), content(j.ID)
	w, err := s.Create(ctx, name)
	if err != nil {
		return jobs.Ending{State: jobs.Accepted}
	}
	defer w.Abort()
	for i, half := range []string{text[:len(text)/2], text[len(text)/2:]} {
		if _, err := io.WriteString(w, half); err != nil {
			return jobs.Ending{State: jobs.Accepted}
		}
		if i == 0 {
			s.at("in the body")
		}
	}
	s.at("before the blob is whole")
	if err := w.Commit(); err != nil {
		return jobs.Ending{State: jobs.Accepted}
	}
	return jobs.Ending{State: jobs.Successful, Result: name, Size: int64(len(text))}
}

func (s *deadly) Submit(ctx context.Context, sub jobs.Submission) (*jobs.Job, error) {
	s.at("before the submission")
	j, err := s.Store.Submit(ctx, sub)
	s.at("after the submission")
	return j, err
}

func (s *deadly) Claim(ctx context.Context, worker, queue string, n int, lease time.Duration) ([]*jobs.Job, error) {
	list, err := s.Store.Claim(ctx, worker, queue, n, lease)
	if len(list) > 0 {
		s.at("after the claim")
	}
	return list, err
}

func (s *deadly) Finish(ctx context.Context, k jobs.Key, e jobs.Ending) error {
	before, after := "before the end", "after the end"
	if e.State == jobs.Accepted {
		before, after = "before it is queued again", "after it is queued again"
	}
	s.at(before)
	err := s.Store.Finish(ctx, k, e)
	s.at(after)
	return err
}

func (s *deadly) Reap(ctx context.Context) (int, error) {
	third := s.reaps.Add(1) == 3
	if third {
		s.at("before reaping")
	}
	n, err := s.Store.Reap(ctx)
	if third {
		s.at("after reaping")
	}
	return n, err
}

var killPoints = []string{
	"before the submission", "after the submission", "after the claim", "in the body", "before the blob is whole",
	"before the end", "after the end", "before it is queued again", "after it is queued again", "before reaping", "after reaping",
}

// worker is a process under test.
type worker struct {
	cmd      *exec.Cmd
	stdin    io.Closer
	accepted chan jobs.ID
	ended    chan struct{}
}

func startWorker(t *testing.T, where, kill string, submit int, keep time.Duration) *worker {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envStore+"="+where, envKill+"="+kill, envSubmit+"="+strconv.Itoa(submit), envKeep+"="+keep.String())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd: cmd, stdin: stdin, accepted: make(chan jobs.ID, submit+1), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		defer close(w.accepted)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			what, rest, _ := strings.Cut(lines.Text(), " ")
			if what == "accepted" {
				w.accepted <- jobs.ID(rest)
			} else {
				t.Log(lines.Text())
			}
		}
		_ = cmd.Wait()
	}()
	return w
}

func (w *worker) stop() {
	_ = w.stdin.Close()
	<-w.ended
}

// Wherever a process is killed, every job that it accepted ends, with a whole
// result or none, and nothing is left over.
func TestKillPoints(t *testing.T) {
	stores := map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { t.Helper(); return t.TempDir() },
		"postgres": func(t *testing.T) string { t.Helper(); return server.dsn(t) },
	}
	for name, place := range stores {
		for _, point := range killPoints {
			t.Run(name+" "+point, func(t *testing.T) {
				t.Parallel()
				where := place(t)
				victim := startWorker(t, where, point, 6, time.Hour)
				var other *worker // a replica that lives on, where there may be one
				if name == "postgres" {
					other = startWorker(t, where, "", 2, time.Hour)
					defer other.stop()
				}
				var ids []jobs.ID
				for id := range victim.accepted {
					ids = append(ids, id)
				}
				<-victim.ended
				if s := victim.cmd.ProcessState.String(); s != "signal: killed" {
					t.Fatalf("the process ended by %s and not where it was to be killed", s)
				}
				if other == nil {
					other = startWorker(t, where, "", 2, time.Hour)
				}
				ids = append(ids, <-other.accepted, <-other.accepted)
				if name == "sqlite" {
					// Nobody else may look while it runs; it runs until it has nothing left.
					time.Sleep(500 * time.Millisecond)
					for try := 0; ; try++ {
						other.stop()
						if allEnded(t, where, ids) {
							break
						}
						if try == 20 {
							t.Fatal("jobs do not end")
						}
						other = startWorker(t, where, "", 0, time.Hour)
						time.Sleep(500 * time.Millisecond)
					}
				} else {
					eventually(t, func() bool { return allEnded(t, where, ids) })
				}
				checkInvariants(t, where, ids)
			})
		}
	}
}

func allEnded(t *testing.T, where string, ids []jobs.ID) bool {
	t.Helper()
	s, err := openStore(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range ids {
		if j := get(t, s, id); !j.State.Ended() {
			return false
		}
	}
	return true
}

func checkInvariants(t *testing.T, where string, ids []jobs.ID) {
	t.Helper()
	s, err := openStore(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// A job whose 202 was never sent may be there as well.
	all, err := s.List(t.Context(), "owner-a", jobs.Filter{Limit: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[jobs.ID]bool)
	results := 0
	for _, j := range all {
		known[j.ID] = true
		if !j.State.Ended() {
			continue // of a submission that nobody was told of: it is still to run
		}
		if j.Attempt > j.MaxAttempts || (j.State == jobs.Successful) != (j.Result != "") {
			t.Errorf("%+v", j)
		}
		if j.State != jobs.Successful {
			continue
		}
		results++
		b, err := s.OpenBlob(t.Context(), j.Result)
		if err != nil {
			t.Errorf("the result of %s: %v", j.ID, err)
			continue
		}
		text, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		if err != nil || string(text) != content(j.ID) || j.Size != int64(len(text)) {
			t.Errorf("the result of %s: %d bytes, %v", j.ID, len(text), err)
		}
		_ = b.Close()
	}
	for _, id := range ids {
		if !known[id] {
			t.Errorf("%s was accepted and is lost", id)
		}
	}
	if _, err := s.Sweep(t.Context(), nil, -time.Hour); err != nil {
		t.Fatal(err)
	}
	blobs, err := s.Blobs(t.Context())
	if err != nil || len(blobs) > len(all) || len(blobs) < results {
		t.Errorf("%d blobs are left of %d results, %v", len(blobs), results, err)
	}
}

// A process that is killed between a result's row and its blob leaves no blob.
func TestKilledWhileExpiring(t *testing.T) {
	for name, place := range map[string]func() string{"sqlite": t.TempDir, "postgres": func() string { return server.dsn(t) }} {
		t.Run(name, func(t *testing.T) {
			where := place()
			victim := startWorker(t, where, "expire", 4, 300*time.Millisecond)
			defer victim.stop()
			<-victim.ended
			s, err := openStore(t.Context(), where)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			eventually(t, func() bool {
				if _, err := s.Sweep(t.Context(), nil, -time.Hour); err != nil {
					t.Fatal(err)
				}
				blobs, err := s.Blobs(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for id := range victim.accepted {
					if _, err := s.Get(t.Context(), id); err != nil && !errors.Is(err, jobs.ErrUnknown) {
						t.Fatal(err)
					}
				}
				return len(blobs) == 0
			})
		})
	}
}
