package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

func (k *checker) routes() {
	names, matches := make(map[string]int), make(map[Match]int)
	globals := make(map[string]string) // name of a rate per global: where it stands first
	for i := range k.Routes {
		r, path := &k.Routes[i], fmt.Sprintf("routes[%d]", i)
		if r.Name != "" {
			k.name(path+".name", "a route", r.Name)
			if first, again := names[r.Name]; again {
				k.mistake(path+".name", fmt.Sprintf("routes[%d] has this name: it is the identity of a route's state", first))
			} else {
				names[r.Name] = i
			}
		} else if len(k.Routes) > 1 {
			k.mistake(path+".name", "is required with more than one route: it is the identity of its state")
		}
		match := k.match(path+".match", r.Match)
		if first, again := matches[match]; again {
			k.warn(path+".match", fmt.Sprintf("never matches: routes[%d] matches the same and stands before it", first))
		} else {
			matches[match] = i
		}
		k.route(path, r)
		for j := range r.Rates {
			k.global(globals, fmt.Sprintf("%s.rates[%d]", path, j), &r.Rates[j])
		}
	}
}

// match checks a match and gives it as the route table reads it.
func (k *checker) match(path string, m Match) Match {
	host := cmp.Or(strings.ToLower(m.Host), "*")
	switch bare := strings.TrimPrefix(host, "*."); {
	case host == "*":
	case strings.ContainsAny(bare, "*/ ") || bare == "" || strings.HasPrefix(bare, "."):
		k.mistake(path+".host", `must be a host, "*.suffix" or "*"`)
	case strings.Contains(bare, ":") && !strings.HasPrefix(bare, "["):
		k.mistake(path+".host", "must be without a port: routes do not look at it")
	}
	if m.Path != "" && (m.Path[0] != '/' || strings.ContainsAny(m.Path, "?#* ")) {
		k.mistake(path+".path", `must be a path prefix that begins with "/"`)
	}
	return Match{Host: host, Path: strings.TrimSuffix(m.Path, "/")}
}

func (k *checker) route(path string, r *RouteConfig) {
	switch _, known := k.Upstreams[r.Upstream]; {
	case r.Upstream == "":
		k.mistake(path+".upstream", "is required: the name of an upstream, or a URL")
	case strings.Contains(r.Upstream, ":/"):
		k.upstreamURL(path+".upstream", r.Upstream)
	case !known:
		k.unknown(path+".upstream", "upstream", r.Upstream, slices.Sorted(maps.Keys(k.Upstreams)))
	}
	k.gate(path+".gate", r.Gate)
	if k.hasGates() && k.gateOf(r) == nil && !k.dangling {
		k.warn(path, "goes through none of the gates: nothing bounds what is at work in its upstream")
	}
	r.Check(under(k.mistake, path)) // what is inline: family, rules, costs
	k.classes(path+".classes", r)
	k.rates(path+".rates", r)
	k.oneOf(path+".redis_down", r.RedisDown, "local", "allow", "deny")
	r.Shed.Check(under(k.mistake, path+".shed"))
	k.jobs(path+".jobs", r.Jobs)
	if r.Shed.Silent {
		k.warn(path+".shed.silent", "callers cannot tell a refusal from an answer")
	}
	for i, p := range r.Exempt.Paths {
		if !strings.HasPrefix(p, "/") {
			k.mistake(fmt.Sprintf("%s.exempt.paths[%d]", path, i), `must begin with "/"`)
		}
		if p == "/" {
			k.warn(fmt.Sprintf("%s.exempt.paths[%d]", path, i), "exempts every request of the route from its policy")
		}
	}
	k.cors(path+".cors", r.CORS)
	k.oneOf(path+".headers", r.Headers, "auto", "always", "refusals")
	k.oneOf(path+".disclose", r.Disclose, "full", "coarse", "none")
}

func (k *checker) classes(path string, r *RouteConfig) {
	for _, name := range slices.Sorted(maps.Keys(r.Classes)) {
		said, at := r.Classes[name], path+"."+name
		class, err := classify.ParseClass(name)
		if err != nil {
			k.mistake(at, "is no class: there are "+classNames())
			continue
		}
		k.oneOf(at+".too_big", said.TooBig, string(TooBigWait), string(TooBigRefuse))
		p := compileClass(class, said, false)
		if p.inline > p.alwaysQueue {
			k.mistake(at+".inline", fmt.Sprintf("is above always_queue (%s): a request cannot be both", asDuration(p.alwaysQueue)))
		}
		if p.admission > p.deadline {
			k.warn(at+".admission", fmt.Sprintf("(%s) is longer than the deadline (%s), which the wait is part of", p.admission, p.deadline))
		}
		if p.alwaysQueue > p.deadline.Seconds() {
			k.warn(at+".always_queue", fmt.Sprintf("(%s) is never reached: the deadline is %s", asDuration(p.alwaysQueue), p.deadline))
		}
	}
}

func asDuration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func classNames() string {
	var names []string
	for _, c := range classify.Classes() {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}

func (k *checker) rates(path string, r *RouteConfig) {
	names := make(map[string]int)
	for i := range r.Rates {
		rate, at := &r.Rates[i], fmt.Sprintf("%s[%d]", path, i)
		rate.Check(under(k.mistake, at))
		if rate.Name != "" {
			if first, again := names[rate.Name]; again {
				k.mistake(at+".name", fmt.Sprintf("rates[%d] has this name: it is the identity of a rate's state", first))
			} else {
				names[rate.Name] = i
			}
		} else if len(r.Rates) > 1 {
			k.mistake(at+".name", "is required beside another rate: it is the identity of its state")
		}
		k.burst(at, r, rate)
	}
}

// global checks that rates of one global bucket are the same.
func (k *checker) global(first map[string]string, path string, rate *ratelimit.Rate) {
	if rate.Name == "" || !slices.Contains(rate.Per, "global") {
		return
	}
	at, again := first[rate.Name]
	if !again {
		first[rate.Name] = path
		return
	}
	var i, j int
	if _, err := fmt.Sscanf(at, "routes[%d].rates[%d]", &i, &j); err == nil && !reflect.DeepEqual(*rate, k.Routes[i].Rates[j]) {
		k.mistake(path, fmt.Sprintf("differs from %s: rates per global of one name share one bucket and must be equal", at))
	}
}

// burst warns where a bucket holds more than can be waited for, or less than
// one request needs.
func (k *checker) burst(path string, r *RouteConfig, rate *ratelimit.Rate) {
	held := cmp.Or(rate.Burst, rate.Tokens)
	if held <= 0 {
		return // reported already
	}
	at := path + ".burst"
	unit := cmp.Or(rate.Unit, "request")
	if gate := k.gateOf(r); gate != nil && unit == "request" && gate.Seats > 0 {
		if room := gate.Seats + cmp.Or(gate.Queue, 8*gate.Seats); held > float64(room) {
			k.warn(at, fmt.Sprintf("%g requests at once are more than the gate seats and lets wait (%d): the rest of a burst is refused there", held, room))
		}
	}
	limit := float64(cmp.Or(r.Assume.Limit, 10))
	switch need := dearest(r, rate, unit); {
	case need > held:
		k.warn(at, fmt.Sprintf("a request by a rule of this route costs %g and can never fit %g", need, held))
	case unit == "request" && held < 1:
		k.warn(at, fmt.Sprintf("a request costs 1 and can never fit %g", held))
	case unit == "feature" && held < limit:
		k.warn(at, fmt.Sprintf("a page without a limit is taken for %g features and can never fit %g", limit, held))
	case unit == "vertex" && held < limit*float64(cmp.Or(r.Assume.Vertices, 52)):
		k.warn(at, fmt.Sprintf("a page without a limit is taken for %g vertices and can never fit %g", limit*float64(cmp.Or(r.Assume.Vertices, 52)), held))
	case unit == "second" && held < defaultInline.Seconds():
		k.warn(at, fmt.Sprintf("requests up to %s are meant to run at once, and those above %gs can never fit", defaultInline, held))
	}
}

// dearest is the highest cost that a rule of the route states as a number for
// what the rate counts.
func dearest(r *RouteConfig, rate *ratelimit.Rate, unit string) float64 {
	var most float64
	for i := range r.Rules {
		rule := &r.Rules[i]
		if len(rate.For.Op) > 0 && !slices.Contains(rate.For.Op, rule.Op) ||
			len(rate.For.Class) > 0 && !slices.Contains(rate.For.Class, rule.Class) {
			continue
		}
		written := map[string]string{"second": rule.Seconds, "feature": rule.Features, "vertex": rule.Vertices, "cell": rule.Cells}[unit]
		if n, err := strconv.ParseFloat(written, 64); err == nil {
			most = max(most, n)
		}
	}
	return most
}

// hasGates reports whether the config bounds anything.
func (k *checker) hasGates() bool {
	c := compiled{config: *k.Config}
	return c.hasGates()
}

// gateOf is the gate that the route's requests go through, or nil.
func (k *checker) gateOf(r *RouteConfig) *shed.GateConfig {
	for _, ref := range []GateRef{r.Gate, k.Upstreams[r.Upstream].Gate} {
		if named, ok := k.Gates[ref.Name]; ok {
			return &named
		}
		if !reflect.ValueOf(ref.GateConfig).IsZero() {
			return &ref.GateConfig
		}
	}
	return nil
}

func (k *checker) cors(path string, origins []string) {
	for i, origin := range origins {
		at := fmt.Sprintf("%s[%d]", path, i)
		if origin == "mirror" || origin == "off" {
			if len(origins) > 1 {
				k.mistake(at, fmt.Sprintf("%q stands alone, without origins", origin))
			}
			continue
		}
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+strings.ToLower(u.Host)) {
			k.mistake(at, `must be "mirror", "off", "*" or an origin such as https://map.example, in lower case and without a path`)
		}
	}
}
