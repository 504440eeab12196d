package bed

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Recorder stands between whoever asks and a server, and writes down what the
// server is asked.
type Recorder struct {
	Address string // host:port

	mu  sync.Mutex
	log []string // host, then method, URI and a digest of the body
}

// Record puts a recorder before a server, until the test ends.
func Record(t *testing.T, server string) *Recorder {
	t.Helper()
	r := &Recorder{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", server
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Host = p.In.Host
		},
		FlushInterval: -1,
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			t.Errorf("%s %s: %v", in.Method, in.RequestURI, err)
		}
		in.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		r.log = append(r.log, fmt.Sprintf("%s %s %s %x", in.Host, in.Method, in.RequestURI, sha256.Sum256(body)))
		r.mu.Unlock()
		forward.ServeHTTP(w, in)
	}))
	t.Cleanup(front.Close)
	r.Address = front.Listener.Addr().String()
	return r
}

// Asked gives what was asked since the last call, sorted, where every request
// has to have named the host given, and has it replaced by "HOST".
func (r *Recorder) Asked(t *testing.T, host string) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, line := range r.log {
		named, _, _ := strings.Cut(line, " ")
		if named != host {
			t.Errorf("asked past geoproxy, or with its name lost: %s", line)
		}
		r.log[i] = strings.ReplaceAll(line, host, "HOST")
	}
	log := r.log
	r.log = nil
	slices.Sort(log)
	return log
}
