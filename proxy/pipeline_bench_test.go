package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/proxy"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// everythingOn is a proxy that identifies, routes, prices, draws from a bucket
// and enters a gate for each request.
func everythingOn(b *testing.B, upstream string) *proxy.Proxy {
	b.Helper()
	p, err := proxy.New(proxy.Config{
		Gates:     map[string]shed.GateConfig{"gis": {Seats: 1000}},
		Upstreams: map[string]proxy.UpstreamConfig{"up": {URL: upstream, Gate: proxy.GateRef{Name: "gis"}}},
		Routes: []proxy.RouteConfig{{
			Name: "main", Upstream: "up", Config: classify.Config{Family: "auto"},
			Rates: []ratelimit.Rate{{Name: "fair-use", Tokens: 1e6, Every: time.Second, Burst: 1e6}},
		}},
	}, proxy.Parts{Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Secret: []byte("a secret of the tests")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(p.Close)
	return p
}

const pricedPath = "/ogc/collections/roads/items?bbox=4.80,52.30,4.95,52.42&limit=50"

// BenchmarkDecide is the whole decision: a priced read with a claimed tenant,
// one policy (two buckets) and one gate.
func BenchmarkDecide(b *testing.B) {
	p := everythingOn(b, "http://127.0.0.1:1")
	header := http.Header{"X-Api-Key": {"tenant-1"}, "User-Agent": {"bench"}, "Accept": {"application/geo+json"}}
	target, err := url.Parse(pricedPath)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ask := proxy.Ask{Arrived: time.Now()}
		ask.Method, ask.Host, ask.Path, ask.Query, ask.Header = http.MethodGet, "maps.example.org", target.EscapedPath(), target.RawQuery, header
		v := p.Admission().Decide(b.Context(), &ask)
		if !v.Admitted() {
			b.Fatal("refused")
		}
		v.Release()
	}
}

// BenchmarkPipelineAdds measures what geoproxy adds to a tuned
// httputil.ReverseProxy that does nothing: CPU and allocations a request, in
// alternating rounds of one run, over loopback. The figures are medians of
// differences between neighbouring rounds; client and upstream cost both alike.
func BenchmarkPipelineAdds(b *testing.B) {
	up := rawUpstream(b, 2<<10)
	ours, bare := serveAlike(b, everythingOn(b, up)), serveAlike(b, tunedProxy(b, up))

	round := func(base string) (cpu, allocs float64) {
		const requests, workers = 1600, 8
		var before, after runtime.MemStats
		var all sync.WaitGroup
		start := make(chan struct{})
		clients := make([]*rawClient, workers)
		for i := range clients {
			clients[i] = dialRaw(b, base)
			all.Go(func() {
				<-start
				for range requests / workers {
					clients[i].get(b)
				}
			})
		}
		runtime.ReadMemStats(&before)
		began := processCPU(b)
		close(start)
		all.Wait()
		spent := processCPU(b) - began
		runtime.ReadMemStats(&after)
		for _, c := range clients {
			c.close()
		}
		return float64(spent.Nanoseconds()) / requests / 1000, float64(after.Mallocs-before.Mallocs) / requests
	}
	round(ours)
	round(bare)
	var cpus, allocs, bases []float64
	for b.Loop() {
		bareCPU, bareAllocs := round(bare)
		ourCPU, ourAllocs := round(ours)
		cpus, allocs, bases = append(cpus, ourCPU-bareCPU), append(allocs, ourAllocs-bareAllocs), append(bases, bareCPU)
	}
	b.ReportMetric(median(cpus), "added-cpu-us/req")
	b.ReportMetric(median(allocs), "added-allocs/req")
	b.ReportMetric(median(bases), "bare-cpu-us/req")
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

func processCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serveAlike serves h with the limits and time-outs that geoproxy serves with,
// whose timers cost both alike.
func serveAlike(b *testing.B, h http.Handler) string {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := proxy.NewServer(h, proxy.LimitsConfig{}, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(proxy.Guard(l, 0)) // until it is closed
	}()
	b.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// rawUpstream answers every request with size bytes and, like rawClient, spends
// next to nothing, whatever headers it is sent.
func rawUpstream(b *testing.B, size int) string {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/geo+json\r\nContent-Length: %d\r\nDate: Mon, 30 Nov 2026 12:00:00 GMT\r\n\r\n", size)
	answer = append(answer, make([]byte, size)...)
	serve := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		for r := bufio.NewReaderSize(conn, 16<<10); ; {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) > 2 {
				continue
			}
			if _, err := conn.Write(answer); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + l.Addr().String()
}

// rawClient sends one request over and over and allocates nothing, so that
// what it would spend on an answer's headers is not taken for the proxy's.
type rawClient struct {
	conn    net.Conn
	reader  *bufio.Reader
	request []byte
}

func dialRaw(b *testing.B, base string) *rawClient {
	b.Helper()
	host := strings.TrimPrefix(base, "http://")
	conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", host)
	if err != nil {
		b.Fatal(err)
	}
	request := "GET " + pricedPath + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: bench\r\nAccept: application/geo+json\r\nX-Api-Key: tenant-1\r\n\r\n"
	return &rawClient{conn: conn, reader: bufio.NewReaderSize(conn, 16<<10), request: []byte(request)}
}

func (c *rawClient) get(b *testing.B) {
	b.Helper()
	if _, err := c.conn.Write(c.request); err != nil {
		b.Error(err)
		return
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			b.Error(err)
			return
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
			b.Errorf("%s", line)
			return
		}
		if n, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			for _, digit := range bytes.TrimSpace(n) {
				length = 10*length + int(digit-'0')
			}
		}
		if len(line) <= 2 {
			break
		}
	}
	if _, err := c.reader.Discard(length); err != nil {
		b.Error(err)
	}
}

func (c *rawClient) close() { _ = c.conn.Close() }

// tunedProxy is the peer: httputil.ReverseProxy with idle connections, a
// buffer pool and Rewrite, and nothing else.
func tunedProxy(b *testing.B, upstream string) http.Handler {
	b.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, DisableCompression: true}
	b.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
			r.SetXForwarded()
		},
		Transport:  transport,
		BufferPool: &bufferPool{},
	}
}

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, 32<<10)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }
