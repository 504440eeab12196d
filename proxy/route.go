package proxy

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// route is a compiled RouteConfig: everything that a request of it needs.
type route struct {
	name       string
	config     RouteConfig
	classifier *classify.Classifier
	classes    map[classify.Class]*classPolicy
	policies   []*ratelimit.Policy
	outage     ratelimit.Outage             // what decides on them while their store does not
	policyText map[*ratelimit.Policy]string // each one's RateLimit-Policy item
	upstream   *upstream
	gate       *shed.Gate // nil where nothing bounds the upstream
	shadowGate *shed.Gate // takes the place of gate for what is decided in shadow
	// onlyShadow is set where the gate is the one that stands in when the
	// config has none: it is always in shadow.
	onlyShadow  bool
	shadowed    bool // something here decides in shadow, whatever the class
	interactive bool
	cors        *cors
	headers     headerPolicy
	disclose    disclosure
	jobs        JobsConfig // with its defaults
	series      *routeSeries
}

// prefixRoute is a path prefix of a host with its route.
type prefixRoute struct {
	path  string
	route *route
}

// routeTable finds the route of a request: an exact host before "*.suffix"
// before "*", then the longest path ending at a "/", then file order.
type routeTable struct {
	hosts    map[string][]prefixRoute
	suffixes []string // with their leading dot, longest first
	all      []*route
}

func newRouteTable(routes []*route) *routeTable {
	t := &routeTable{hosts: make(map[string][]prefixRoute), all: routes}
	for _, r := range routes {
		host := strings.ToLower(cmp.Or(r.config.Match.Host, "*"))
		if suffix, ok := strings.CutPrefix(host, "*"); ok && suffix != "" {
			host = suffix
			if !slices.Contains(t.suffixes, suffix) {
				t.suffixes = append(t.suffixes, suffix)
			}
		}
		prefix := strings.TrimSuffix(cmp.Or(r.config.Match.Path, "/"), "/")
		t.hosts[host] = append(t.hosts[host], prefixRoute{prefix, r})
	}
	for _, list := range t.hosts {
		slices.SortStableFunc(list, func(a, b prefixRoute) int { return cmp.Compare(len(b.path), len(a.path)) })
	}
	slices.SortFunc(t.suffixes, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return t
}

// find gives the route of a host and an escaped path, or nil. It fails where
// the path has several readings that lead to different routes: an upstream
// could be reached past the policy that was meant for it.
func (t *routeTable) find(host, escaped string) (*route, error) {
	r, one := t.lookup(host, escaped), true
	otherReadings(escaped, func(p string) { one = one && t.lookup(host, p) == r })
	if !one {
		return nil, errors.New("the path can be read in two ways that lead to different routes")
	}
	return r, nil
}

func (t *routeTable) lookup(host, escaped string) *route {
	host = hostOnly(host)
	if r := longestPrefix(t.hosts[host], escaped); r != nil {
		return r
	}
	for _, suffix := range t.suffixes {
		if strings.HasSuffix(host, suffix) {
			if r := longestPrefix(t.hosts[suffix], escaped); r != nil {
				return r
			}
		}
	}
	return longestPrefix(t.hosts["*"], escaped)
}

func longestPrefix(list []prefixRoute, p string) *route {
	for _, candidate := range list {
		n := len(candidate.path)
		if strings.HasPrefix(p, candidate.path) && (len(p) == n || p[n] == '/') {
			return candidate.route
		}
	}
	return nil
}

// hostOnly takes the port and the root's dot off and lowers the case, without
// allocating for the common host that needs none of it.
func hostOnly(host string) string {
	end := strings.IndexByte(host, ':')
	if strings.HasPrefix(host, "[") {
		end = strings.IndexByte(host, ']') + 1
	}
	if end > 0 {
		host = host[:end]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// otherReadings calls visit with what an upstream may take a path for beside
// what it says: see [classify.PathReadings], and some take '\\' for a slash.
func otherReadings(escaped string, visit func(string)) {
	classify.PathReadings(escaped, visit)
	if strings.IndexByte(escaped, '\\') < 0 && !strings.Contains(escaped, "%5") {
		return
	}
	decoded, err := url.PathUnescape(escaped)
	if err != nil {
		decoded = escaped
	}
	if slashed := strings.ReplaceAll(decoded, "\\", "/"); slashed != decoded {
		visit(slashed)
		classify.PathReadings(slashed, visit)
	}
}

// exempts reports whether a path draws no tokens and takes no seat here: in
// every reading, or "/static/../dear" would be free.
func (r *route) exempts(p string) bool {
	if len(r.config.Exempt.Paths) == 0 || !r.exemptsReading(p) {
		return false
	}
	all := true
	otherReadings(p, func(other string) { all = all && r.exemptsReading(other) })
	return all
}

func (r *route) exemptsReading(p string) bool {
	for _, e := range r.config.Exempt.Paths {
		if p == e || (strings.HasSuffix(e, "/") && strings.HasPrefix(p, e)) {
			return true
		}
	}
	return false
}
