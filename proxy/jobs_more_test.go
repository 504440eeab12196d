package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
	"github.com/geoproxy/geoproxy/proxy"
)

// The same request gives the same answer inline and as a job: status, body and
// the headers that matter, for two hundred requests of many kinds.
func TestAResultIsWhatTheInlinePathGives(t *testing.T) {
	b := newJobBench(t, func(c *proxy.Config) {
		c.Routes[0].Jobs.Workers = 8
		c.Gates = nil
		up := c.Upstreams["up"]
		up.Gate = proxy.GateRef{}
		c.Upstreams["up"] = up
	})
	types := []string{"application/geo+json", "image/png", "text/xml", "application/x-protobuf", ""}
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		if ct := types[n%len(types)]; ct != "" {
			w.Header().Set("Content-Type", ct)
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
		w.Header().Set("Link", `</next>; rel="next"`)
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.Header().Set("Seen", r.Header.Get("Accept")+"|"+r.Header.Get("Authorization")+"|"+r.URL.RawQuery+"|"+r.URL.EscapedPath()+"|"+r.Host)
		body, _ := io.ReadAll(r.Body)
		if n%7 == 3 {
			w.Header().Set("Content-Encoding", "gzip") // whatever it is, it passes
		}
		if n%13 == 6 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if n%11 == 5 {
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
		} else if n%2 == 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(body)+n*1000))
		}
		_, _ = w.Write(body)
		_, _ = w.Write(bytes.Repeat([]byte{byte(n)}, n*1000))
	})
	for n := range 200 {
		path := fmt.Sprintf("/read%%20me/%d%%2Fx?n=%d&q=a;b&%%zz", n, n)
		header := map[string]string{"Accept": "application/json", "Authorization": "Bearer x", "Accept-Encoding": "identity"}
		inline, text := b.send("GET", path, header, "")
		header["Prefer"] = "respond-async"
		res, doc := b.send("GET", path, header, "")
		if res.StatusCode != http.StatusAccepted {
			t.Fatalf("%d: %s", res.StatusCode, doc)
		}
		location := res.Header.Get("Location")
		delete(header, "Prefer")
		if d := b.ended(location, header); d.Status != "successful" {
			t.Fatalf("%s: %+v", path, d)
		}
		res, got := b.send("GET", location+"/results", header, "")
		if res.StatusCode != inline.StatusCode || got != text {
			t.Errorf("%s: %d and %d bytes, inline %d and %d", path, res.StatusCode, len(got), inline.StatusCode, len(text))
		}
		for _, name := range []string{"Content-Type", "ETag", "Link", "X-Two", "Seen", "Content-Encoding"} {
			if a, b := inline.Header.Values(name), res.Header.Values(name); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s: %s is %q, inline %q", path, name, b, a)
			}
		}
	}
}

// Handle survival: a handle outlives the process that gave it out, and so does
// what was queued. Nothing that was kept can be read in its files.
func TestHandleSurvival(t *testing.T) {
	dir := t.TempDir()
	hold := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, "an answer that is not to be read")
	}))
	defer up.Close()
	start := func() (*proxy.Proxy, *httptest.Server, *sqlstore.Store) {
		store, err := sqlstore.OpenSQLite(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		p, err := proxy.New(proxy.Config{
			Routes: []proxy.RouteConfig{{Upstream: up.URL, Config: classify.Config{Family: "http", Rules: rules}}},
		}, proxy.Parts{
			Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Secret: []byte("a secret of the tests"),
			Jobs: &proxy.JobParts{Store: store, Key: []byte("a key of the tests' own"), Timing: jobTiming},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p, httptest.NewServer(p), store
	}
	p, front, store := start()
	b := &bench{T: t, proxy: p, front: front}
	mine := map[string]string{"Authorization": "Bearer in-no-file", "X-Api-Key": "nor-this-key"}
	var locations []string
	for range 4 { // two run, two wait
		_, location := b.submit("/compute?s=5&apikey=nor-this-one&q=Unter+den+Linden+1", mine)
		locations = append(locations, location)
	}
	grep := func() {
		t.Helper()
		err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, secret := range []string{"in-no-file", "nor-this-key", "nor-this-one", "Linden", "not to be read"} {
				if bytes.Contains(text, []byte(secret)) {
					t.Errorf("%s holds %q", path, secret)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	grep()
	p.Close()
	front.Close()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	close(hold)
	p, front, store = start()
	defer store.Close()
	defer p.Close()
	defer front.Close()
	b = &bench{T: t, proxy: p, front: front}
	for _, location := range locations {
		if d := b.ended(location, mine); d.Status != "successful" {
			t.Errorf("%s ended %+v", location, d)
		}
		if _, text := b.send("GET", location+"/results", mine, ""); text != "an answer that is not to be read" {
			t.Errorf("the result is %q", text)
		}
	}
	grep()
}

// What the upstream may do better later is tried again, and what it says is
// its last word is not.
func TestRetries(t *testing.T) {
	for name, tt := range map[string]struct {
		answer   func(w http.ResponseWriter)
		attempts int64
		status   string
	}{
		"503": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 2, "failed"},
		"429 with a time": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}, 2, "failed"},
		"429 without": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, 1, "failed"},
		"500":         {func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) }, 1, "failed"},
		"breaks off": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}, 2, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newJobBench(t, func(c *proxy.Config) { c.Routes[0].Jobs.Attempts = 2 })
			b.handle(func(w http.ResponseWriter, _ *http.Request) { tt.answer(w) })
			_, location := b.submit("/compute?s=1", nil)
			if d := b.ended(location, nil); d.Status != tt.status || int64(d.Attempt) != tt.attempts {
				t.Errorf("ended %+v", d)
			}
			if n := b.calls.Load(); n != tt.attempts {
				t.Errorf("%d calls", n)
			}
			if res, text := b.send("GET", location+"/results", nil, ""); res.StatusCode < 500 {
				t.Errorf("the result: %d %s", res.StatusCode, text)
			}
		})
	}
}

// An error inside an answer of success fails the job.
func TestAnErrorInsideFailsTheJob(t *testing.T) {
	b := newJobBench(t, func(c *proxy.Config) { c.Routes[0].Config = classify.Config{} })
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.ogc.se_xml")
		_, _ = io.WriteString(w, "<ServiceExceptionReport><ServiceException>no</ServiceException></ServiceExceptionReport>")
	})
	_, location := b.submit("/wms?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=a&WIDTH=2000&HEIGHT=2000&BBOX=0,0,1,1&SRS=EPSG:4326&FORMAT=image/png", nil)
	if d := b.ended(location, nil); d.Status != "failed" || d.Reason != "upstream" {
		t.Errorf("ended %+v", d)
	}
}

// A body is kept while it is forwarded, so that an overrun with one can be
// handed over; whoever left before gets no job.
func TestHandOverKeepsTheBody(t *testing.T) {
	yes := true
	b := newJobBench(t, func(c *proxy.Config) {
		c.Routes[0].Rules = []classify.Rule{{Op: "compute", Class: "compute", When: "true", Seconds: "0.1", Replayable: &yes}}
	})
	var first atomic.Bool
	sums := make(chan string, 2)
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		n, _ := io.Copy(h, r.Body)
		sums <- fmt.Sprintf("%d %x", n, h.Sum(nil))
		if first.CompareAndSwap(false, true) {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "done")
	})
	body := strings.Repeat("0123456789", 50_000) // more than is kept in memory
	res, text := b.send("POST", "/compute", map[string]string{"Prefer": "respond-async, wait=1"}, body)
	if res.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	if d := b.ended(res.Header.Get("Location"), nil); d.Status != "successful" {
		t.Fatalf("ended %+v", d)
	}
	if a, b := <-sums, <-sums; a != b || !strings.HasPrefix(a, "500000 ") {
		t.Errorf("the upstream was sent %s, and then %s", a, b)
	}

	first.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.front.URL+"/compute", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Prefer", "respond-async, wait=1")
	r.Header.Set("X-Api-Key", "who left")
	if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
		_ = res.Body.Close()
		t.Fatal("it was answered")
	}
	time.Sleep(1500 * time.Millisecond) // beyond the deadline and the hand-over
	if _, text := b.send("GET", "/geoproxy/jobs", map[string]string{"X-Api-Key": "who left"}, ""); !strings.Contains(text, `"jobs":[]`) {
		t.Errorf("who left has %s", text)
	}
}

// An upstream that goes on when it is cancelled keeps its seat until it has
// ended, of a cancelled job too.
func TestACancelledJobHoldsItsSeatWhileTheUpstreamWorks(t *testing.T) {
	no := false
	b := newJobBench(t, func(c *proxy.Config) {
		up := c.Upstreams["up"]
		up.Cancels = &no
		c.Upstreams["up"] = up
	})
	started, hold := make(chan struct{}), make(chan struct{})
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		close(started)
		<-hold
		_, _ = io.WriteString(w, "x")
	})
	_, location := b.submit("/compute?s=1", nil)
	<-started
	if res, text := b.send("DELETE", location, nil, ""); res.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	held := func() float64 {
		families, err := b.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "geoproxy_gate_seats_held" {
				for _, m := range f.GetMetric() {
					if m.GetLabel()[0].GetValue() == "gis" {
						return m.GetGauge().GetValue()
					}
				}
			}
		}
		return -1
	}
	time.Sleep(300 * time.Millisecond) // longer than it takes to hear of it
	if n := held(); n != 1 {
		t.Errorf("%v seats are held while the upstream works", n)
	}
	close(hold)
	for end := time.Now().Add(5 * time.Second); held() != 0; {
		if time.Now().After(end) {
			t.Fatal("the seat is not given back")
		}
	}
}

// An event stream tells of every change until the job has ended.
func TestEvents(t *testing.T) {
	b := newJobBench(t, nil)
	hold := make(chan struct{})
	b.handle(func(w http.ResponseWriter, _ *http.Request) { <-hold; _, _ = io.WriteString(w, "x") })
	_, location := b.submit("/compute?s=1", nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.front.URL+location, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var states []string
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			state := fmt.Sprint(b.document(data).Status)
			if len(states) == 0 || states[len(states)-1] != state {
				states = append(states, state)
			}
			if state == "running" {
				select {
				case <-hold:
				default:
					close(hold)
				}
			}
		}
	}
	if got := strings.Join(states, " "); got != "accepted running successful" && got != "running successful" {
		t.Errorf("the stream told of %s", got)
	}
}

// The health of a queue is its depth, its tail wait and what it refuses,
// together.
func TestQueueHealthPublication(t *testing.T) {
	b := newJobBench(t, func(c *proxy.Config) { c.Routes[0].Jobs = proxy.JobsConfig{MaxDepth: 2, Workers: 1} })
	hold := make(chan struct{})
	b.handle(func(http.ResponseWriter, *http.Request) { <-hold })
	defer close(hold)
	for range 2 {
		b.submit("/compute?s=1", nil)
	}
	b.send("GET", "/compute?s=1", map[string]string{"Prefer": "respond-async"}, "")
	type health struct {
		Healthy  bool
		Depth    int
		Wait95   *float64 `json:"wait_p95_seconds"`
		Rejected float64  `json:"rejected_share"`
		Queued   int
	}
	var h health
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && h.Depth != 2; {
		w := httptest.NewRecorder()
		b.proxy.NewHealth(&proxy.Readiness{}, b.registry).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/jobs", nil))
		var doc struct{ Queues map[string]health }
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		h = doc.Queues["main"]
	}
	if h.Healthy || h.Depth != 2 || h.Wait95 == nil || h.Rejected < 0.3 || h.Queued != 2 {
		t.Errorf("the health is %+v", h)
	}
}

// A large result streams to its file and from it.
func TestALargeResultTakesLittleMemory(t *testing.T) {
	const size = 500 << 20
	b := newJobBench(t, nil)
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		for n := 0; n < size; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	var peak atomic.Uint64
	done, sampled := make(chan struct{}), make(chan struct{})
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	go func() {
		defer close(sampled)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapInuse > peak.Load() {
				peak.Store(m.HeapInuse)
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	_, location := b.submit("/compute?s=1", nil)
	if d := b.ended(location, nil); d.Status != "successful" {
		t.Fatalf("ended %+v", d)
	}
	got := 0
	for from := 0; from < size; from += 100 << 20 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.front.URL+location+"/results", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+100<<20-1))
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusPartialContent {
			t.Fatalf("a range: %d", res.StatusCode)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got += int(n)
	}
	close(done)
	<-sampled
	extra := int64(peak.Load()) - int64(before.HeapInuse)
	t.Logf("%d bytes in ranges, %d MiB more in use", got, extra>>20)
	if got != size || extra > 64<<20 {
		t.Errorf("%d of %d bytes, %d MiB", got, size, extra>>20)
	}
}
