package integration_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

// A new config may come at any moment. What the file says of gates and rates
// holds before, during and after, and no request pays for the change.
func TestReloadsUnderLoadFailNoRequest(t *testing.T) {
	const callers, reloads, most = 48, 40, 8
	const burst, rate = 200, 400
	up := slowUpstream(t, 5*time.Millisecond)
	config := func(seats int, admission time.Duration) string {
		return fmt.Sprintf(`
gates: { gis: { seats: %d, queue: 32 } }
upstreams: { features: { url: %s, gate: gis } }
routes:
- name: features
  upstream: features
  classes: { read: { admission: %s } }
  rates: [{ name: licence, per: route, tokens: %d, every: 1s, burst: %d }]
`, seats, up.URL, admission, rate, burst)
	}
	began := time.Now()
	proxy := binary.Start(t, binary.Path(t), config(most, time.Second))
	c := client(t)

	var stop atomic.Bool
	var served, refused atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for !stop.Load() {
				got := call(c, proxy.URL+"/collections/roads/items?limit=10")
				reason := got.header.Get("Geoproxy-Reason")
				switch {
				case got.err == nil && got.status == http.StatusOK:
					served.Add(1)
				case got.err == nil && (reason == "rate" || reason == "concurrency"):
					refused.Add(1)
				default:
					t.Errorf("status %d, reason %q, error %v: %s", got.status, reason, got.err, got.body)
					return
				}
			}
		})
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := range reloads {
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		next := config(1+random.IntN(most), time.Duration(1+random.IntN(1000))*time.Millisecond)
		if i%10 == 9 {
			next += "nonsense: true\n" // a file that must leave everything as it is
		}
		proxy.Write(t, next)
		proxy.Signal(t, syscall.SIGHUP)
	}
	stop.Store(true)
	all.Wait()
	total := time.Since(began)

	if got := up.most.Load(); got > most {
		t.Errorf("the upstream saw up to %d at once, and no config allowed more than %d", got, most)
	}
	if up.served.Load() != served.Load() {
		t.Errorf("the upstream saw %d requests, but %d were answered by it", up.served.Load(), served.Load())
	}
	if fair := burst + rate*total.Seconds(); float64(served.Load()) > fair {
		t.Errorf("%d were served in %v, and the bucket holds %.0f in that time", served.Load(), total, fair)
	}
	if served.Load() == 0 {
		t.Error("nothing was served")
	}
	t.Logf("%d served, %d refused in %v", served.Load(), refused.Load(), total)

	// The gate is the one that the last good file describes.
	up.most.Store(0)
	proxy.Write(t, config(2, time.Second))
	proxy.Signal(t, syscall.SIGHUP)
	proxy.Eventually(t, "down to two seats", func() bool {
		up.most.Store(0)
		var burst sync.WaitGroup
		for range 8 {
			burst.Go(func() { call(c, proxy.URL+"/collections/roads/items?limit=10") })
		}
		burst.Wait()
		return up.most.Load() == 2
	})
}
