package integration_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/geoproxy/geoproxy/test/binary"
	"github.com/geoproxy/geoproxy/test/redistest"
)

// sharedTenASecond is tenASecond shared through a Redis. Each route has the
// limit once; they differ in what decides without Redis. The
// one without a rate has nothing to do with Redis.
const sharedTenASecond = `
secret: 0123456789abcdef0123456789abcdef
redis: redis://%s/0
gates: { gis: { seats: 64, queue: 512 } }
upstreams: { features: { url: %s, gate: gis } }
routes:
- { name: local, match: { path: /local/ }, upstream: features, classes: &read { read: { admission: %s } }, rates: &rates [{ name: licence, per: route, tokens: 10, every: 1s, burst: 10 }] }
- { name: allow, match: { path: /allow/ }, upstream: features, classes: *read, rates: *rates, redis_down: allow }
- { name: deny, match: { path: /deny/ }, upstream: features, classes: *read, rates: *rates, redis_down: deny }
- { name: unlimited, match: { path: /unlimited/ }, upstream: features }
`

const items = "/collections/roads/items?limit=10&n="

// replicas starts two processes on one Redis and waits until they count each other.
func replicas(t *testing.T, redis, upstream, admission string) [2]*binary.Proxy {
	t.Helper()
	var both [2]*binary.Proxy
	for i := range both {
		both[i] = binary.Start(t, binary.Path(t), fmt.Sprintf(sharedTenASecond, redis, upstream, admission))
	}
	for _, p := range both {
		p.Eventually(t, "counting two replicas", func() bool { return p.Metric(t, "geoproxy_redis_replicas") == 2 })
	}
	return both
}

func TestTwoReplicasShareOneLimit(t *testing.T) {
	server := redistest.Start(t)
	up := slowUpstream(t, 0)
	both := replicas(t, server.Address, up.URL, "20s")
	redis := goredis.NewClient(&goredis.Options{Addr: server.Address})
	defer redis.Close()
	if err := redis.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}

	sum := func(name string, labels ...string) (n float64) {
		for _, p := range both {
			n += p.Metric(t, name, labels...)
		}
		return n
	}
	beats := sum("geoproxy_redis_calls_total", `call="beat"`)

	c := client(t)
	began := time.Now()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			got := call(c, both[i%2].URL+"/local"+items+strconv.Itoa(i))
			if got.err != nil || got.status != http.StatusOK {
				t.Errorf("call %d: status %d, error %v: %s", i, got.status, got.err, got.body)
			}
		})
	}
	all.Wait()
	if total := time.Since(began); total < 9*time.Second || total > 9500*time.Millisecond {
		t.Errorf("100 calls over two replicas took %v, want 9.0 to 9.5 s", total)
	}
	// One call for each bucket drawn, by Redis's own count; beats run a script
	// too. On a machine that stalls for 50 ms a few decide without an answer.
	without := sum("geoproxy_redis_fallback_decisions_total")
	drawn := sum("geoproxy_redis_calls_total", `call="draw"`, `outcome="ok"`)
	if drawn+without != 100 || without > 5 {
		t.Errorf("%v draws and %v without Redis for 100 requests", drawn, without)
	}
	ran := float64(scriptCalls(t, redis))
	beats = sum("geoproxy_redis_calls_total", `call="beat"`) - beats
	if ran < drawn || ran > 100+beats+2 { // a beat is counted when it has been answered
		t.Errorf("Redis ran %v scripts for 100 draws and %v beats", ran, beats)
	}
}

// scriptCalls is how many scripts a Redis has run, by its own count.
func scriptCalls(t *testing.T, redis *goredis.Client) int {
	t.Helper()
	stats, err := redis.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, name := range []string{"cmdstat_eval", "cmdstat_evalsha"} {
		var n int
		_, _ = fmt.Sscanf(stats["Commandstats"][name], "calls=%d,", &n) // absent: none
		total += n
	}
	return total
}

// traffic asks both replicas for as long as it runs, each route 40 times a
// second, and keeps what it got.
type traffic struct {
	stop chan struct{}
	all  sync.WaitGroup
	mu   sync.Mutex
	got  map[string][]served // by route
}

type served struct {
	at     time.Time // when it was answered
	status int
	took   time.Duration
	reason string
}

func drive(t *testing.T, both [2]*binary.Proxy, routes ...string) *traffic {
	t.Helper()
	w := &traffic{stop: make(chan struct{}), got: map[string][]served{}}
	c := client(t)
	for _, route := range routes {
		for _, p := range both {
			w.all.Go(func() {
				tick := time.NewTicker(50 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-w.stop:
						return
					case <-tick.C:
					}
					w.all.Go(func() {
						got := call(c, p.URL+"/"+route+items)
						if got.err != nil {
							t.Errorf("%s: %v", route, got.err)
							return
						}
						w.mu.Lock()
						defer w.mu.Unlock()
						w.got[route] = append(w.got[route], served{time.Now(), got.status, got.took, got.header.Get("Geoproxy-Reason")})
					})
				}
			})
		}
	}
	t.Cleanup(w.end)
	return w
}

func (w *traffic) end() {
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.all.Wait()
}

// count counts the answers of a route between two instants that are as asked.
func (w *traffic) count(route string, from, to time.Time, which func(served) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.got[route] {
		if s.at.After(from) && s.at.Before(to) && which(s) {
			n++
		}
	}
	return n
}

// longest is the longest that an answer of a route between two instants took.
func (w *traffic) longest(route string, from, to time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := time.Duration(0)
	for _, s := range w.got[route] {
		if s.at.After(from) && s.at.Before(to) {
			longest = max(longest, s.took)
		}
	}
	return longest
}

func ok(s served) bool { return s.status == http.StatusOK }

// Redis goes away in three ways under traffic, and comes back.
func TestRedisAwayUnderTraffic(t *testing.T) {
	const admission = 300 * time.Millisecond
	for _, c := range []struct {
		name       string
		away, back func(*testing.T, *redistest.Server, *redistest.Slow)
	}{
		{
			"stopped and started empty",
			func(t *testing.T, s *redistest.Server, _ *redistest.Slow) { t.Helper(); s.Stop(t) },
			func(t *testing.T, s *redistest.Server, _ *redistest.Slow) { t.Helper(); s.Restart(t) },
		},
		{
			"paused",
			func(t *testing.T, s *redistest.Server, _ *redistest.Slow) { t.Helper(); s.Pause(t) },
			func(t *testing.T, s *redistest.Server, _ *redistest.Slow) { t.Helper(); s.Resume(t) },
		},
		{
			"slow",
			func(_ *testing.T, _ *redistest.Server, s *redistest.Slow) { s.Delay(300 * time.Millisecond) },
			func(_ *testing.T, _ *redistest.Server, s *redistest.Slow) { s.Delay(0) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := redistest.Start(t)
			slow := redistest.NewSlow(t, server.Address)
			both := replicas(t, slow.Address, slowUpstream(t, 0).URL, admission.String())
			w := drive(t, both, "local", "allow", "deny", "unlimited")
			up := func(want float64) func() bool {
				return func() bool {
					return both[0].Metric(t, "geoproxy_redis_up") == want && both[1].Metric(t, "geoproxy_redis_up") == want
				}
			}
			time.Sleep(2 * time.Second) // until the burst is used up

			gone := time.Now()
			c.away(t, server, slow)
			both[0].Eventually(t, "taking Redis for down", up(0))
			down := time.Now().Add(admission) // those whom Redis let wait have gone by then
			time.Sleep(4 * time.Second)
			returned := time.Now()
			c.back(t, server, slow)
			both[0].Eventually(t, "taking Redis for up", up(1))
			shared := time.Now()
			if took := shared.Sub(returned); took > 5*time.Second {
				t.Errorf("limits were shared %v after Redis was back, want within 5 s", took)
			}
			time.Sleep(3 * time.Second)
			w.end()

			// While it was down each policy did as it says.
			calls := w.count("deny", down, returned, func(served) bool { return true })
			if refused := w.count("deny", down, returned, func(s served) bool {
				return s.status == http.StatusServiceUnavailable && s.reason == "dependency"
			}); refused != calls || calls < 50 {
				t.Errorf("deny: %d of %d refused with dependency", refused, calls)
			}
			if calls, through := w.count("allow", down, returned, func(served) bool { return true }), w.count("allow", down, returned, ok); through != calls || calls < 50 {
				t.Errorf("allow: %d of %d let through", through, calls)
			}
			// Ten a second of both replicas together, and no burst again: at
			// no time of the whole run more than burst and rate give.
			seconds := returned.Sub(down).Seconds()
			if through := w.count("local", down, returned, ok); float64(through) < 7*seconds || float64(through) > 10*seconds+4 {
				t.Errorf("local: %d let through in %.1f s, want about ten a second", through, seconds)
			}
			window := shared.Add(time.Second).Sub(gone.Add(-time.Second))
			if through := w.count("local", gone.Add(-time.Second), shared.Add(time.Second), ok); float64(through) > 10*window.Seconds()+6 {
				t.Errorf("local: %d let through in the %v around the outage, a fresh burst", through, window)
			}
			t.Logf("down after %v, shared again %v after it was back", down.Add(-admission).Sub(gone), shared.Sub(returned))
			// Nobody waited for Redis beyond what they would wait for a token.
			// What a busy machine does to everybody is not Redis's doing; who
			// waited for a Redis that is away would wait for seconds.
			settled := shared.Add(500 * time.Millisecond)
			stalled := w.longest("unlimited", gone, settled)
			for _, route := range []string{"local", "allow", "deny"} {
				if took := w.longest(route, gone, settled); took > admission+stalled+200*time.Millisecond {
					t.Errorf("%s: a request took %v of its %v; without rates the longest took %v", route, took, admission, stalled)
				}
			}
		})
	}
}

// A Redis that comes and goes gives nobody a burst each time.
func TestNoFreshBurstOnAFlap(t *testing.T) {
	server := redistest.Start(t)
	both := replicas(t, server.Address, slowUpstream(t, 0).URL, "300ms")
	w := drive(t, both, "local")
	time.Sleep(2 * time.Second)
	began := time.Now()
	for range 4 {
		server.Stop(t)
		server.Restart(t)
		time.Sleep(2500 * time.Millisecond)
	}
	for _, p := range both {
		p.Eventually(t, "taking Redis for up", func() bool { return p.Metric(t, "geoproxy_redis_up") == 1 })
	}
	time.Sleep(time.Second)
	ended := time.Now()
	w.end()
	through, seconds := w.count("local", began, ended, ok), ended.Sub(began).Seconds()
	if float64(through) > 10*seconds+6 || float64(through) < 6*seconds {
		t.Errorf("%d let through in %.1f s of a Redis that came and went, want about ten a second", through, seconds)
	}
	t.Logf("%d in %.1f s; breaker openings %v and %v", through, seconds,
		both[0].Metric(t, "geoproxy_redis_breaker_openings_total"), both[1].Metric(t, "geoproxy_redis_breaker_openings_total"))
}

// A process whose Redis is down starts, is ready, and serves.
func TestStartsWithoutItsRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Stop(t)
	p := binary.Start(t, binary.Path(t), fmt.Sprintf(sharedTenASecond, server.Address, slowUpstream(t, 0).URL, "1s"))
	p.Eventually(t, "taking Redis for down", func() bool { return p.Metric(t, "geoproxy_redis_up") == 0 })
	c := client(t)
	if got := call(c, p.URL+"/local"+items); got.status != http.StatusOK {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	if got := call(c, p.URL+"/deny"+items); got.status != http.StatusServiceUnavailable || got.header.Get("Geoproxy-Reason") != "dependency" {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	server.Restart(t)
	p.Eventually(t, "taking Redis for up", func() bool { return p.Metric(t, "geoproxy_redis_up") == 1 })
	if got := call(c, p.URL+"/deny"+items); got.status != http.StatusOK {
		t.Errorf("status %d: %s", got.status, got.body)
	}
}
