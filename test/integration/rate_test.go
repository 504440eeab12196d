package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

const tenASecond = `
access_log: true
gates: { gis: { seats: 64 } }
upstreams: { features: { url: %s, gate: gis } }
routes:
- name: features
  upstream: features
  classes: { read: { admission: %s } }
  rates: [{ name: licence, per: route, tokens: 10, every: 1s, burst: 10 }]
`

// inGroups sends calls ten at a time, a while apart, each with a number. sent is
// when the last was on its way.
func inGroups(c *http.Client, url string, calls int) (answers []answer, sent, total time.Duration) {
	const size, apart = 10, 150 * time.Millisecond
	answers = make([]answer, calls)
	began := time.Now()
	var all sync.WaitGroup
	for i := range answers {
		if i > 0 && i%size == 0 {
			time.Sleep(apart)
		}
		all.Go(func() { answers[i] = call(c, url+strconv.Itoa(i)) })
	}
	sent = time.Since(began)
	all.Wait()
	return answers, sent, time.Since(began)
}

// arrivals tells from the access log when each numbered call reached geoproxy.
func arrivals(t *testing.T, log string) map[string]time.Time {
	t.Helper()
	arrived := map[string]time.Time{}
	for line := range strings.Lines(log) {
		var entry struct {
			Time  time.Time
			Msg   string
			URL   string
			Total time.Duration
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%v in the log line %s", err, line)
		}
		if _, number, found := strings.Cut(entry.URL, "&n="); found && entry.Msg == "request" {
			arrived[number] = entry.Time.Add(-entry.Total)
		}
	}
	return arrived
}

func TestWaitersAreServedInTheOrderTheyCame(t *testing.T) {
	up := slowUpstream(t, 0)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(tenASecond, up.URL, "20s"))

	answers, _, total := inGroups(client(t), proxy.URL+"/collections/roads/items?limit=10&n=", 100)
	for i, got := range answers {
		if got.err != nil || got.status != http.StatusOK {
			t.Fatalf("call %d: status %d, error %v: %s", i, got.status, got.err, got.body)
		}
	}
	// Ten at once, ninety at ten a second.
	if total < 9*time.Second || total > 9500*time.Millisecond {
		t.Errorf("100 calls took %v, want 9.0 to 9.5 s", total)
	}
	proxy.Stop(t) // so that the log has every call
	arrived := arrivals(t, proxy.Log())
	if len(arrived) != 100 || len(up.order) != 100 {
		t.Fatalf("the log tells of %d calls, the upstream of %d", len(arrived), len(up.order))
	}
	// When a call came is known to within the scheduling of a busy machine;
	// groups are further apart than that.
	const blur = 50 * time.Millisecond
	latest, of := time.Time{}, ""
	for _, number := range up.order {
		if came := arrived[number]; came.Before(latest.Add(-blur)) {
			t.Errorf("call %s was served before call %s, which had come %v earlier", of, number, latest.Sub(came))
		} else if came.After(latest) {
			latest, of = came, number
		}
	}
}

func TestWhoCannotBeDueInTimeIsRefusedAtOnce(t *testing.T) {
	const burst, rate, admission = 10, 10, 3 * time.Second
	up := slowUpstream(t, 0)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(tenASecond, up.URL, admission))

	answers, sent, total := inGroups(client(t), proxy.URL+"/collections/roads/items?limit=10&n=", 100)
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
			// Behind three seconds of others.
			if wait, err := strconv.Atoi(got.header.Get("Retry-After")); err != nil || wait < 3 || wait > 4 {
				t.Errorf("call %d: Retry-After %q, want 3 or 4", i, got.header.Get("Retry-After"))
			}
		default:
			t.Errorf("call %d: status %d: %s", i, got.status, got.body)
		}
	}
	// The burst, what the deadline's three seconds refill, and what refills
	// while they come.
	least := burst + int(rate*admission.Seconds())
	if most := least + int(rate*(sent.Seconds()+0.5)); served < least || served > most {
		t.Errorf("%d of 100 were served, want %d to %d", served, least, most)
	}
	if up.served.Load() != int64(served) {
		t.Errorf("the upstream saw %d, %d were served", up.served.Load(), served)
	}
	if total > sent+admission+time.Second {
		t.Errorf("it took %v in all, %v after the last came", total, total-sent)
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
