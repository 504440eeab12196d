package proxy_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/proxy"
	"github.com/geoproxy/geoproxy/shed"
)

// TestSeatsOfCallersThatLeave: in front of an upstream that does not stop, a
// caller that leaves leaves its seat behind until the work has ended, and the
// next in line does not get it beside work that still runs.
func TestSeatsOfCallersThatLeave(t *testing.T) {
	t.Parallel()
	no := false
	for name, c := range map[string]struct {
		cancels *bool
		peak    int64
	}{
		"an upstream that stops":         {nil, 2}, // this one does not, but is said to
		"an upstream that does not stop": {&no, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c2 *proxy.Config) {
				c2.Gates["gis"] = shed.GateConfig{Seats: 1}
				up := c2.Upstreams["up"]
				up.Cancels = c.cancels
				c2.Upstreams["up"] = up
				c2.Routes[0].Classes = map[string]proxy.ClassConfig{"read": {Admission: 10 * time.Second}}
			})
			var now, peak atomic.Int64
			entered, work := make(chan struct{}, 2), make(chan struct{})
			b.handle(func(http.ResponseWriter, *http.Request) {
				n := now.Add(1)
				defer now.Add(-1)
				for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
				}
				entered <- struct{}{}
				<-work
			})
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.front.URL+"/x", http.NoBody)
				if err != nil {
					t.Error(err)
					return
				}
				if res, err := b.front.Client().Do(req); err == nil {
					_ = res.Body.Close()
					t.Error("the caller left")
				}
			}()
			<-entered
			leave()
			<-left

			answered := make(chan answer, 1)
			go func() { answered <- b.get("/x") }()
			if c.peak == 2 {
				<-entered // beside the first, which still works
			} else {
				b.eventually("the next one waits", func() bool { return b.gauge("geoproxy_gate_waiting") == 1 })
			}
			close(work)
			if a := <-answered; a.status != http.StatusOK {
				t.Errorf("%d %s", a.status, a.body)
			}
			if peak.Load() != c.peak {
				t.Errorf("the upstream worked on %d at once; want %d", peak.Load(), c.peak)
			}
			b.eventually("the one that left is counted", func() bool { return b.count("gone") == 1 && b.gauge("geoproxy_gate_seats_held") == 0 })
		})
	}
}

// TestStayingEndsAtTheDeadline: what nobody waits for is not read for ever.
func TestStayingEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	no := false
	b := newBench(t, func(c *proxy.Config) {
		up := c.Upstreams["up"]
		up.Cancels = &no
		c.Upstreams["up"] = up
		c.Routes[0].Classes = map[string]proxy.ClassConfig{"read": {Deadline: 300 * time.Millisecond, Admission: 100 * time.Millisecond}}
	})
	started, ended := make(chan struct{}), make(chan struct{})
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		close(started)
		<-r.Context().Done() // an answer without an end
	})
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.front.URL+"/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	<-started
	leave()
	_ = res.Body.Close()
	<-ended
	b.eventually("the seat is free", func() bool { return b.gauge("geoproxy_gate_seats_held") == 0 })
}

// eventually waits for what has no event of its own.
func (b *bench) eventually(what string, holds func() bool) {
	b.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.After(20 * time.Second); !holds(); {
		select {
		case <-ticker.C:
		case <-end:
			b.Fatalf("it is not so that %s", what)
		}
	}
}
