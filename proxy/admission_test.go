package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/proxy"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// bench is a proxy with its upstream on loopback.
type bench struct {
	*testing.T
	proxy    *proxy.Proxy
	front    *httptest.Server
	registry *prometheus.Registry
	calls    atomic.Int64
	handler  atomic.Pointer[http.HandlerFunc]
	config   proxy.Config
}

// rules of the bench: the parameter s is the estimate in seconds.
var rules = []classify.Rule{
	{Op: "compute", Class: "compute", When: `request.path == "/compute"`, Seconds: "double(query.s)"},
	{Op: "map", Class: "map", When: `request.path == "/map"`, Seconds: "double(query.s)"},
	{Op: "meta", Class: "metadata", When: `request.path == "/meta"`, Seconds: "0.01"},
	{Op: "read", Class: "read", When: "true", Seconds: "0.1"},
}

func newBench(t *testing.T, change func(*proxy.Config)) *bench {
	t.Helper()
	return newBenchWith(t, change, nil)
}

func newBenchWith(t *testing.T, change func(*proxy.Config), jobs *proxy.JobParts) *bench {
	t.Helper()
	b := &bench{T: t, registry: prometheus.NewRegistry()}
	b.handle(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.calls.Add(1)
		(*b.handler.Load())(w, r)
	}))
	t.Cleanup(up.Close)
	b.config = proxy.Config{
		Gates:     map[string]shed.GateConfig{"gis": {Seats: 2, Queue: 4}},
		Upstreams: map[string]proxy.UpstreamConfig{"up": {URL: up.URL, Gate: proxy.GateRef{Name: "gis"}}},
		Routes:    []proxy.RouteConfig{{Name: "main", Upstream: "up", Config: classify.Config{Family: "http", Rules: rules}}},
	}
	if change != nil {
		change(&b.config)
	}
	var err error
	b.proxy, err = proxy.New(b.config, proxy.Parts{
		Registry: b.registry, Log: slog.New(slog.DiscardHandler), Secret: []byte("a secret of the tests"), Jobs: jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.proxy.Close)
	b.front = httptest.NewUnstartedServer(b.proxy)
	b.front.Start()
	t.Cleanup(b.front.Close)
	return b
}

func (b *bench) handle(h http.HandlerFunc) { b.handler.Store(&h) }

// answer is an answer read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

func (b *bench) get(path string, header ...string) answer {
	b.Helper()
	return b.do(http.MethodGet, path, header...)
}

func (b *bench) do(method, path string, header ...string) answer {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, b.front.URL+path, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := b.front.Client().Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

func (b *bench) wantRefusal(a answer, status int, reason string) {
	b.Helper()
	if a.status != status || a.header.Get("Geoproxy-Reason") != reason {
		b.Errorf("%d %q; want %d %q\n%s", a.status, a.header.Get("Geoproxy-Reason"), status, reason, a.body)
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Envoy-Ratelimited") != "true" {
		b.Errorf("a refusal without no-store or x-envoy-ratelimited: %v", a.header)
	}
}

func rate(name string, tokens float64, every time.Duration, burst float64) ratelimit.Rate {
	return ratelimit.Rate{Name: name, Tokens: tokens, Every: every, Burst: burst}
}

func TestAnAnswerPassesWithOurHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) { c.Routes[0].Rates = []ratelimit.Rate{rate("fair-use", 10, time.Second, 50)} })
	a := b.get("/x")
	if a.status != http.StatusOK || a.body != "answer" {
		t.Fatalf("%d %q", a.status, a.body)
	}
	item, err := httpsfv.UnmarshalItem(a.header["Geoproxy-Estimate"])
	if err != nil || item.Value != 0.1 {
		t.Errorf("Geoproxy-Estimate %q: %v, %v", a.header["Geoproxy-Estimate"], item.Value, err)
	}
	if op, _ := item.Params.Get("op"); op != httpsfv.Token("read") {
		t.Errorf("op %v", op)
	}
	limits, err := httpsfv.UnmarshalList(a.header["Ratelimit"])
	if err != nil || len(limits) != 1 || limits[0].(httpsfv.Item).Value != "fair-use" {
		t.Fatalf("RateLimit %q: %v", a.header["Ratelimit"], err)
	}
	if left, _ := limits[0].(httpsfv.Item).Params.Get("r"); left != int64(49) {
		t.Errorf("r=%v; want 49", left)
	}
	policies, err := httpsfv.UnmarshalList(a.header["Ratelimit-Policy"])
	if err != nil || len(policies) != 1 {
		t.Fatalf("RateLimit-Policy %q: %v", a.header["Ratelimit-Policy"], err)
	}
	q, _ := policies[0].(httpsfv.Item).Params.Get("q")
	w, _ := policies[0].(httpsfv.Item).Params.Get("w")
	if q != int64(50) || w != int64(5) {
		t.Errorf("q=%v w=%v; want 50, 5", q, w)
	}
	if timing := a.header.Get("Server-Timing"); !strings.Contains(timing, "admission;dur=") || !strings.Contains(timing, "upstream;dur=") {
		t.Errorf("Server-Timing %q", timing)
	}
	if a.header.Get("Geoproxy-Reason") != "" {
		t.Error("an answer has no reason")
	}
}

func TestHeadersStayOffSharedAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for control, ours := range map[string]bool{
		"": true, "private, max-age=60": true, "no-store": true,
		"public": false, "max-age=60": false, "s-maxage=60": false,
	} {
		b.handle(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", control) })
		if got := b.get("/x").header.Get("Geoproxy-Estimate") != ""; got != ours {
			t.Errorf("Cache-Control %q: our headers are there: %t", control, got)
		}
	}
	b.handle(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "max-age=60") })
	if b.get("/x", "Authorization", "Bearer x").header.Get("Geoproxy-Estimate") == "" {
		t.Error("an answer to a request with credentials is nobody else's")
	}
}

func TestRateRefusesAndSaysWhen(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) { c.Routes[0].Rates = []ratelimit.Rate{rate("slow", 1, time.Minute, 2)} })
	b.get("/x")
	b.get("/x")
	first, second := b.get("/x"), b.get("/x")
	b.wantRefusal(first, http.StatusTooManyRequests, "rate")
	if first.body != second.body {
		t.Errorf("equal refusals differ:\n%s\n%s", first.body, second.body)
	}
	wait, err := strconv.Atoi(first.header.Get("Retry-After"))
	if err != nil || wait < 55 || wait > 60 {
		t.Errorf("Retry-After %q", first.header.Get("Retry-After"))
	}
	if b.calls.Load() != 2 {
		t.Errorf("the upstream saw %d calls; want 2", b.calls.Load())
	}
}

func TestCostThatNeverFits(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		r := rate("seconds", 1, time.Second, 3)
		r.Unit = "second"
		c.Routes[0].Rates = []ratelimit.Rate{r}
	})
	a := b.get("/compute?s=4.5")
	b.wantRefusal(a, http.StatusUnprocessableEntity, "never-fits")
	if a.header.Get("Retry-After") != "" {
		t.Error("waiting cannot help, so there is no Retry-After")
	}
	if b.calls.Load() != 0 {
		t.Error("a refused request touched the upstream")
	}
}

func TestTooBigFollowsItsClass(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.wantRefusal(b.get("/map?s=45"), http.StatusUnprocessableEntity, "over-budget")
	if a := b.get("/compute?s=45"); a.status != http.StatusOK {
		t.Errorf("compute waits: %d", a.status)
	}
	if a := b.get("/compute?s=5"); a.status != http.StatusOK {
		t.Errorf("between the budgets: %d", a.status)
	}
	b.wantRefusal(b.get("/map?s=5", "Prefer", "wait=3"), http.StatusUnprocessableEntity, "over-budget")
}

func TestDeadlineIs504(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Routes[0].Classes = map[string]proxy.ClassConfig{"read": {Deadline: 150 * time.Millisecond}}
	})
	gone := make(chan struct{})
	b.handle(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); close(gone) })
	start := time.Now()
	b.wantRefusal(b.get("/x"), http.StatusGatewayTimeout, "deadline")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	<-gone // the upstream sees the disconnect
}

func TestUnreachableIs502(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Upstreams["up"] = proxy.UpstreamConfig{URL: "http://127.0.0.1:1", Gate: proxy.GateRef{Name: "gis"}}
	})
	b.wantRefusal(b.get("/x"), http.StatusBadGateway, "upstream")
}

func TestWhatCannotBeRoutedOrRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Routes[0].Match.Path = "/a/"
		second := c.Routes[0]
		second.Name, second.Match.Path = "b", "/b/"
		c.Routes = append(c.Routes, second)
	})
	b.wantRefusal(b.get("/nowhere"), http.StatusNotFound, "no-route")
	b.wantRefusal(b.get("/a/%2e%2e/b/x"), http.StatusBadRequest, "bad-request")
	b.wantRefusal(b.get("/a/x?"+strings.Repeat("k=v&", 300)), http.StatusRequestURITooLong, "bad-request")
	if b.calls.Load() != 0 {
		t.Error("a refused request touched the upstream")
	}
}

// TestGateRefusesAndRefunds: a request that got a token but no seat gives the
// token back.
func TestGateRefusesAndRefunds(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Gates["gis"] = shed.GateConfig{Seats: 1, Queue: 1}
		c.Routes[0].Rates = []ratelimit.Rate{rate("r", 1, time.Hour, 3)}
		c.Routes[0].Classes = map[string]proxy.ClassConfig{"read": {Admission: 100 * time.Millisecond}}
	})
	entered, leave := make(chan struct{}), make(chan struct{})
	b.handle(func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-leave })
	done := make(chan answer)
	go func() { done <- b.get("/x") }()
	<-entered
	a := b.get("/x")
	b.wantRefusal(a, http.StatusServiceUnavailable, "concurrency")
	if a.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q; want the class's admission rounded up", a.header.Get("Retry-After"))
	}
	close(leave)
	<-done
	b.handle(func(http.ResponseWriter, *http.Request) {})
	for i := range 2 {
		if a := b.get("/x"); a.status != http.StatusOK {
			t.Errorf("token %d was not given back: %d %s", i, a.status, a.body)
		}
	}
	b.wantRefusal(b.get("/x"), http.StatusTooManyRequests, "rate")
}

// TestCeiling is the guide's: 200 calls on a pool of 8, whatever they do the
// upstream never sees more than 8, and it saw exactly the admitted ones.
func TestCeiling(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Gates["gis"] = shed.GateConfig{Seats: 8, Queue: 32}
		twin := c.Routes[0]
		twin.Name, twin.Match.Path = "twin", "/twin/"
		c.Routes = append(c.Routes, twin)
	})
	var now, peak, seen atomic.Int64
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		seen.Add(1)
		timer := time.NewTimer(20 * time.Millisecond)
		<-timer.C
		_, _ = io.WriteString(w, "answer")
	})
	var ok, refused atomic.Int64
	bodies := sync.Map{}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			path := "/x"
			if i%2 == 0 {
				path = "/twin/x"
			}
			switch a := b.get(path); a.status {
			case http.StatusOK:
				ok.Add(1)
			case http.StatusServiceUnavailable:
				refused.Add(1)
				bodies.Store(a.body, true)
			default:
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if peak.Load() > 8 {
		t.Errorf("the upstream saw %d at once", peak.Load())
	}
	if seen.Load() != ok.Load() || ok.Load()+refused.Load() != 200 {
		t.Errorf("the upstream saw %d, %d were answered, %d refused", seen.Load(), ok.Load(), refused.Load())
	}
	kinds := 0
	bodies.Range(func(any, any) bool { kinds++; return true })
	if refused.Load() > 0 && kinds != 1 {
		t.Errorf("equal refusals have %d bodies", kinds)
	}
}

func TestShadowRefusesNothingAndCounts(t *testing.T) {
	t.Parallel()
	no := false
	for name, change := range map[string]func(*proxy.Config){
		"route":  func(c *proxy.Config) { c.Routes[0].Enforce = &no },
		"class":  func(c *proxy.Config) { c.Routes[0].Classes = map[string]proxy.ClassConfig{"read": {Enforce: &no}} },
		"policy": func(c *proxy.Config) { c.Routes[0].Rates[0].Enforce = &no },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *proxy.Config) {
				c.Routes[0].Rates = []ratelimit.Rate{rate("r", 1, time.Hour, 1)}
				change(c)
			})
			for range 3 {
				if a := b.get("/x"); a.status != http.StatusOK {
					t.Fatalf("%d", a.status)
				}
			}
			want := `
				# HELP geoproxy_shadow_refusals_total Requests that went on although what decides in shadow would have refused them.
				# TYPE geoproxy_shadow_refusals_total counter
				geoproxy_shadow_refusals_total{class="read",reason="rate",route="main"} 2
			`
			if err := testutil.GatherAndCompare(b.registry, strings.NewReader(want), "geoproxy_shadow_refusals_total"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestExemptAndPreflight(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Routes[0].Rates = []ratelimit.Rate{rate("r", 1, time.Hour, 1)}
		c.Routes[0].Exempt.Paths = []string{"/health", "/free/"}
	})
	b.get("/x")
	b.wantRefusal(b.get("/x"), http.StatusTooManyRequests, "rate")
	for _, path := range []string{"/health", "/free/x"} {
		if a := b.get(path); a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := b.do(http.MethodOptions, "/x", "Origin", "http://a", "Access-Control-Request-Method", "GET"); a.status != http.StatusOK {
		t.Errorf("a preflight was refused: %d", a.status)
	}
	b.wantRefusal(b.get("/health/x"), http.StatusTooManyRequests, "rate")
}

// TestInventedKeysGainNothing: a caller that invents a key for each request
// gets what its address gets.
func TestInventedKeysGainNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) { c.Routes[0].Rates = []ratelimit.Rate{rate("r", 1, time.Hour, 20)} })
	ok := 0
	for i := range 200 {
		if b.get("/x", "X-Api-Key", fmt.Sprint("invented-", i)).status == http.StatusOK {
			ok++
		}
	}
	if ok != 20 {
		t.Errorf("%d requests got through; want the address's 20", ok)
	}
}

func TestACallerThatLeavesIsNoFault(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	entered, gone := make(chan struct{}), make(chan struct{})
	b.handle(func(_ http.ResponseWriter, r *http.Request) { close(entered); <-r.Context().Done(); close(gone) })
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.front.URL+"/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-entered; cancel() }()
	if res, err := b.front.Client().Do(req); err == nil {
		_ = res.Body.Close()
		t.Fatal("the caller left")
	}
	<-gone
	// It is counted when the handler has ended, which nobody can wait for.
	b.eventually("it is counted", func() bool { return b.count("gone") > 0 })
	if b.count("gone") != 1 || b.count("failed") != 0 {
		t.Errorf("gone %v, failed %v", b.count("gone"), b.count("failed"))
	}
}

// count sums geoproxy_requests_total over an outcome.
func (b *bench) count(outcome string) float64 {
	families, err := b.registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != "geoproxy_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "outcome" && l.GetValue() == outcome {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

func TestReloadKeepsWhatLives(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) { c.Routes[0].Rates = []ratelimit.Rate{rate("r", 1, time.Hour, 4)} })
	b.get("/x")
	b.get("/x")
	next := b.config
	next.Routes = []proxy.RouteConfig{b.config.Routes[0]}
	next.Routes[0].Rates = []ratelimit.Rate{rate("r", 1, time.Hour, 2)}
	if err := b.proxy.Reload(next); err != nil {
		t.Fatal(err)
	}
	if a := b.get("/x"); a.status != http.StatusOK {
		t.Errorf("half was used, so half of 2 is left: %d", a.status)
	}
	b.wantRefusal(b.get("/x"), http.StatusTooManyRequests, "rate")

	broken := next
	broken.Routes = []proxy.RouteConfig{next.Routes[0]}
	broken.Routes[0].Upstream = "gopher://x"
	if err := b.proxy.Reload(broken); err == nil {
		t.Fatal("a broken config was taken")
	}
	b.wantRefusal(b.get("/x"), http.StatusTooManyRequests, "rate")
}

func TestExplainRunsNothing(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, func(c *proxy.Config) {
		c.Routes[0].Rates = []ratelimit.Rate{rate("fair-use", 10, time.Second, 50)}
		c.Tenant.Trust = true
	}, &proxy.JobParts{})
	a := b.get("/geoproxy/explain?url=/compute%3Fs=45", "X-Api-Key", "k")
	for _, want := range []string{
		`"op":"compute"`, `"class":"compute"`, `"seconds":45`, `"mode":"inline"`, `"gate":{"name":"gis","seats":2`, `"name":"fair-use"`,
		`no job possible here, and its class waits`, `"with_a_job":"queued: estimated 45.0s exceeds the inline ceiling"`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the explanation lacks %s:\n%s", want, a.body)
		}
	}
	if b.calls.Load() != 0 {
		t.Error("explaining touched the upstream")
	}
}

// TestRefusalsDoNotWaitForBodies: whoever sends a body slowly, or not at all,
// gets a refusal at once all the same, and loses the connection that the rest
// of the body would come on.
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Classify.Wait = 50 * time.Millisecond
		c.Routes[0].MaxBody = 1 << 20
		c.Routes[0].Config = classify.Config{}
		c.Routes[0].Rates = []ratelimit.Rate{rate("never", 0.001, time.Hour, 0.001)}
	})
	for name, request := range map[string]string{
		"read ahead, in chunks":   "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a",
		"read ahead, of a length": "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"a",
		"not read":                "Content-Type: image/png\r\nContent-Length: 1000\r\n\r\nabc",
		"not sent":                "Content-Type: image/png\r\nContent-Length: 1000\r\n\r\n",
		"too large":               "Content-Type: application/json\r\nContent-Length: 2000000\r\n\r\nabc",
	} {
		for _, path := range []string{"/a", "/geoproxy/x"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				conn, err := net.Dial("tcp", b.front.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+request); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				defer res.Body.Close()
				if took := time.Since(began); took > time.Second || res.StatusCode < 400 || res.Header.Get("Geoproxy-Reason") == "" || !res.Close {
					t.Errorf("%d after %s, %v", res.StatusCode, took, res.Header)
				}
				if _, err := io.Copy(io.Discard, conn); err != nil {
					t.Errorf("the connection is kept: %v", err)
				}
			})
		}
	}
}

// TestFailuresDoNotWaitForBodies: nor does whoever sends a body slowly to an
// upstream that is not there.
func TestFailuresDoNotWaitForBodies(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Classify.Wait = 50 * time.Millisecond
		c.Upstreams["up"] = proxy.UpstreamConfig{URL: "http://127.0.0.1:1", Gate: proxy.GateRef{Name: "gis"}}
		c.Routes[0].Config = classify.Config{}
	})
	conn, err := net.Dial("tcp", b.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"a"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 502 ") {
		t.Errorf("%v, %q", err, got)
	}
}

// TestRefusalOfAWholeBodyKeepsTheConnection: only what was not read is in the
// way of the next request.
func TestRefusalOfAWholeBodyKeepsTheConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Routes[0].Config = classify.Config{}
		c.Routes[0].Rates = []ratelimit.Rate{rate("never", 0.001, time.Hour, 0.001)}
	})
	res, err := b.front.Client().Post(b.front.URL+"/a", "application/json", strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.Close || res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("%d, closed %t", res.StatusCode, res.Close)
	}
}

// TestTooLargeABodyPaysNothing: what is refused by its length alone has not
// been admitted.
func TestTooLargeABodyPaysNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Routes[0].MaxBody = 10
		c.Routes[0].Rates = []ratelimit.Rate{rate("one", 1, time.Hour, 1)}
	})
	for range 3 {
		res, err := b.front.Client().Post(b.front.URL+"/read", "text/plain", strings.NewReader("more than ten bytes"))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%d", res.StatusCode)
		}
	}
	if a := b.get("/read"); a.status != http.StatusOK {
		t.Errorf("the token is gone: %d", a.status)
	}
}

// TestShadowOfRefusedRequests: what the enforced part refuses takes nothing in
// shadow, seats least of all: nobody would give them back.
func TestShadowOfRefusedRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Gates = nil
		c.Upstreams["up"] = proxy.UpstreamConfig{URL: c.Upstreams["up"].URL}
		off := false
		watched := rate("watched", 2, time.Hour, 2)
		watched.Enforce = &off
		c.Routes[0].Rates = []ratelimit.Rate{rate("one", 1, time.Hour, 1), watched}
	})
	b.get("/read")
	for range 50 {
		b.wantRefusal(b.get("/read"), http.StatusTooManyRequests, "rate")
	}
	if held := b.gauge("geoproxy_gate_seats_held"); held != 0 {
		t.Errorf("%v seats are held by nobody", held)
	}
	if n := b.gauge("geoproxy_shadow_refusals_total"); n != 0 {
		t.Errorf("%v refusals in shadow of what did not go on", n)
	}
}

// TestShadowHasNoDeadline: what is only watched goes on unchanged, however
// long it takes, and says that it would have been cut.
func TestShadowHasNoDeadline(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		off := false
		c.Routes[0].Enforce = &off
		c.Routes[0].Classes = map[string]proxy.ClassConfig{"metadata": {Deadline: 100 * time.Millisecond, Inline: 50 * time.Millisecond}}
	})
	b.handle(func(http.ResponseWriter, *http.Request) { time.Sleep(200 * time.Millisecond) })
	if a := b.get("/meta"); a.status != http.StatusOK || a.header.Get("Geoproxy-Shadow") != "deadline" {
		t.Errorf("%d %v", a.status, a.header)
	}
	if n := b.gauge("geoproxy_shadow_refusals_total"); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

// TestTunnelsAreRefused: nothing prices what goes through them.
func TestTunnelsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.wantRefusal(b.do(http.MethodConnect, "/read"), http.StatusBadRequest, "bad-request")
	if n := b.calls.Load(); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

// TestLongWaitsAreNotStated: Retry-After says at most an hour; a longer wait is
// not said, rather than said wrongly.
func TestLongWaitsAreNotStated(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		slow := rate("slow", 1, time.Hour, 5)
		slow.Unit = "second"
		c.Routes[0].Rates = []ratelimit.Rate{slow}
	})
	b.get("/compute?s=5")
	for path, stated := range map[string]bool{"/compute?s=5": false, "/compute?s=0.5": true} {
		a := b.get(path)
		b.wantRefusal(a, http.StatusTooManyRequests, "rate")
		if (a.header.Get("Retry-After") != "") != stated || strings.Contains(a.body, "retry_after_seconds") != stated {
			t.Errorf("%s: Retry-After %q, %s", path, a.header.Get("Retry-After"), a.body)
		}
	}
}

// TestGatesThatComeBack: a config without a gate, and one with it again, do not
// make it another: who is behind it still is.
func TestGatesThatComeBack(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) {
		c.Gates["gis"] = shed.GateConfig{Seats: 1, Queue: 1}
		c.Routes[0].Classes = map[string]proxy.ClassConfig{"read": {Admission: 10 * time.Millisecond}}
	})
	inside, leave := make(chan struct{}), make(chan struct{})
	b.handle(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-leave })
	var first sync.WaitGroup
	first.Go(func() { b.get("/read") })
	<-inside
	without := b.config
	without.Gates = map[string]shed.GateConfig{"other": {Seats: 1}}
	without.Upstreams = map[string]proxy.UpstreamConfig{"up": {URL: b.config.Upstreams["up"].URL, Gate: proxy.GateRef{Name: "other"}}}
	for range 2 {
		for _, next := range []proxy.Config{without, without, b.config} {
			if err := b.proxy.Reload(next); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
		}
		b.wantRefusal(b.get("/read"), http.StatusServiceUnavailable, "concurrency")
	}
	close(leave)
	first.Wait()
	b.handle(func(http.ResponseWriter, *http.Request) {})
	if a := b.get("/read"); a.status != http.StatusOK {
		t.Errorf("the seat was not given back: %d", a.status)
	}
}

// gauge sums a metric over its labels.
func (b *bench) gauge(name string) float64 {
	b.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
