package proxy_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
	"github.com/geoproxy/geoproxy/proxy"
)

// jobTiming is quick, for tests.
var jobTiming = jobs.Timing{Lease: 2 * time.Second, Beat: 300 * time.Millisecond, Tick: 100 * time.Millisecond, Sweep: 200 * time.Millisecond}

// newJobBench is a bench with a store of jobs.
func newJobBench(t *testing.T, change func(*proxy.Config)) *bench {
	t.Helper()
	store, err := sqlstore.OpenSQLite(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return newBenchWith(t, change, &proxy.JobParts{Store: store, Key: []byte("a key of the tests' own"), Timing: jobTiming})
}

// document is what the tests read of a job's document.
type document struct {
	Message, Action, Reason string
	Status                  any // a word of a job, a number of a problem
	JobID                   string
	Attempt                 int
	Retry                   int `json:"retry_after_seconds"`
	Links                   []struct{ Href, Rel string }
	Upstream                *struct {
		Status int
		Body   string
	}
}

// send sends a request to the front and reads its answer.
func (b *bench) send(method, path string, header map[string]string, body string) (*http.Response, string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.front.URL+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.Fatal(err)
	}
	return res, string(text)
}

func (b *bench) document(text string) document {
	b.Helper()
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		b.Fatalf("%v in %s", err, text)
	}
	return d
}

// submit sends a request that asks for a job, and gives its document.
func (b *bench) submit(path string, header map[string]string) (document, string) {
	b.Helper()
	all := map[string]string{"Prefer": "respond-async"}
	maps.Copy(all, header)
	res, text := b.send("GET", path, all, "")
	if res.StatusCode != http.StatusAccepted {
		b.Fatalf("%d: %s", res.StatusCode, text)
	}
	return b.document(text), res.Header.Get("Location")
}

// ended waits until a job has ended.
func (b *bench) ended(location string, header map[string]string) document {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		res, text := b.send("GET", location+"?wait=5", header, "")
		if res.StatusCode != http.StatusOK {
			b.Fatalf("%s: %d: %s", location, res.StatusCode, text)
		}
		d := b.document(text)
		if state, _ := d.Status.(string); jobs.State(state).Ended() {
			return d
		}
	}
	b.Fatal("it did not end")
	return document{}
}

func TestAJobThatWasAskedFor(t *testing.T) {
	b := newJobBench(t, nil)
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		if p := r.Header.Get("Prefer"); p != "" {
			t.Errorf("the upstream was sent Prefer: %s", p)
		}
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Content-Type", "application/geo+json")
		w.Header().Set("ETag", `"x"`)
		_, _ = io.WriteString(w, "answer to "+r.URL.RawQuery)
	})
	res, text := b.send("GET", "/compute?s=1&q=a;b", map[string]string{"Prefer": "respond-async"}, "")
	d := b.document(text)
	if res.StatusCode != http.StatusAccepted || d.Status != "accepted" || d.Action != "wait_job" || d.Reason != "asked" ||
		res.Header.Get("Location") != "/geoproxy/jobs/"+d.JobID || res.Header.Get("Retry-After") == "" ||
		res.Header.Get("Preference-Applied") != "respond-async" || res.Header.Get("Geoproxy-Reason") != "asked" || res.Header.Get("Vary") != "Prefer" {
		t.Fatalf("%d %v\n%s", res.StatusCode, res.Header, text)
	}
	end := b.ended(res.Header.Get("Location"), nil)
	if end.Status != "successful" || end.Action != "fetch_result" {
		t.Fatalf("ended: %+v", end)
	}
	res, text = b.send("GET", "/geoproxy/jobs/"+strings.ToUpper(strings.ReplaceAll(d.JobID, "-", ""))+"/results", nil, "")
	if res.StatusCode != http.StatusOK || text != "answer to s=1&q=a;b" || res.Header.Get("Set-Cookie") != "" ||
		res.Header.Get("Content-Type") != "application/geo+json" || res.Header.Get("ETag") != `"x"` || res.Header.Get("Cache-Control") != "private, no-store" {
		t.Errorf("the result: %d %v %q", res.StatusCode, res.Header, text)
	}
	res, text = b.send("GET", "/geoproxy/jobs/"+d.JobID+"/results", map[string]string{"Range": "bytes=7-8"}, "")
	if res.StatusCode != http.StatusPartialContent || text != "to" {
		t.Errorf("a range of the result: %d %q", res.StatusCode, text)
	}
	if res, text = b.send("DELETE", "/geoproxy/jobs/"+d.JobID, nil, ""); res.StatusCode != http.StatusOK {
		t.Errorf("forgetting it: %d %s", res.StatusCode, text)
	}
	if res, text = b.send("GET", "/geoproxy/jobs/"+d.JobID, nil, ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("after that: %d %s", res.StatusCode, text)
	}
}

// An input above the threshold never runs inline.
func TestModeDecision(t *testing.T) {
	b := newJobBench(t, func(c *proxy.Config) { c.Routes[0].Jobs.When = "allowed" })
	res, text := b.send("GET", "/compute?s=100", nil, "")
	if d := b.document(text); res.StatusCode != http.StatusAccepted || d.Reason != "over-budget" {
		t.Errorf("unasked: %d %s", res.StatusCode, text)
	}
	res, text = b.send("GET", "/compute?s=100", map[string]string{"Prefer": "respond-async, wait=60"}, "")
	if d := b.document(text); res.StatusCode != http.StatusAccepted || d.Reason != "over-budget" {
		t.Errorf("asked with a wait: %d %s", res.StatusCode, text)
	}
	if res, text = b.send("GET", "/map?s=100", nil, ""); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a map, unasked: %d %s", res.StatusCode, text)
	}
	if res, text = b.send("GET", "/compute?s=100", map[string]string{"User-Agent": "GDAL/3.6.2"}, ""); res.StatusCode != http.StatusOK {
		t.Errorf("GDAL: %d %s", res.StatusCode, text)
	}
}

// An overrun is cancelled and offered again as a job.
func TestDeadlineCancellation(t *testing.T) {
	b := newJobBench(t, nil)
	gone := make(chan struct{}, 1)
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if b.calls.Load() == 1 {
			<-r.Context().Done()
			gone <- struct{}{}
			return
		}
		_, _ = w.Write(append([]byte("later: "), body...))
	})
	// Half a second is the soonest deadline that a caller can state.
	res, text := b.send("GET", "/compute?s=0.1", map[string]string{"Prefer": "respond-async, wait=1"}, "")
	if d := b.document(text); res.StatusCode != http.StatusAccepted || d.Reason != "deadline" || res.Header.Get("Geoproxy-Reason") != "deadline" {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the upstream did not see that it was cancelled")
	}
	if d := b.ended(res.Header.Get("Location"), nil); d.Status != "successful" {
		t.Fatalf("ended %+v", d)
	}
	if _, text := b.send("GET", res.Header.Get("Location")+"/results", nil, ""); text != "later: " {
		t.Errorf("the result is %q", text)
	}
}

// A job is its owner's: everybody else gets the answer of an unknown id.
func TestOthersSeeNothing(t *testing.T) {
	b := newJobBench(t, nil)
	mine := map[string]string{"X-Api-Key": "my key"}
	d, location := b.submit("/compute?s=1", mine)
	b.ended(location, mine)
	_, unknown := b.send("GET", "/geoproxy/jobs/"+string(jobs.NewID()), nil, "")
	for name, header := range map[string]map[string]string{
		"a neighbour":     nil,
		"another key":     {"X-Api-Key": "another"},
		"an unsigned JWT": {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9."},
	} {
		for _, path := range []string{"", "/results"} {
			if res, text := b.send("GET", location+path, header, ""); res.StatusCode != http.StatusNotFound || text != unknown {
				t.Errorf("%s gets %d %s", name, res.StatusCode, text)
			}
		}
		if res, _ := b.send("DELETE", location, header, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s cancels: %d", name, res.StatusCode)
		}
		if _, text := b.send("GET", "/geoproxy/jobs", header, ""); strings.Contains(text, d.JobID) {
			t.Errorf("%s lists %s", name, text)
		}
	}
	if res, _ := b.send("GET", "/geoproxy/jobs?cursor=AAAA.x.y", mine, ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("a forged cursor: %d", res.StatusCode)
	}
	if _, text := b.send("GET", "/geoproxy/jobs", mine, ""); !strings.Contains(text, d.JobID) {
		t.Errorf("the owner's list is %s", text)
	}
	if _, text := b.send("GET", "/geoproxy/jobs/hint", mine, ""); text != "1 job(s) finished: "+d.JobID {
		t.Errorf("the hint is %q", text)
	}
}

func TestAFailedJobTellsWhatTheUpstreamSaid(t *testing.T) {
	b := newJobBench(t, nil)
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "no such layer")
	})
	_, location := b.submit("/compute?s=1", nil)
	if d := b.ended(location, nil); d.Status != "failed" || d.Attempt != 1 || d.Reason != "upstream" {
		t.Fatalf("ended: %+v", d)
	}
	res, text := b.send("GET", location+"/results", nil, "")
	if d := b.document(text); res.StatusCode != http.StatusBadGateway || d.Upstream == nil || d.Upstream.Status != 400 || d.Upstream.Body != "no such layer" {
		t.Errorf("%d %s", res.StatusCode, text)
	}
}

func TestCancellingLeavesNothing(t *testing.T) {
	b := newJobBench(t, nil)
	started, gone := make(chan struct{}), make(chan struct{})
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		close(started)
		<-r.Context().Done()
		close(gone)
	})
	_, location := b.submit("/compute?s=1", nil)
	<-started
	res, text := b.send("DELETE", location, nil, "")
	if d := b.document(text); res.StatusCode != http.StatusOK || d.Status != "dismissed" {
		t.Fatalf("%d %s", res.StatusCode, text)
	}
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the upstream was not told")
	}
	if res, text := b.send("GET", location+"/results", nil, ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("the result: %d %s", res.StatusCode, text)
	}
}

func TestIdempotency(t *testing.T) {
	b := newJobBench(t, nil)
	key := map[string]string{"Idempotency-Key": `"k1"`}
	first, _ := b.submit("/compute?s=1", key)
	again, _ := b.submit("/compute?s=1", map[string]string{"Idempotency-Key": "k1"})
	if first.JobID != again.JobID {
		t.Errorf("two jobs: %s and %s", first.JobID, again.JobID)
	}
	key["Prefer"] = "respond-async"
	if res, text := b.send("GET", "/compute?s=2", key, ""); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the same key for another request: %d %s", res.StatusCode, text)
	}
}

// The queue refuses with a stated wait, past its depth and past its wait.
func TestAdmissionUnderLoad(t *testing.T) {
	b := newJobBench(t, func(c *proxy.Config) {
		c.Routes[0].Jobs = proxy.JobsConfig{MaxDepth: 3, MaxWait: time.Minute, Workers: 1}
	})
	hold := make(chan struct{})
	b.handle(func(http.ResponseWriter, *http.Request) { <-hold })
	defer close(hold)
	ask := map[string]string{"Prefer": "respond-async"}
	for range 3 {
		b.submit("/compute?s=10", nil)
	}
	res, text := b.send("GET", "/compute?s=10", ask, "")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Geoproxy-Reason") != "queue-depth" || !strings.Contains(text, `"estimated_wait_seconds":`) || res.Header.Get("Retry-After") == "" {
		t.Errorf("past the depth: %d %v %s", res.StatusCode, res.Header, text)
	}
	b2 := newJobBench(t, func(c *proxy.Config) { c.Routes[0].Jobs = proxy.JobsConfig{MaxWait: time.Minute} })
	res, text = b2.send("GET", "/compute?s=61", ask, "")
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Geoproxy-Reason") != "queue-wait" || !strings.Contains(text, `"estimated_wait_seconds":61`) {
		t.Errorf("past the wait: %d %v %s", res.StatusCode, res.Header, text)
	}
}

// A token that expires before its job would run is refused at once, and not
// found out about later.
func TestATokenMustLast(t *testing.T) {
	b := newJobBench(t, nil)
	bearer := func(in time.Duration) map[string]string {
		claims := fmt.Sprintf(`{"sub":"me","exp":%d}`, time.Now().Add(in).Unix())
		return map[string]string{
			"Prefer":        "respond-async",
			"Authorization": "Bearer e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln",
		}
	}
	if res, text := b.send("GET", "/compute?s=60", bearer(30*time.Second), ""); res.StatusCode != http.StatusBadRequest || !strings.Contains(text, "token expires") {
		t.Errorf("a token of 30 s for a job of 60 s: %d %s", res.StatusCode, text)
	}
	if res, text := b.send("GET", "/compute?s=60", bearer(time.Hour), ""); res.StatusCode != http.StatusAccepted {
		t.Errorf("a token of an hour: %d %s", res.StatusCode, text)
	}
}

// Pages of other origins may use jobs where they may use the upstream.
func TestJobsFromPages(t *testing.T) {
	b := newJobBench(t, func(c *proxy.Config) { c.Routes[0].CORS = []string{"https://map.example"} })
	origin := map[string]string{"Origin": "https://map.example"}
	_, location := b.submit("/compute?s=1", origin)
	if res, _ := b.send("GET", location, origin, ""); res.Header.Get("Access-Control-Allow-Origin") != "https://map.example" {
		t.Errorf("a status: %v", res.Header)
	}
	res, _ := b.send("OPTIONS", location, map[string]string{"Origin": "https://map.example", "Access-Control-Request-Method": "DELETE"}, "")
	if res.StatusCode != http.StatusNoContent || !strings.Contains(res.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Errorf("a preflight: %d %v", res.StatusCode, res.Header)
	}
	if res, _ := b.send("GET", location, map[string]string{"Origin": "https://other.example"}, ""); res.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %v", res.Header)
	}
}

// Links have the prefix that the request came through, and what callers' URLs
// begin with.
func TestLinksOfJobs(t *testing.T) {
	b := newJobBench(t, func(c *proxy.Config) {
		c.Routes[0].Match.Path = "/ogc"
		c.Routes[0].Rules = nil
		c.Routes[0].Costs = nil
	})
	d, location := b.submit("/ogc/compute?s=1", nil)
	if location != "/ogc/geoproxy/jobs/"+d.JobID || d.Links[0].Href != location {
		t.Errorf("Location is %s, the link %s", location, d.Links[0].Href)
	}
	b.ended(location, nil)
	// The same job through the root.
	if _, text := b.send("GET", "/geoproxy/jobs/"+d.JobID, nil, ""); b.document(text).Links[0].Href != "/geoproxy/jobs/"+d.JobID {
		t.Errorf("through the root: %s", text)
	}
	b = newJobBench(t, func(c *proxy.Config) { c.Public.URL = "https://maps.example/geo" })
	d, location = b.submit("/compute?s=1", nil)
	if location != "https://maps.example/geo/geoproxy/jobs/"+d.JobID || d.Links[0].Href != location || !strings.Contains(d.Message, location) {
		t.Errorf("behind a prefix: %s, %+v", location, d)
	}
}
