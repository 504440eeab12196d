package classify_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

func TestRules(t *testing.T) {
	body := `{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[1,2],[5,2],[5,8],[1,2]]]}}`
	post := &classify.Request{
		Method: "POST", Host: "maps.example", Path: "/heat/map", Query: "w=100&h=50&w=200&apikey=s3cret&n=x",
		Header: http.Header{"X-Tier": {"gold"}, "Authorization": {"Bearer s3cret"}},
		Body:   classify.Body{Prefix: []byte(body), Length: int64(len(body)), Whole: true},
	}
	yes, no := true, false
	for _, c := range []struct {
		name  string
		rule  classify.Rule
		costs map[string]classify.Cost
		want  string  // "" does not match
		sec   float64 // 0 is not looked at
	}{
		{"everything", classify.Rule{Op: "all", Seconds: "2"}, nil, `http all write "seconds by rule"`, 2},
		{"a path", classify.Rule{Op: "heatmap", Class: "compute", When: `request.path.startsWith("/heat")`, Cells: "int(query.w) * int(query.h)", Replayable: &yes}, nil, `http heatmap compute cells=10000 replayable "by rule 10000 cells"`, 0},
		{"another path", classify.Rule{Op: "a", When: `request.path == "/cold"`}, nil, "", 0},
		{"method and host", classify.Rule{Op: "a", When: `request.method == "POST" && request.host == "maps.example"`, Seconds: "1"}, nil, `http a write "seconds by rule"`, 1},
		{"a header, its name in lower case", classify.Rule{Op: "a", When: `request.headers["x-tier"] == "gold"`, Seconds: "1"}, nil, `http a write "seconds by rule"`, 1},
		{"a header that is not there", classify.Rule{Op: "a", When: `request.headers["x-none"] == "gold"`, Seconds: "1"}, nil, "", 0},
		{"whether a header is there", classify.Rule{Op: "a", When: `!("x-none" in request.headers)`, Seconds: "1"}, nil, `http a write "seconds by rule"`, 1},
		{"a when that fails", classify.Rule{Op: "a", When: `int(query.n) > 1`, Seconds: "1"}, nil, "", 0},
		{"a cost that fails", classify.Rule{Op: "a", Seconds: `int(query.n)`}, nil, `http a write low "default cost"`, 0.1},
		{"a key that is not there", classify.Rule{Op: "a", Cells: `int(query.none)`}, nil, `http a write low "default cost"`, 0.1},
		{"division by nothing", classify.Rule{Op: "a", Seconds: `1 / (int(query.w) - 200)`}, nil, `http a write low "default cost"`, 0.1},
		{"not a number", classify.Rule{Op: "a", Seconds: `0.0 / 0.0`}, nil, `http a write low "default cost"`, 0.1},
		{"more than there is", classify.Rule{Op: "a", Seconds: `1e300`}, nil, `http a write "seconds by rule"`, 3600},
		{"less than nothing", classify.Rule{Op: "a", Seconds: `-5`}, nil, `http a write "seconds by rule"`, 1e-3},
		{"an input below 0", classify.Rule{Op: "a", Features: `-5`}, nil, `http a write "by rule 0 features"`, 0},
		{"the body", classify.Rule{Op: "a", When: `body.vertices == 4 && body.features == 1 && body.bytes > 50`, Vertices: `body.vertices * 10`}, nil, `http a write vertices=40 "by rule 40 vertices"`, 0},
		{"its box", classify.Rule{Op: "a", Cells: `(body.bbox[2] - body.bbox[0]) * (body.bbox[3] - body.bbox[1])`}, nil, `http a write cells=24 "by rule 24 cells"`, 0},
		{"no cost", classify.Rule{Op: "a", When: "true"}, nil, `http a write low "default cost"`, 0.1},
		{"a base", classify.Rule{Op: "a", When: "true"}, map[string]classify.Cost{"a": {Base: 3 * time.Second}}, `http a write "by rule"`, 3},
		{"rates", classify.Rule{Op: "a", Features: "10"}, map[string]classify.Cost{"a": {Base: time.Second, PerFeature: time.Second}}, `http a write features=10 "by rule 10 features"`, 11},
		{"a write by GET", classify.Rule{Op: "a", Class: "write", When: `request.method == "POST"`, Seconds: "1"}, nil, `http a write "seconds by rule"`, 1},
		{"not replayable", classify.Rule{Op: "a", Class: "read", Seconds: "1", Replayable: &no}, nil, `http a read "seconds by rule"`, 1},
		// A hundred thousand steps are what a rule may take.
		{"too long", classify.Rule{Op: "a", When: deepComprehension, Seconds: "1"}, nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := classifier(t, classify.Config{Rules: []classify.Rule{c.rule}, Costs: c.costs})
			got := describe(cl, post)
			got = strings.Replace(got, " needs-body", "", 1)
			if c.want == "" {
				if !strings.HasPrefix(got, "http unknown") {
					t.Errorf("matched: %s", got)
				}
				return
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if e := cl.Estimate(post); c.sec != 0 && e.Seconds != c.sec {
				t.Errorf("%v s, want %v s", e.Seconds, c.sec)
			}
		})
	}
}

const deepComprehension = `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, a+b+c+d+e > 0)))))`

// The first rule that matches wins, before any family.
func TestRulesFirst(t *testing.T) {
	c := classifier(t, classify.Config{Rules: []classify.Rule{
		{Op: "one", When: `request.path == "/collections/a/items"`, Seconds: "1"},
		{Op: "two", When: `request.path.startsWith("/collections/")`, Seconds: "2"},
	}})
	for target, want := range map[string]string{"/collections/a/items": "one", "/collections/b/items": "two", "/functions": "functions"} {
		if e := c.Estimate(get(target)); e.Op != want {
			t.Errorf("%s: %s, want %s", target, e.Op, want)
		}
	}
}

// A path that an upstream may decode or clean is held against the rules in each
// of its readings.
func TestRulesSeeEveryReading(t *testing.T) {
	c := classifier(t, classify.Config{Rules: []classify.Rule{{Op: "heat", When: `request.path.startsWith("/heat/")`, Seconds: "7"}}})
	for _, path := range []string{"/heat/1", "/%68eat/1", "//heat//1", "/x/../heat/1", "/heat;v=1/1", "/heat%2F1", "/%2e%2e/heat/1"} {
		if e := c.Estimate(get(path)); e.Seconds != 7 {
			t.Errorf("%s: %v s as %s, want 7", path, e.Seconds, e.Op)
		}
	}
}

// Credentials are not there, whichever way a rule tries.
func TestRulesSeeNoCredentials(t *testing.T) {
	r := get("/x?apikey=s3cret&API_KEY=s3cret&access_token=s3cret&X-Amz-Signature=s3cret&w=1")
	r.Header = http.Header{"Authorization": {"s3cret"}, "Cookie": {"s3cret"}, "X-Api-Key": {"s3cret"}, "X-Auth-Token": {"s3cret"}}
	c := classifier(t, classify.Config{Rules: []classify.Rule{
		{Op: "leak", When: `query.exists(k, query[k] == "s3cret") || request.headers.exists(k, request.headers[k] == "s3cret")`, Seconds: "1"},
		{Op: "fine", When: `query.size() == 1`, Seconds: "1"},
	}})
	if e := c.Estimate(r); e.Op != "fine" {
		t.Error("the rule that matched is", e.Op)
	}
}
