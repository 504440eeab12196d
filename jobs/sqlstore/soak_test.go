//go:build soak

package sqlstore_test

import (
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
)

// TestSoakTakeovers is TestTakeover twenty times: run with -v for the median.
func TestSoakTakeovers(t *testing.T) {
	t.Setenv("GEOPROXY_SOAK_TAKEOVERS", "20")
	TestTakeover(t)
}

// cutter stands between a replica and Postgres and cuts the connection at
// random commits: before they get there, or after, so that only the answer is
// lost.
type cutter struct {
	to    string
	every int
	seen  atomic.Int64
	cuts  atomic.Int64
}

func (c *cutter) serve(t *testing.T, l net.Listener) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", c.to)
		if err != nil {
			t.Error(err)
			return
		}
		go func() {
			_, _ = io.Copy(from, to)
			_ = from.Close()
		}()
		go func() {
			defer to.Close()
			defer from.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := from.Read(buf)
				text := strings.ToLower(string(buf[:n]))
				commit := strings.Contains(text, "commit") || strings.Contains(text, "update geoproxy_job")
				cut := commit && c.seen.Add(1)%int64(c.every) == 0
				if cut && rand.N(2) == 0 {
					c.cuts.Add(1)
					return // it never gets there
				}
				if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
					return
				}
				if cut {
					c.cuts.Add(1)
					time.Sleep(20 * time.Millisecond) // it is done, and nobody is told
					return
				}
			}
		}()
	}
}

// TestSoakChaos has three replicas with real leases, one of them behind a
// connection that is cut at commits, killed and stopped at random, among them
// what a poison request would do: 300 kills, or as many as
// GEOPROXY_SOAK_KILLS says.
func TestSoakChaos(t *testing.T) {
	t.Setenv(envReal, "1")
	kills := 300
	if n, err := strconv.Atoi(os.Getenv("GEOPROXY_SOAK_KILLS")); err == nil {
		kills = n
	}
	dsn := server.dsn(t)
	direct, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &cutter{to: direct.Host, every: 40}
	go c.serve(t, l)
	cut := *direct
	cut.Host = l.Addr().String()
	places := []string{dsn, dsn, cut.String()}

	var mu sync.Mutex
	var ids []jobs.ID
	start := func(i, n int) *worker {
		w := startWorker(t, places[i], "", n, time.Hour)
		go func() {
			for id := range w.accepted {
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			}
		}()
		return w
	}
	workers := []*worker{start(0, 20), start(1, 20), start(2, 20)}
	for killed := 0; killed < kills; {
		time.Sleep(time.Duration(200+rand.N(1500)) * time.Millisecond)
		i := rand.N(len(workers))
		if rand.N(6) == 0 { // a pause that is longer than its lease
			_ = workers[i].cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(1000+rand.N(2000)) * time.Millisecond)
			_ = workers[i].cmd.Process.Signal(syscall.SIGCONT)
			continue
		}
		_ = workers[i].cmd.Process.Kill()
		workers[i].stop()
		killed++
		workers[i] = start(i, 5)
	}
	s, err := sqlstore.OpenPostgres(t.Context(), dsn)
	opened(t, s, err)
	deadline := time.Now().Add(5 * time.Minute)
	for {
		mu.Lock()
		left := 0
		for _, id := range ids {
			j, err := s.Get(t.Context(), id)
			if err != nil {
				t.Errorf("%s was accepted: %v", id, err)
			} else if !j.State.Ended() {
				left++
			}
		}
		n := len(ids)
		mu.Unlock()
		if left == 0 {
			t.Logf("%d jobs, %d kills, %d cuts", n, kills, c.cuts.Load())
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d jobs have not ended", left, n)
		}
		time.Sleep(time.Second)
	}
	for _, w := range workers {
		w.stop()
	}
	mu.Lock()
	defer mu.Unlock()
	checkInvariants(t, dsn, ids)
}
