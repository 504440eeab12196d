package classify_test

import (
	"net/http"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

// TestMethodOverride: a header that has some upstreams take a request for
// another must not make a dear one look cheap, nor a write like a read.
func TestMethodOverride(t *testing.T) {
	t.Parallel()
	c, err := classify.New(classify.Config{})
	if err != nil {
		t.Fatal(err)
	}
	page := classify.Request{Method: http.MethodGet, Path: "/collections/x/items", Query: "limit=10000"}
	dear := c.Estimate(&page)
	for _, name := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		posted := page
		posted.Method, posted.Header = http.MethodPost, http.Header{}
		posted.Header.Set(name, "get")
		if e := c.Estimate(&posted); e.Seconds < dear.Seconds || e.Class != classify.Write || e.Replayable {
			t.Errorf("%s: a page in the guise of a POST: %.3f s, %v; the page %.3f s", name, e.Seconds, e.Class, dear.Seconds)
		}
		got := page
		got.Header = http.Header{}
		got.Header.Set(name, "DELETE")
		if e := c.Estimate(&got); e.Class != classify.Write || e.Replayable {
			t.Errorf("%s: a write in the guise of a GET is %v", name, e.Class)
		}
		got.Header.Set(name, "POST")
		got.Body = classify.Body{Length: 10}
		if !c.NeedsBody(&got) {
			t.Errorf("%s: the body of a POST in the guise of a GET is not read", name)
		}
	}
}

// TestRuleQueryReadings: a rule prices what upstreams make of a query, whichever
// of several values they take.
func TestRuleQueryReadings(t *testing.T) {
	t.Parallel()
	c, err := classify.New(classify.Config{Rules: []classify.Rule{
		{Op: "heat", Class: "map", When: `"w" in query`, Cells: "int(query.w) * int(query.h)"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]float64{
		"w=4000&h=4000":         16e6,
		"w=4000&h=4000&w=1":     16e6,
		"w=1&h=4000&w=4000":     16e6,
		"w=1;w=4000&h=4000":     16e6,
		"w=4000;w=1&h=4000":     16e6,
		"x=1;w=4000;h=4000&w=1": 16e6,
		"w=2&h=3":               6,
	} {
		if e := c.Estimate(&classify.Request{Method: http.MethodGet, Path: "/", Query: query}); e.Cells != want {
			t.Errorf("%s: %.0f cells, want %.0f", query, e.Cells, want)
		}
	}
}

// TestHitsAreBelieved only where every upstream would.
func TestHitsAreBelieved(t *testing.T) {
	t.Parallel()
	c, err := classify.New(classify.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for query, op := range map[string]string{
		"resulttype=hits":                             "count",
		"resultType=hits&limit=10000":                 "count",
		"resulttype=hits&resulttype=hits":             "count",
		"resulttype=results&resulttype=hits":          "items",
		"resulttype=hits&resulttype=results":          "items",
		"RESULTTYPE=hits&limit=10000":                 "items",
		"resulttype=HITS":                             "items",
		"limit=10000&resulttype=hits;resulttype=none": "items",
	} {
		if e := c.Estimate(&classify.Request{Method: http.MethodGet, Path: "/collections/x/items", Query: query}); e.Op != op {
			t.Errorf("%s: %s, want %s", query, e.Op, op)
		}
	}
}
