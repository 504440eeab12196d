// Package maps_test puts the built geoproxy in front of real map servers and
// uses them through it as their users do: with GDAL, OWSLib and ogr2ogr.
package maps_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/geoproxy/geoproxy/test/bed"
	"github.com/geoproxy/geoproxy/test/binary"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer bed.Stop()
	return binary.Main(m)
}

// inFront starts geoproxy with four seats in front of an address.
func inFront(t *testing.T, address string) *binary.Proxy {
	t.Helper()
	return binary.Start(t, binary.Path(t), fmt.Sprintf("routes:\n- upstream: http://%s\n  gate: { seats: %d }\n", address, bed.Workers))
}

// recorder stands between whoever asks and a server, and writes down what the
// server is asked.
type recorder struct {
	address string

	mu  sync.Mutex
	log []string // host, then method, URI and a digest of the body
}

func record(t *testing.T, server string) *recorder {
	t.Helper()
	r := &recorder{}
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
	r.address = front.Listener.Addr().String()
	return r
}

// asked gives what was asked since the last call, sorted, where every request
// has to have named the host given, and has it replaced by "HOST".
func (r *recorder) asked(t *testing.T, host string) []string {
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
