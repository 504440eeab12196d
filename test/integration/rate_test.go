package integration_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

const tenASecond = `
gates: { gis: { seats: 64 } }
upstreams: { features: { url: %s, gate: gis } }
routes:
- name: features
  upstream: features
  classes: { read: { admission: %s } }
  rates: [{ name: licence, per: route, tokens: 10, every: 1s, burst: 10 }]
`

// inTurn sends calls so that each is on its way before the next. Arrival is
// known only to within the scheduling of two processes, hence the distance.
func inTurn(c *http.Client, url string, calls int) (answers []answer, total time.Duration) {
	const apart = 5 * time.Millisecond
	answers = make([]answer, calls)
	began := time.Now()
	tick := time.NewTicker(apart)
	defer tick.Stop()
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = call(c, url, "X-Number", strconv.Itoa(i)) })
		<-tick.C
	}
	all.Wait()
	return answers, time.Since(began)
}

func TestWaitersAreServedInTheOrderTheyCame(t *testing.T) {
	up := slowUpstream(t, 0)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(tenASecond, up.URL, "20s"))

	answers, total := inTurn(client(t), proxy.URL+"/collections/roads/items?limit=10", 100)
	for i, got := range answers {
		if got.err != nil || got.status != http.StatusOK {
			t.Fatalf("call %d: status %d, error %v: %s", i, got.status, got.err, got.body)
		}
	}
	// Ten at once, ninety at ten a second.
	if total < 9*time.Second || total > 9500*time.Millisecond {
		t.Errorf("100 calls took %v, want 9.0 to 9.5 s", total)
	}
	for place, number := range up.order {
		came, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		// The first ten do not wait at all, and neighbours may swap on their
		// way in, but nobody jumps the line.
		if place >= 10 && max(came-place, place-came) > 2 {
			t.Errorf("call %d was served as number %d", came, place)
		}
	}
}

func TestWhoCannotBeDueInTimeIsRefusedAtOnce(t *testing.T) {
	up := slowUpstream(t, 0)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(tenASecond, up.URL, "3s"))

	answers, total := inTurn(client(t), proxy.URL+"/collections/roads/items?limit=10", 100)
	served := 0
	for i, got := range answers {
		switch {
		case got.err != nil:
			t.Fatalf("call %d: %v", i, got.err)
		case got.status == http.StatusOK:
			served++
		case got.status == http.StatusTooManyRequests && got.header.Get("Geoproxy-Reason") == "rate":
			if got.took > time.Second {
				t.Errorf("call %d waited %v to be refused", i, got.took)
			}
			if wait, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || wait < 1 || wait > 3 {
				t.Errorf("call %d: Retry-After %q, want 1 to 3", i, got.header.Get("Retry-After"))
			}
		default:
			t.Errorf("call %d: status %d: %s", i, got.status, got.body)
		}
	}
	// The burst, what three seconds refill, and what refills while they come.
	if served < 40 || served > 46 {
		t.Errorf("%d of 100 were served, want 40 to 46", served)
	}
	if up.served.Load() != int64(served) {
		t.Errorf("the upstream saw %d, %d were served", up.served.Load(), served)
	}
	if total > 4500*time.Millisecond {
		t.Errorf("it took %v in all, want at most the admission deadline after the last came", total)
	}
}

// Whoever invents a key for each request gets what their address gets.
func TestInventedKeysGainNothing(t *testing.T) {
	const burst, rate = 50, 5
	config := `
upstreams: { features: { url: %s, gate: { seats: 64 } } }
routes:
- name: features
  upstream: features
  rates: [{ name: fair-use, per: tenant, tokens: 5, every: 1s, burst: 50 }]
`
	up := slowUpstream(t, 0)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(config, up.URL))
	c := client(t)

	began := time.Now()
	numbers := make(chan int)
	var callers sync.WaitGroup
	for range 100 {
		callers.Go(func() {
			for n := range numbers {
				got := call(c, proxy.URL+"/collections/roads/items?limit=10", "X-Api-Key", "invented-"+strconv.Itoa(n))
				if got.err != nil || (got.status != http.StatusOK && got.status != http.StatusTooManyRequests) {
					t.Errorf("key %d: status %d, error %v", n, got.status, got.err)
				}
			}
		})
	}
	for n := range 10_000 {
		numbers <- n
	}
	close(numbers)
	callers.Wait()

	fair := burst + rate*time.Since(began).Seconds()
	if got := up.served.Load(); float64(got) > fair || got < burst {
		t.Errorf("10,000 invented keys got %d requests through, want %d to %.0f", got, burst, fair)
	}
}
