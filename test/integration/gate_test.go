package integration_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

// 200 callers at once before a service that bears eight.
func TestTheUpstreamNeverSeesMoreThanItsGate(t *testing.T) {
	const callers, seats = 200, 8
	for _, test := range []struct {
		name, config string
		paths        []string
	}{
		{
			name: "one route",
			config: `
gates: { gis: { seats: 8, queue: 64 } }
upstreams: { features: { url: %s, gate: gis } }
routes: [{ upstream: features }]
`,
			paths: []string{"/collections/roads/items?limit=10"},
		},
		{
			name: "two routes",
			config: `
gates: { gis: { seats: 8, queue: 64 } }
upstreams: { features: { url: %s, gate: gis } }
routes:
- { name: a, match: { path: /a/ }, upstream: features }
- { name: b, match: { path: /b/ }, upstream: features }
`,
			paths: []string{"/a/collections/roads/items?limit=10", "/b/collections/roads/items?limit=10"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			up := slowUpstream(t, 200*time.Millisecond)
			proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(test.config, up.URL))
			c := client(t)

			answers := make([]answer, callers)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = call(c, proxy.URL+test.paths[i%len(test.paths)]) })
			}
			all.Wait()

			served := int64(0)
			bodies := map[string]string{}
			for i, got := range answers {
				switch {
				case got.err != nil:
					t.Fatalf("call %d: %v", i, got.err)
				case got.status == http.StatusOK:
					served++
				case got.status == http.StatusServiceUnavailable && got.header.Get("Geoproxy-Reason") == "concurrency":
					refusal := test.paths[i%len(test.paths)] + " " + got.header.Get("Retry-After")
					if first, found := bodies[refusal]; found && first != got.body {
						t.Errorf("two equal refusals differ:\n%s\n%s", first, got.body)
					}
					bodies[refusal] = got.body
				default:
					t.Errorf("call %d: status %d, reason %q: %s", i, got.status, got.header.Get("Geoproxy-Reason"), got.body)
				}
			}
			if len(bodies) != len(test.paths) {
				t.Errorf("%d kinds of refusals, want one for each of %d paths", len(bodies), len(test.paths))
			}
			if most := up.most.Load(); most != seats {
				t.Errorf("the upstream saw up to %d at once, want %d", most, seats)
			}
			if up.served.Load() != served {
				t.Errorf("the upstream saw %d requests, but %d were answered by it", up.served.Load(), served)
			}
			if served < seats+1 || served > callers-1 {
				t.Errorf("%d of %d were served: neither the line nor its end was met", served, callers)
			}
		})
	}
}
