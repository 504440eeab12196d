//go:build soak

package maps_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/bed"
	"github.com/geoproxy/geoproxy/test/binary"
)

const (
	crowd      = 200                    // dear requests at once
	patience   = 10 * time.Second       // of whoever sent one, and of the probes
	probeEvery = 250 * time.Millisecond // a cheap request
	least      = 30 * time.Second       // since the crowd came, that the server is watched
	watch      = 120 * time.Second      // the longest that the server is watched after the crowd has gone
	goal       = 250 * time.Millisecond // the 95th percentile of cheap requests, with geoproxy

	cheapMap = "/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS=parcels&STYLES=&CRS=EPSG:4326&BBOX=52.04,5.04,52.044,5.044&WIDTH=256&HEIGHT=256&FORMAT=image/png"
)

// What is measured for each load.
const (
	without      = "without geoproxy"
	with         = "with geoproxy"
	withReturns  = "with geoproxy, refused clients come back when told"
	withPatience = "with geoproxy, `map: { admission: 8s }`"
)

var loads = []struct{ name, uri string }{
	{"GetMap, 2048 px of 50,000 parcels", "/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS=parcels&STYLES=&CRS=EPSG:4326&BBOX=52.0,5.0,52.1,5.12&WIDTH=2048&HEIGHT=1707&FORMAT=image/png"},
	{"WFS GetFeature, 10 s in SQL", "/bed?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=sleepy"},
}

// The problem that geoproxy is for, before and after: a crowd of dear requests
// whose senders give up after ten seconds, at a MapServer with four workers,
// which works for those who have gone as well. The table and the plot are
// written to docs/, and to the README.
func TestSoakOverload(t *testing.T) {
	plain := binary.Plain(t)
	var runs []overload
	for _, load := range loads {
		for _, mode := range []string{without, with, withReturns, withPatience} {
			if load != loads[0] && mode != without && mode != with {
				continue // downloads wait for longer than these clients as it is
			}
			bed.Stop() // each run has servers without a past
			b := bed.Start(t)
			address := b.MapServer
			if mode != without {
				config := fmt.Sprintf("upstreams:\n  bed: { url: \"http://%s\", cancels: false }\nroutes:\n- upstream: bed\n  gate: { seats: %d, at_most: { map: 2 } }\n", b.MapServer, bed.Workers)
				if mode == withPatience {
					config += "  classes: { map: { admission: 8s } }\n"
				}
				address = binary.Start(t, plain, config).Address
			}
			run := measure(t, b, address, load.uri, mode == withReturns)
			run.load, run.mode = load.name, mode
			runs = append(runs, run)
			t.Log(run.row())
			if mode == without {
				continue
			}
			during := run.cheap(0, run.gone)
			if p95 := percentile(during, 0.95); p95 > goal {
				t.Errorf("%s, %s: the 95th percentile of cheap requests is %v, want at most %v", load.name, mode, p95, goal)
			}
			if run.failed(0, run.gone+watch) > 0 {
				t.Errorf("%s, %s: %d cheap requests failed", load.name, mode, run.failed(0, run.gone+watch))
			}
			if run.dead > patience+time.Second { // the longest of these requests
				t.Errorf("%s, %s: %v of work for nobody", load.name, mode, run.dead)
			}
		}
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	first, err := readme(string(text), runs)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"README.md": first, "docs/overload.md": page(runs), "docs/overload.svg": plot(runs)} {
		if err := os.WriteFile("../../"+name, []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// overload is what one run saw. Times are since the crowd came.
type overload struct {
	load, mode string
	alone      time.Duration   // of one dear request
	before     []probe         // cheap ones with nothing else there
	probes     []probe         // cheap ones since the crowd came
	served     int             // dear ones answered in time
	refused    int             // dear ones refused, and never served
	firstNo    []time.Duration // how long a refusal took
	gone       time.Duration   // when the last of the crowd had gone
	dead       time.Duration   // how long after that the server went on with what was theirs
	ended      bool            // that end was seen
}

type probe struct {
	at, took time.Duration
	ok       bool
}

func measure(t *testing.T, b *bed.Bed, address, dear string, comeBack bool) overload {
	t.Helper()
	var run overload
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(ctx context.Context, uri string) (status int, again time.Duration) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+uri, nil)
		if err != nil {
			t.Error(err)
			return 0, 0
		}
		answer, err := client.Do(request)
		if err != nil {
			return 0, 0
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			return 0, 0
		}
		if answer.StatusCode == http.StatusOK && strings.Contains(answer.Header.Get("Content-Type"), "se_xml") {
			return http.StatusInternalServerError, 0
		}
		again, _ = time.ParseDuration(answer.Header.Get("Retry-After") + "s")
		return answer.StatusCode, again
	}
	ctx := t.Context()
	began := time.Now()
	if status, _ := ask(ctx, dear); status != http.StatusOK {
		t.Fatalf("a dear request alone: status %d", status)
	}
	run.alone = time.Since(began)

	cheap := func(since time.Time) probe {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		began := time.Now()
		status, _ := ask(ctx, cheapMap)
		return probe{at: began.Sub(since), took: time.Since(began), ok: status == http.StatusOK}
	}
	for range 20 {
		run.before = append(run.before, cheap(time.Now()))
	}

	var mu sync.Mutex // guards run
	var asking atomic.Int32
	var probes, dearOnes sync.WaitGroup
	start := time.Now()
	for range crowd {
		dearOnes.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			no, yes := false, false
			for {
				began := time.Now()
				status, again := ask(ctx, dear)
				mu.Lock()
				if status == http.StatusOK {
					run.served++
					yes = true
				} else if status != 0 {
					no = true
					run.firstNo = append(run.firstNo, time.Since(began))
				}
				mu.Unlock()
				if status == http.StatusOK || status == 0 || !comeBack || again == 0 || time.Since(start)+again >= patience {
					break
				}
				select {
				case <-time.After(again):
				case <-ctx.Done():
				}
			}
			if no && !yes {
				mu.Lock()
				run.refused++
				mu.Unlock()
			}
		})
	}
	stopProbes := make(chan struct{})
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			select {
			case <-stopProbes:
				return
			case <-tick.C:
			}
			probes.Go(func() {
				asking.Add(1)
				defer asking.Add(-1)
				p := cheap(start)
				mu.Lock()
				run.probes = append(run.probes, p)
				mu.Unlock()
			})
		}
	}()
	dearOnes.Wait()
	run.gone = time.Since(start)

	// Who is at work now is at work for nobody, but for one worker a probe. A
	// probe takes milliseconds: more than two under way are waiting for others.
	quiet := 0
	for time.Since(start)-run.gone < watch && (!run.ended || time.Since(start) < least) {
		time.Sleep(50 * time.Millisecond)
		busy, err := b.Busy()
		if err != nil {
			t.Fatal(err)
		}
		if int32(busy) > asking.Load() || asking.Load() > 2 {
			run.dead = time.Since(start) - run.gone
			quiet = 0
		} else if quiet++; quiet >= 60 { // three seconds
			run.ended = true
		}
	}
	if !run.ended {
		run.dead = watch
	}
	close(stopProbes)
	<-probing
	probes.Wait()
	slices.SortFunc(run.probes, func(a, b probe) int { return int(a.at - b.at) })
	return run
}

// cheap gives how long the probes took that began in a span; those that failed
// as the whole patience.
func (o *overload) cheap(from, to time.Duration) []time.Duration {
	var took []time.Duration
	for _, p := range o.probes {
		if p.at >= from && p.at < to {
			if !p.ok {
				p.took = patience
			}
			took = append(took, p.took)
		}
	}
	return took
}

func (o *overload) failed(from, to time.Duration) int {
	n := 0
	for _, p := range o.probes {
		if p.at >= from && p.at < to && !p.ok {
			n++
		}
	}
	return n
}

// normal is when, since the crowd had gone, the last cheap request began that
// took longer than the goal.
func (o *overload) normal() time.Duration {
	last := time.Duration(0)
	for _, p := range o.probes {
		if p.at > o.gone && (!p.ok || p.took > goal) {
			last = p.at + probeEvery - o.gone
		}
	}
	return last
}

func percentile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[min(len(all)-1, int(share*float64(len(all))))]
}
