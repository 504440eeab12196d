package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/geoproxy/geoproxy/test/binary"
)

// What a script of another origin is to be able to read of each refusal.
func TestScriptsOfOtherOriginsReadRefusals(t *testing.T) {
	hold := make(chan struct{})
	held := make(chan struct{}, 1)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.URL.Path == "/busy/hold" {
			held <- struct{}{}
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(up.Close)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(`
gates:
  one: { seats: 1 }
  wide: { seats: 8 }
upstreams:
  small: { url: %[1]s, gate: one }
  large: { url: %[1]s, gate: wide }
routes:
- name: rated
  match: { path: /rated/ }
  upstream: large
  family: http
  classes: { read: { admission: 100ms } }
  rates: [{ name: licence, per: route, tokens: 1, every: 1m }]
- name: busy
  match: { path: /busy/ }
  upstream: small
  family: http
  classes: { read: { admission: 100ms } }
  rates: [{ name: plenty, per: route, tokens: 1000, every: 1s }]
- name: big
  match: { path: /big/ }
  upstream: large
  family: http
  rules: [{ op: heatmap, class: read, when: 'request.path.endsWith("/heat")', seconds: "100" }]
- name: narrow
  match: { path: /narrow/ }
  upstream: large
  family: http
  rules: [{ op: dump, class: read, when: 'request.path.endsWith("/dump")', features: "1000" }]
  rates: [{ name: rows, per: route, tokens: 100, every: 1s, unit: feature }]
`, up.URL))
	t.Cleanup(func() { close(hold) }) // before the proxy stops, which waits for it

	ctx := chromium(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(pageOrigin(t)+"/blank.html")); err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Status                                      int
		Body, Reason, RetryAfter, Policy, RateLimit string
	}
	ask := func(path string) seen {
		t.Helper()
		// Whatever the browser does not let a script read shows as empty.
		script := fmt.Sprintf(`fetch(%q).then(async (answer) => ({
			Status: answer.status, Body: await answer.text(),
			Reason: answer.headers.get("Geoproxy-Reason") ?? "", RetryAfter: answer.headers.get("Retry-After") ?? "",
			Policy: answer.headers.get("RateLimit-Policy") ?? "", RateLimit: answer.headers.get("RateLimit") ?? "",
		}))`, proxy.URL+path)
		got, err := chromedp.Run(ctx, chromedp.Evaluate[seen](script, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return got
	}

	// The first answer of each route shows whom the upstream lets read.
	for _, path := range []string{"/rated/", "/busy/", "/big/", "/narrow/"} {
		if got := ask(path); got.Status != http.StatusOK {
			t.Fatalf("%s: %+v", path, got)
		}
	}
	go func() {
		if answer, err := http.Get(proxy.URL + "/busy/hold"); err == nil {
			answer.Body.Close()
		}
	}()
	<-held

	for _, test := range []struct {
		path   string
		status int
		reason string
		waits  bool
		rated  bool // a rate was drawn, so there is something to say of it
	}{
		{"/rated/again", http.StatusTooManyRequests, "rate", true, true},
		{"/busy/again", http.StatusServiceUnavailable, "concurrency", true, true},
		{"/narrow/dump", http.StatusUnprocessableEntity, "never-fits", false, true},
		{"/big/heat", http.StatusUnprocessableEntity, "over-budget", false, false},
	} {
		got := ask(test.path)
		if got.Status != test.status || got.Reason != test.reason {
			t.Errorf("%s: a script sees %+v, want status %d and reason %q", test.path, got, test.status, test.reason)
		}
		if (got.RetryAfter != "") != test.waits {
			t.Errorf("%s: a script sees Retry-After %q", test.path, got.RetryAfter)
		}
		if (got.RateLimit != "") != test.rated || (got.Policy != "") != test.rated {
			t.Errorf("%s: a script sees RateLimit %q and RateLimit-Policy %q", test.path, got.RateLimit, got.Policy)
		}
		var problem struct{ Message, Reason string }
		if err := json.Unmarshal([]byte(got.Body), &problem); err != nil || problem.Message == "" || problem.Reason != test.reason {
			t.Errorf("%s: a script reads the body %q", test.path, got.Body)
		}
	}
}
