package classify_test

import (
	"net/http"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

// fuzzFamily throws requests at one family.
func fuzzFamily(f *testing.F, family string) {
	f.Helper()
	for _, r := range corpus(f) {
		f.Add(r.Method, r.Path, r.Query, r.Header.Get("Range"), r.Body.Prefix)
	}
	named, auto := classifier(f, classify.Config{Family: family}), classifier(f, classify.Config{})
	f.Fuzz(func(t *testing.T, method, path, query, ranges string, body []byte) {
		r := &classify.Request{
			Method: method, Path: path, Query: query, Header: http.Header{"Range": {ranges}},
			Body: classify.Body{Prefix: body, Length: int64(len(body)), Whole: true},
		}
		for _, c := range []*classify.Classifier{named, auto} {
			c.NeedsBody(r)
			e := c.Estimate(r)
			checkEstimate(t, r, e)
			if again := c.Estimate(r); again != e {
				t.Fatalf("first %+v, then %+v", e, again)
			}
		}
	})
}

func FuzzOGCAPI(f *testing.F) { fuzzFamily(f, "ogcapi") }

func FuzzXYZ(f *testing.F) { fuzzFamily(f, "xyz") }

// A rule compiles or is a mistake with its column, and what compiles prices any
// request.
func FuzzRule(f *testing.F) {
	for _, when := range []string{
		"", "true", `request.path.startsWith("/heat")`, `query.w == "1"`, `request.headers["x"] == "y"`, `body.vertices > 10`,
		`int(query.w) > 1`, `request.path.matches("(a+)+$")`, deepComprehension, `request`, `query["apikey"]`, "(((", `"\`,
	} {
		f.Add(when, "int(query.w) * 2", "w=3")
	}
	f.Add("true", "1.0 / 0.0", "")
	f.Add("true", "9223372036854775807 + 1", "")
	f.Fuzz(func(t *testing.T, when, cost, query string) {
		cfg := classify.Config{Rules: []classify.Rule{{Op: "fuzz", When: when, Cells: cost}}}
		cfg.Check(func(path, message string) {
			if path == "" || message == "" {
				t.Fatalf("a mistake without a place: %q %q", path, message)
			}
		})
		c, err := classify.New(cfg)
		if err != nil {
			return
		}
		r := &classify.Request{Method: "GET", Path: "/heat", Query: query}
		checkEstimate(t, r, c.Estimate(r))
	})
}
