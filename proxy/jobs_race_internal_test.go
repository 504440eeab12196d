package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// late is an upstream whose header comes about when the deadline passes.
type late struct{ after func() time.Duration }

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	t := time.NewTimer(l.after())
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader("answer")), ContentLength: 6, Request: r,
	}, nil
}

// counter is a caller that counts the answers it gets.
type counter struct {
	header  http.Header
	headers int
	bytes   int
}

func (c *counter) Header() http.Header { return c.header }
func (c *counter) WriteHeader(int)     { c.headers++ }
func (c *counter) Write(p []byte) (int, error) {
	if c.headers == 0 {
		c.headers++
	}
	c.bytes += len(p)
	return len(p), nil
}

type nobody struct{ released atomic.Int64 }

func (n *nobody) release()                { n.released.Add(1) }
func (n *nobody) answered(*http.Response) {}

// An answer whose header comes when the deadline passes is passed on or
// replaced by a job, never both and never neither.
func TestTheRefereeNeverPassesOnAndReplaces(t *testing.T) {
	const races = 100_000
	u, err := newUpstream(UpstreamConfig{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	var n atomic.Int64
	u.proxy.Transport = late{func() time.Duration {
		return time.Millisecond + time.Duration(n.Add(1)%40-20)*20*time.Microsecond
	}}
	var passed, replaced atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range races/64 + 1 {
				w := &counter{header: http.Header{}}
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
				if err != nil {
					t.Error(err)
					return
				}
				owner := &nobody{}
				x := &exchange{owner: owner, deadline: time.Now().Add(time.Millisecond)}
				u.forward(w, r, x)
				switch {
				case x.sent && x.fault == faultNone && w.headers == 1 && w.bytes == 6:
					passed.Add(1)
				case !x.sent && x.fault == faultDeadline && w.headers == 0 && w.bytes == 0:
					replaced.Add(1) // now, and only now, the caller gets its 202
				default:
					t.Errorf("sent %v, fault %d, %d headers, %d bytes", x.sent, x.fault, w.headers, w.bytes)
				}
				if owner.released.Load() != 1 {
					t.Errorf("released %d times", owner.released.Load())
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d passed on, %d replaced", passed.Load(), replaced.Load())
	if passed.Load() == 0 || replaced.Load() == 0 {
		t.Error("the races had only one winner")
	}
}
