// Package integration_test holds geoproxy to what it promises, from outside:
// the built binary, real sockets, real signals.
package integration_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

func TestMain(m *testing.M) { os.Exit(binary.Main(m)) }

// upstream is a backend that counts what reaches it and takes its time.
type upstream struct {
	*httptest.Server
	served  atomic.Int64 // requests that have reached it
	running atomic.Int64 // of those, the ones not answered yet
	most    atomic.Int64 // the most that ran at once

	mu    sync.Mutex
	order []string // the parameter n of each request, as they came
}

// slowUpstream answers every request after a time.
func slowUpstream(t *testing.T, takes time.Duration) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.served.Add(1)
		u.mu.Lock()
		u.order = append(u.order, r.URL.Query().Get("n"))
		u.mu.Unlock()
		running := u.running.Add(1)
		defer u.running.Add(-1)
		for most := u.most.Load(); running > most && !u.most.CompareAndSwap(most, running); {
			most = u.most.Load()
		}
		time.Sleep(takes)
		w.Header().Set("Content-Type", "application/geo+json")
		_, _ = io.WriteString(w, `{"type":"FeatureCollection","features":[]}`)
	}))
	t.Cleanup(u.Close)
	return u
}

// answer is what a caller got.
type answer struct {
	status int
	header http.Header
	body   string
	took   time.Duration
	err    error
}

// client has as many connections as there are callers.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 512}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// call asks once. header is pairs of names and values.
func call(c *http.Client, url string, header ...string) answer {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return answer{err: err}
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	began := time.Now()
	got, err := c.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	return answer{status: got.StatusCode, header: got.Header, body: string(body), took: time.Since(began), err: err}
}
