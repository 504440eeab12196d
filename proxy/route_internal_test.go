package proxy

import (
	"fmt"
	"strings"
	"testing"
)

func routesOf(matches ...Match) *routeTable {
	var routes []*route
	for _, m := range matches {
		routes = append(routes, &route{name: m.Host + m.Path, config: RouteConfig{Match: m}})
	}
	return newRouteTable(routes)
}

func TestRouteOrder(t *testing.T) {
	t.Parallel()
	table := routesOf(
		Match{Path: "/"}, Match{Path: "/ogc"}, Match{Path: "/ogc/tiles/"},
		Match{Host: "*.example.org", Path: "/"}, Match{Host: "*.maps.example.org", Path: "/"},
		Match{Host: "a.example.org", Path: "/only"},
	)
	for _, c := range []struct{ host, path, want string }{
		{"x", "/", "/"},
		{"x", "/ogc", "/ogc"},
		{"x", "/ogc/collections", "/ogc"},
		{"x", "/ogcx", "/"},
		{"x", "/ogc/tiles/1/2/3", "/ogc/tiles/"},
		{"x", "/ogc/tiles", "/ogc/tiles/"},
		{"b.example.org", "/ogc", "*.example.org/"},
		{"B.Example.ORG:8080", "/ogc", "*.example.org/"},
		{"b.maps.example.org", "/", "*.maps.example.org/"},
		{"example.org", "/", "/"},
		{"a.example.org", "/only/this", "a.example.org/only"},
		{"a.example.org", "/other", "*.example.org/"},
		{"[::1]:8080", "/ogc", "/ogc"},
		{"[::1]", "/ogc", "/ogc"},
		{"a.example.org.", "/only/this", "a.example.org/only"},
		{"a.example.org.:80", "/only/this", "a.example.org/only"},
		{"a.example.org:80:80", "/only/this", "a.example.org/only"},
	} {
		r, err := table.find(c.host, c.path)
		if err != nil || r == nil || r.name != c.want {
			t.Errorf("%s%s: %v, %v; want %s", c.host, c.path, r, err, c.want)
		}
	}
}

// TestRouteReadings: a path that some servers would read as another route's
// must not slip past that route's policy.
func TestRouteReadings(t *testing.T) {
	t.Parallel()
	table := routesOf(Match{Path: "/cheap/"}, Match{Path: "/dear/"})
	for path, ok := range map[string]bool{
		"/cheap/a%20b":         true,
		"/cheap/a%2Fb":         true,
		"/cheap//a":            true,
		"/cheap/../dear/x":     false,
		"/cheap/%2e%2e/dear/x": false,
		"/cheap/..%2Fdear/x":   false,
		"/cheap%2F..%2Fdear":   false,
		"/cheap/..\\dear/x":    false,
		"//dear/x":             false,
		"/x/%zz":               true,
		"/cheap/./x":           true,
		"/dear/%63olumns":      true,
		"/%64ear/x":            false,
		"/cheap/..;/dear/x":    false, // servlet containers take path parameters off
		"/dear;a=b/x":          false,
		"/dear%3ba=b/x":        false,
		"/x;y/..%5cdear/x":     false,
		"/dear/a;b/x":          true,
	} {
		if _, err := table.find("h", path); (err == nil) != ok {
			t.Errorf("%s: %v; want ok %t", path, err, ok)
		}
	}
}

// TestExemptReadings: what is exempt by how it is written, but something else
// to an upstream, is not exempt.
func TestExemptReadings(t *testing.T) {
	t.Parallel()
	r := &route{config: RouteConfig{Exempt: Exempt{Paths: []string{"/health", "/static/"}}}}
	for path, want := range map[string]bool{
		"/health":                true,
		"/health/x":              false,
		"/static/a.png":          true,
		"/static/a%20b.png":      true,
		"/static/a/../b.png":     true,
		"/static/../dear":        false,
		"/static/%2e%2e/dear":    false,
		"/static/..%2fdear":      false,
		"/static/..;/dear":       false,
		"/static/..%5cdear":      false,
		"/static/x/../../dear":   false,
		"/dear/../static/a.png":  false,
		"/dear/..%2fstatic/../x": false,
	} {
		if got := r.exempts(path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

// FuzzRouteEscapes: writing a letter of a path with an escape leads to the
// same route or to a refusal, never to another route.
func FuzzRouteEscapes(f *testing.F) {
	f.Add("h", "/cheap/../dear", 1)
	f.Add("[::1]:1", "/%2e%2e/%zz", 4)
	f.Add("a.h", "/dear/x", 3)
	table := routesOf(Match{Path: "/cheap/"}, Match{Path: "/dear/"}, Match{Host: "*.h"})
	f.Fuzz(func(t *testing.T, host, path string, at int) {
		plain, err := table.find(host, path)
		if err != nil || at < 0 || at >= len(path) || path[at] == '%' || strings.Contains(path, "%") {
			return
		}
		escaped := fmt.Sprintf("%s%%%02x%s", path[:at], path[at], path[at+1:])
		other, err := table.find(host, escaped)
		if err == nil && other != plain {
			t.Errorf("%q leads to %v, %q to %v", path, plain, escaped, other)
		}
	})
}
