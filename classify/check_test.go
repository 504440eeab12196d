package classify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

func TestCheck(t *testing.T) {
	yes := true
	one := func(r classify.Rule) classify.Config { return classify.Config{Rules: []classify.Rule{r}} }
	for _, c := range []struct {
		name string
		cfg  classify.Config
		want []string // what each mistake begins with
	}{
		{"nothing", classify.Config{}, nil},
		{"everything", classify.Config{Family: "xyz", Profile: "guide", DefaultCost: time.Second, Assume: classify.Assume{Limit: 20, MaxLimit: 20}, Costs: map[string]classify.Cost{"heat": {Base: 1}, "items": {Base: 1}, "unknown": {Base: 1}}, Rules: []classify.Rule{{Op: "heat", When: "true"}}}, nil},
		{"family", classify.Config{Family: "wfs4"}, []string{`family: "wfs4" is no family: one of auto, http, wms, wmts, wfs, wcs, `}},
		{"profile", classify.Config{Profile: "cheap"}, []string{`profile: "cheap" is no profile`}},
		{"default cost", classify.Config{DefaultCost: -1}, []string{"default_cost: must be between 0 and 1h"}},
		{"assume", classify.Config{Assume: classify.Assume{Features: -1, Vertices: 2e9, Limit: 20, MaxLimit: 10}}, []string{"assume.features: must be", "assume.vertices: must be", "assume.limit: must not be above max_limit"}},
		{"costs", classify.Config{Costs: map[string]classify.Cost{"itmes": {}, "items": {PerFeature: -1, PerByte: 2 * time.Hour}}}, []string{"costs.items.per_feature: must be", "costs.items.per_byte: must be", "costs.itmes: no family and no rule"}},
		{"op", one(classify.Rule{Seconds: "1"}), []string{"rules[0].op: must be a name"}},
		{"class", one(classify.Rule{Op: "a", Class: "cheap", Seconds: "1"}), []string{`rules[0].class: "cheap" is no class`}},
		{"both", one(classify.Rule{Op: "a", Seconds: "1", Cells: "1"}), []string{"rules[0].seconds: leaves nothing"}},
		{"a write to repeat", one(classify.Rule{Op: "a", Class: "write", Seconds: "1", Replayable: &yes}), []string{"rules[0].replayable: contradicts"}},
		{"syntax", one(classify.Rule{Op: "a", When: `request.path ==`}), []string{"rules[0].when: column 16: Syntax error"}},
		{"name", one(classify.Rule{Op: "a", When: `true || request.user == "x"`}), []string{"rules[0].when: column 16: undeclared reference to 'request.user'"}},
		{"types", one(classify.Rule{Op: "a", When: `request.path == 1`}), []string{"rules[0].when: column 14: found no matching overload"}},
		{"not a bool", one(classify.Rule{Op: "a", When: `request.path`}), []string{"rules[0].when: column 1: gives string, not bool"}},
		{"not a number", one(classify.Rule{Op: "a", Cells: `query.w`}), []string{"rules[0].cells: column 1: gives string, not a number"}},
		{"credential", one(classify.Rule{Op: "a", When: `request.headers["authorization"] != ""`}), []string{`rules[0].when: column 16: "authorization" is a credential`}},
		{"credential by selection", one(classify.Rule{Op: "a", When: `has(query.apikey)`}), []string{`rules[0].when: column 4: "apikey" is a credential`}},
		{"credential by in", one(classify.Rule{Op: "a", When: `"cookie" in request.headers`}), []string{`rules[0].when: column 10: "cookie" is a credential`}},
		{"a word is none", one(classify.Rule{Op: "a", When: `query.type == "token"`}), nil},
		{"too deep", one(classify.Rule{Op: "a", When: strings.Repeat("(", 100) + "true" + strings.Repeat(")", 100)}), []string{"rules[0].when: column"}},
		{"too long", one(classify.Rule{Op: "a", When: `"` + strings.Repeat("a", 5000) + `" == ""`}), []string{"rules[0].when: column"}},
		{"never reached", classify.Config{Rules: []classify.Rule{{Op: "a"}, {Op: "b"}}}, []string{"rules[0].when: matches everything"}},
		{"every one of them", one(classify.Rule{Op: "a b", Class: "x", When: "nope", Seconds: "nope", Cells: "1"}), []string{"rules[0].op", "rules[0].class", "rules[0].seconds", "rules[0].when", "rules[0].seconds"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			c.cfg.Check(func(path, message string) { got = append(got, path+": "+message) })
			if len(got) != len(c.want) {
				t.Fatalf("%d mistakes, want %d: %q", len(got), len(c.want), got)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
			}
			if _, err := classify.New(c.cfg); (err != nil) != (len(c.want) > 0) {
				t.Error("New:", err)
			}
		})
	}
}

func TestCheckBody(t *testing.T) {
	for _, c := range []struct {
		cfg  classify.BodyConfig
		want []string
	}{
		{classify.BodyConfig{}, nil},
		{classify.BodyConfig{Bytes: 1 << 20, Wait: time.Second}, nil},
		{classify.BodyConfig{Bytes: -1, Wait: -1}, []string{"body", "wait"}},
		{classify.BodyConfig{Bytes: 1 << 40, Wait: time.Hour}, []string{"body", "wait"}},
	} {
		var got []string
		c.cfg.Check(func(path, _ string) { got = append(got, path) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.cfg, got, c.want)
		}
	}
	if got := (classify.BodyConfig{}).WithDefaults(); got.Bytes != 64<<10 || got.Wait != 2*time.Second {
		t.Errorf("defaults %+v", got)
	}
}
