package demo

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/proxy"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// frontConfig is geoproxy's config for the service at upstream, as an operator
// would write it who has measured what a row and a vertex cost.
func frontConfig(upstream string) proxy.Config {
	yes := true
	process := func(name, vertices string) classify.Rule {
		return classify.Rule{
			Op: name, Class: "compute", Replayable: &yes,
			When:     fmt.Sprintf(`request.method == "POST" && request.path == "/processes/%s/execution"`, name),
			Features: "body.features",
			// A body that only names rows does not say how many vertices they have.
			Vertices: "body.vertices > 0 ? body.vertices : " + vertices,
		}
	}
	cost := func(p pace, computing time.Duration) classify.Cost {
		return classify.Cost{Base: p.query, PerFeature: p.row, PerVertex: p.vertex + computing}
	}
	return proxy.Config{
		Gates: map[string]shed.GateConfig{
			// As many seats as the pool has connections, of which what computes
			// never has more than half.
			"pool": {Seats: connections, Queue: 8 * connections, AtMost: map[string]int{"compute": connections / 2}},
		},
		Upstreams: map[string]proxy.UpstreamConfig{
			"service": {URL: upstream, Gate: proxy.GateRef{Name: "pool"}},
		},
		Routes: []proxy.RouteConfig{{
			Name: "demo", Upstream: "service",
			Config: classify.Config{
				Rules: []classify.Rule{process("buffer", "1000"), process("union", "5000"), process("overlay", "5000")},
				Costs: map[string]classify.Cost{
					"items": cost(itemsPace, 0), "filter": cost(itemsPace, 0), "item": cost(itemsPace, 0),
					// A tile's address does not say how much is in it: what one takes on average.
					"tile":   {Base: 60 * time.Millisecond, PerFeature: 1, PerVertex: 1},
					"buffer": cost(bufferPace, 170*time.Microsecond), "union": cost(unionPace, 5*time.Microsecond), "overlay": cost(overlayPace, 5*time.Microsecond),
				},
				Assume: classify.Assume{Limit: defaultLimit, MaxLimit: maxLimit, Vertices: 150},
			},
			Classes: map[string]proxy.ClassConfig{
				"read":    {AlwaysQueue: 2 * time.Second},
				"compute": {Admission: 2 * time.Second, AlwaysQueue: 8 * time.Second, TooBig: string(proxy.TooBigRefuse)},
			},
			Rates: []ratelimit.Rate{
				{Name: "tools", For: ratelimit.For{Class: []string{"compute"}}, Tokens: 6, Every: time.Second, Burst: 12},
				{Name: "filters", For: ratelimit.For{Op: []string{"filter"}}, Tokens: 10, Every: time.Second, Burst: 10},
			},
			Exempt: proxy.Exempt{Paths: []string{"/map", "/pool"}},
		}},
	}
}

// newFront makes the geoproxy that stands before the service. Its config is
// this program's own, so its secret need not outlive it.
func newFront(upstream string, secret []byte, store jobs.Store) (*proxy.Proxy, error) {
	return proxy.New(frontConfig(upstream), proxy.Parts{
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Secret: secret,
		Jobs: &proxy.JobParts{Store: store, Key: secret},
	})
}
