package ratelimit_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
)

func compile(t *testing.T, route string, r ratelimit.Rate) *ratelimit.Policy {
	t.Helper()
	p, err := ratelimit.Compile(route, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCompileDefaults(t *testing.T) {
	p := compile(t, "parcels", ratelimit.Rate{Tokens: 2.5})
	if want := (ratelimit.Limit{Tokens: 2500, Every: time.Second, Burst: 2500}); p.Limit != want {
		t.Errorf("limit %+v, want %+v", p.Limit, want)
	}
	if p.Name != "default" || p.Unit != ratelimit.Request || p.Shadow || !p.PerTenant || p.PerAddress {
		t.Errorf("got %+v", p)
	}
	enforce := false
	p = compile(t, "parcels", ratelimit.Rate{Name: "n", Tokens: 1, Every: time.Minute, Burst: 0.001, Unit: "cell", Enforce: &enforce})
	if want := (ratelimit.Limit{Tokens: 1000, Every: time.Minute, Burst: 1}); p.Limit != want || !p.Shadow || p.Unit != ratelimit.Cell {
		t.Errorf("got %+v", p)
	}
}

func TestKey(t *testing.T) {
	for _, c := range []struct {
		per  []string
		want ratelimit.Key
	}{
		{nil, ratelimit.Key{Policy: "parcels/n", Subject: "T"}},
		{[]string{"tenant"}, ratelimit.Key{Policy: "parcels/n", Subject: "T"}},
		{[]string{"route"}, ratelimit.Key{Policy: "parcels/n"}},
		{[]string{"address"}, ratelimit.Key{Policy: "parcels/n", Subject: "A"}},
		{[]string{"global"}, ratelimit.Key{Policy: "*/n"}},
		{[]string{"tenant", "route"}, ratelimit.Key{Policy: "parcels/n", Subject: "T"}},
		{[]string{"global", "tenant"}, ratelimit.Key{Policy: "*/n", Subject: "T"}},
		{[]string{"tenant", "address"}, ratelimit.Key{Policy: "parcels/n", Subject: "T@A"}},
	} {
		p := compile(t, "parcels", ratelimit.Rate{Name: "n", Tokens: 1, Per: c.per})
		if got := p.Key("T", "A"); got != c.want {
			t.Errorf("per %v: %+v, want %+v", c.per, got, c.want)
		}
	}
}

func TestMatches(t *testing.T) {
	est := &classify.Estimate{Call: classify.Call{
		Class: classify.Read, Op: "items", Collection: "parcels", Layer: "roads", Format: "geojson",
	}}
	for _, c := range []struct {
		why  string
		only ratelimit.For
		want bool
	}{
		{"nothing narrows it", ratelimit.For{}, true},
		{"one of the classes", ratelimit.For{Class: []string{"tile", "read"}}, true},
		{"another class", ratelimit.For{Class: []string{"tile"}}, false},
		{"the op", ratelimit.For{Op: []string{"items"}}, true},
		{"another op", ratelimit.For{Op: []string{"item"}}, false},
		{"the collection", ratelimit.For{Collection: []string{"parcels"}}, true},
		{"another collection", ratelimit.For{Collection: []string{"roads"}}, false},
		{"another layer", ratelimit.For{Layer: []string{"parcels"}}, false},
		{"another format", ratelimit.For{Format: []string{"png"}}, false},
		{"the tenant", ratelimit.For{Tenant: []string{"alice"}}, true},
		{"the tenant's class", ratelimit.For{Tenant: []string{"gold"}}, true},
		{"another tenant", ratelimit.For{Tenant: []string{"bob"}}, false},
		{"all but one", ratelimit.For{Class: []string{"read"}, Op: []string{"items"}, Format: []string{"png"}}, false},
	} {
		p := compile(t, "r", ratelimit.Rate{Tokens: 1, For: c.only})
		if got := p.Matches(est, "alice", "gold"); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
	p := compile(t, "r", ratelimit.Rate{Tokens: 1, For: ratelimit.For{Tenant: []string{"gold"}}})
	if p.Matches(est, "", "") {
		t.Error("a tenant without a name matched")
	}
}

func TestCost(t *testing.T) {
	est := &classify.Estimate{Seconds: 0.35, Call: classify.Call{
		Inputs: classify.Inputs{Features: 1000, Vertices: 52_000, Cells: 1e20, Bytes: 0},
	}}
	for unit, want := range map[string]ratelimit.Milli{
		"": 1000, "request": 1000, "second": 350, "feature": 1_000_000, "vertex": 52_000_000, "cell": 1 << 60, "byte": 1,
	} {
		if got := compile(t, "r", ratelimit.Rate{Tokens: 1, Unit: unit}).Cost(est); got != want {
			t.Errorf("%q costs %d, want %d", unit, got, want)
		}
	}
	p := compile(t, "r", ratelimit.Rate{Tokens: 1, Unit: "second"})
	for seconds, want := range map[float64]ratelimit.Milli{
		-1: 1, 0: 1, 1e-9: 1, 0.001: 1, 0.0011: 2, 16.1: 16100, 8.2: 8200, 3600: 3_600_000,
		math.Inf(1): 1 << 60, math.Inf(-1): 1,
	} {
		if got := p.Cost(&classify.Estimate{Seconds: seconds}); got != want {
			t.Errorf("%v s cost %d, want %d", seconds, got, want)
		}
	}
	if got := p.Cost(&classify.Estimate{Seconds: math.NaN()}); got != 1<<60 {
		t.Errorf("not a number costs %d", got)
	}
}

func TestCostRoundsUpAndNeverFalls(t *testing.T) {
	p := compile(t, "r", ratelimit.Rate{Tokens: 1, Unit: "vertex"})
	price := func(x float64) ratelimit.Milli {
		return p.Cost(&classify.Estimate{Call: classify.Call{Inputs: classify.Inputs{Vertices: x}}})
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(0, 1e15).Draw(t, "a")
		b := rapid.Float64Range(a, 1e15).Draw(t, "b")
		if price(a) > price(b) {
			t.Fatalf("%v costs %d, %v %d", a, price(a), b, price(b))
		}
		if float64(price(a))*(1+1e-8) < a*1000 {
			t.Fatalf("%v costs only %d", a, price(a))
		}
	})
}

func TestLimitFor(t *testing.T) {
	rate := ratelimit.Rate{Name: "n", Tokens: 10, Burst: 50}
	plain := ratelimit.Limit{Tokens: 10_000, Every: time.Second, Burst: 50_000}
	p := compile(t, "r", rate)
	for factor, want := range map[float64]ratelimit.Limit{
		0: plain, 1: plain, -3: plain, math.NaN(): plain,
		2.5:   {Tokens: 25_000, Every: time.Second, Burst: 125_000},
		1e-9:  {Tokens: 1, Every: time.Second, Burst: 1},
		1e300: {Tokens: 1e12, Every: time.Second, Burst: 1e12},
	} {
		if got := p.LimitFor(factor); got != want {
			t.Errorf("factor %v: %+v, want %+v", factor, got, want)
		}
	}
	// What tenants share is nobody's to widen.
	rate.Per = []string{"route"}
	if got := compile(t, "r", rate).LimitFor(10); got != plain {
		t.Errorf("per route: %+v", got)
	}
}

func TestEqual(t *testing.T) {
	rate := func() ratelimit.Rate {
		return ratelimit.Rate{Name: "n", Tokens: 1, For: ratelimit.For{Class: []string{"read"}, Op: []string{"items"}}}
	}
	p := compile(t, "r", rate())
	if !p.Equal(compile(t, "r", rate())) {
		t.Error("differs from itself")
	}
	if p.Equal(compile(t, "other", rate())) {
		t.Error("equals another route's")
	}
	enforce := false
	for name, change := range map[string]func(*ratelimit.Rate){
		"name":    func(r *ratelimit.Rate) { r.Name = "m" },
		"tokens":  func(r *ratelimit.Rate) { r.Tokens = 2 },
		"per":     func(r *ratelimit.Rate) { r.Per = []string{"address"} },
		"global":  func(r *ratelimit.Rate) { r.Per = []string{"tenant", "global"} },
		"class":   func(r *ratelimit.Rate) { r.For.Class = nil },
		"op":      func(r *ratelimit.Rate) { r.For.Op = []string{"item"} },
		"unit":    func(r *ratelimit.Rate) { r.Unit = "byte" },
		"enforce": func(r *ratelimit.Rate) { r.Enforce = &enforce },
	} {
		r := rate()
		change(&r)
		if p.Equal(compile(t, "r", r)) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestRateCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		rate ratelimit.Rate
		want []string
	}{
		{"smallest", ratelimit.Rate{Tokens: 0.001}, nil},
		{"full", ratelimit.Rate{
			Name: "fair-use.2", Per: []string{"tenant", "address", "global"}, Tokens: 1e9, Every: time.Hour, Burst: 1e9, Unit: "byte",
			For: ratelimit.For{Class: []string{"read", "mcp"}, Tenant: []string{"gold"}},
		}, nil},
		{"empty", ratelimit.Rate{}, []string{"tokens"}},
		{"not a number", ratelimit.Rate{Tokens: math.NaN(), Burst: math.NaN()}, []string{"tokens", "burst"}},
		{"bounds", ratelimit.Rate{Tokens: 1e10, Burst: -1, Every: 2 * time.Hour}, []string{"tokens", "burst", "every"}},
		{"too fast", ratelimit.Rate{Tokens: 1, Every: time.Microsecond}, []string{"every"}},
		{"names", ratelimit.Rate{
			Name: "a/b", Tokens: 1, Unit: "element", Per: []string{"user", "tenant", "tenant"},
			For: ratelimit.For{Class: []string{"read", "reed"}, Op: []string{""}, Tenant: []string{"a", ""}},
		}, []string{"name", "for.class[1]", "for.op[0]", "for.tenant[1]", "per[0]", "per[2]", "unit"}},
		{"a bucket of the route's and of all", ratelimit.Rate{Name: "n", Tokens: 1, Per: []string{"route", "global"}}, []string{"per"}},
		{"global without a name", ratelimit.Rate{Tokens: 1, Per: []string{"global"}}, []string{"name"}},
		{"refills in a lifetime", ratelimit.Rate{Tokens: 1, Every: time.Hour, Burst: 9000}, []string{"burst"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got, messages []string
			c.rate.Check(func(path, message string) {
				got = append(got, path)
				messages = append(messages, message)
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("mistakes at %v, want %v: %s", got, c.want, strings.Join(messages, "; "))
			}
			if _, err := ratelimit.Compile("r", c.rate); (err != nil) != (len(got) > 0) {
				t.Errorf("Compile: %v", err)
			}
		})
	}
}

func BenchmarkPolicy(b *testing.B) {
	p, err := ratelimit.Compile("r", ratelimit.Rate{Tokens: 1, Unit: "second", For: ratelimit.For{Class: []string{"read"}, Op: []string{"items"}}})
	if err != nil {
		b.Fatal(err)
	}
	est := &classify.Estimate{Seconds: 0.35, Call: classify.Call{Class: classify.Read, Op: "items"}}
	b.ReportAllocs()
	for b.Loop() {
		if p.Matches(est, "", "") {
			_ = p.Cost(est)
			_ = p.Key("tenant", "address")
		}
	}
}
