// Package buckettest is the suite that every implementation of
// [ratelimit.Buckets] passes. It runs on the real clock, because a store has
// its own: the limits in it refill so slowly that a minute changes no whole
// thousandth, or the test allows for what refilled.
package buckettest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/ratelimit"
)

// slow refills a thousandth every hour.
var slow = ratelimit.Limit{Tokens: 1, Every: time.Hour, Burst: 10_000}

// Run runs the suite. Each call of open gives buckets of which none is in use.
func Run(t *testing.T, open func(t *testing.T) ratelimit.Buckets) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(suite)
	}{
		{"an unknown key is a full bucket", suite.unknownKeyIsFull},
		{"the burst and no more", suite.burstAndNoMore},
		{"keys do not share", suite.keysDoNotShare},
		{"all draws or none", suite.allOrNone},
		{"the draw that decides is named", suite.decidingDraw},
		{"two draws of one bucket add up", suite.sameBucketTwice},
		{"a cost above the burst never fits", suite.neverFits},
		{"of two refusals the graver is told", suite.graverRefusal},
		{"a refund restores", suite.refundRestores},
		{"a refund never fills past the burst", suite.refundNeverOverfills},
		{"waiters are due in the order in which they asked", suite.waitersInOrder},
		{"who cannot be due in time is refused and debited nothing", suite.refusedDebitsNothing},
		{"a cost of a few thousandths", suite.smallCosts},
		{"a changed limit keeps the used share", suite.changedLimit},
		{"concurrent callers get the burst together", suite.concurrent},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(suite{t, open(t)}) })
	}
}

// suite is one test with its buckets.
type suite struct {
	*testing.T
	buckets ratelimit.Buckets
}

func key(subject string) ratelimit.Key { return ratelimit.Key{Policy: "route/rate", Subject: subject} }

func draw(subject string, limit ratelimit.Limit, cost ratelimit.Milli) []ratelimit.Draw {
	return []ratelimit.Draw{{Key: key(subject), Limit: limit, Cost: cost}}
}

func (s suite) reserve(wait time.Duration, draws []ratelimit.Draw) ratelimit.Grant {
	s.Helper()
	// An answer may take a quarter of wait; who does not want to wait still
	// wants an answer.
	g, err := s.buckets.Reserve(s.Context(), draws, wait)
	if err != nil {
		s.Fatalf("Reserve(%v): %v", draws, err)
	}
	return g
}

func (s suite) granted(g ratelimit.Grant, left ratelimit.Milli) {
	s.Helper()
	if !g.OK || g.Wait != 0 || g.Never || g.Left != left {
		s.Fatalf("got %+v, want granted at once with %d left", g, left)
	}
}

func (s suite) refused(g ratelimit.Grant) {
	s.Helper()
	if g.OK {
		s.Fatalf("got %+v, want refused", g)
	}
}

// soon is the wait of those who do not mean to: long enough that an answer over
// a network still counts, far too short for anything to refill.
const soon = time.Second

func (s suite) unknownKeyIsFull() {
	g := s.reserve(soon, draw("a", slow, 10_000))
	s.granted(g, 0)
	if want := 10_000 * time.Hour; g.Reset < want-time.Minute || g.Reset > want {
		s.Errorf("Reset is %v, want %v", g.Reset, want)
	}
}

func (s suite) burstAndNoMore() {
	for left := ratelimit.Milli(9000); left >= 0; left -= 1000 {
		s.granted(s.reserve(soon, draw("a", slow, 1000)), left)
	}
	g := s.reserve(soon, draw("a", slow, 1000))
	s.refused(g)
	if want := 1000 * time.Hour; g.Never || g.Left != 0 || g.Wait < want-time.Minute || g.Wait > want {
		s.Errorf("got %+v, want a wait of %v and nothing left", g, want)
	}
}

func (s suite) keysDoNotShare() {
	s.granted(s.reserve(soon, draw("a", slow, 10_000)), 0)
	s.granted(s.reserve(soon, draw("b", slow, 1000)), 9000)
	other := draw("a", slow, 1000)
	other[0].Key.Policy = "route/other"
	s.granted(s.reserve(soon, other), 9000)
}

func (s suite) allOrNone() {
	s.granted(s.reserve(soon, draw("empty", slow, 10_000)), 0)
	for _, order := range [][2]string{{"full", "empty"}, {"empty", "full"}} {
		g := s.reserve(soon, append(draw(order[0], slow, 1000), draw(order[1], slow, 1000)...))
		s.refused(g)
		if order[g.Draw] != "empty" {
			s.Errorf("draw %d of %v refused, want the empty one", g.Draw, order)
		}
	}
	s.granted(s.reserve(soon, draw("full", slow, 1000)), 9000)
}

func (s suite) decidingDraw() {
	s.granted(s.reserve(soon, draw("b", slow, 5000)), 5000)
	g := s.reserve(soon, append(draw("a", slow, 1000), draw("b", slow, 1000)...))
	s.granted(g, 4000)
	if g.Draw != 1 {
		s.Errorf("draw %d decided, want 1: it has the least left", g.Draw)
	}
	fast := ratelimit.Limit{Tokens: 1000, Every: time.Minute, Burst: 1000}
	s.granted(s.reserve(soon, draw("c", fast, 1000)), 0)
	g = s.reserve(time.Hour, append(draw("c", fast, 1000), draw("b", slow, 1000)...))
	if !g.OK || g.Draw != 0 || g.Wait <= 50*time.Second || g.Wait > time.Minute {
		s.Errorf("got %+v, want a wait of a minute for draw 0", g)
	}
}

func (s suite) sameBucketTwice() {
	g := s.reserve(soon, append(draw("a", slow, 6000), draw("a", slow, 5000)...))
	s.refused(g)
	s.granted(s.reserve(soon, append(draw("a", slow, 6000), draw("a", slow, 4000)...)), 0)
}

func (s suite) neverFits() {
	g := s.reserve(time.Hour, draw("a", slow, 10_001))
	s.refused(g)
	if !g.Never || g.Wait != 0 {
		s.Errorf("got %+v, want never, and no wait", g)
	}
	s.granted(s.reserve(soon, draw("a", slow, 10_000)), 0)
}

func (s suite) graverRefusal() {
	s.granted(s.reserve(soon, append(draw("a", slow, 10_000), draw("b", slow, 10_000)...)), 0)
	draws := append(draw("a", slow, 2000), draw("b", slow, 3000)...)
	g := s.reserve(soon, draws)
	s.refused(g)
	if want := 3000 * time.Hour; g.Draw != 1 || g.Wait < want-time.Minute || g.Wait > want {
		s.Errorf("got %+v, want %v for draw 1", g, want)
	}
	g = s.reserve(soon, append(draws, draw("c", slow, 10_001)...))
	s.refused(g)
	if !g.Never || g.Draw != 2 || g.Wait != 0 {
		s.Errorf("got %+v, want never for draw 2", g)
	}
}

func (s suite) refundRestores() {
	s.granted(s.reserve(soon, draw("a", slow, 3000)), 7000)
	taken := append(draw("a", slow, 2001), draw("b", slow, 5)...)
	s.granted(s.reserve(soon, taken), 4999)
	s.buckets.Refund(taken)
	s.granted(s.reserve(soon, draw("a", slow, 1)), 6999)
	s.granted(s.reserve(soon, draw("b", slow, 1)), 9999)
}

func (s suite) refundNeverOverfills() {
	s.granted(s.reserve(soon, draw("a", slow, 3000)), 7000)
	s.buckets.Refund(draw("a", slow, 5000))
	s.granted(s.reserve(soon, draw("a", slow, 10_000)), 0)
	s.buckets.Refund(draw("never drawn from", slow, 5000))
	s.granted(s.reserve(soon, draw("never drawn from", slow, 10_000)), 0)
}

func (s suite) waitersInOrder() {
	limit := ratelimit.Limit{Tokens: 1000, Every: time.Minute, Burst: 2000}
	start := time.Now()
	for i := range 20 {
		g := s.reserve(time.Hour, draw("a", limit, 1000))
		due := time.Duration(max(0, i-1)) * time.Minute
		early := due - g.Wait // by what has passed since the first call
		if !g.OK || early < 0 && due > 0 || early > time.Since(start)+time.Millisecond {
			s.Fatalf("caller %d: %+v, want due at %v", i, g, due)
		}
	}
}

func (s suite) refusedDebitsNothing() {
	limit := ratelimit.Limit{Tokens: 1000, Every: time.Minute, Burst: 1000}
	s.granted(s.reserve(soon, draw("a", limit, 1000)), 0)
	for range 5 {
		g := s.reserve(30*time.Second, draw("a", limit, 1000))
		s.refused(g)
		if g.Wait <= 50*time.Second || g.Wait > time.Minute {
			s.Fatalf("got %+v, want a minute: refusals take nothing", g)
		}
	}
}

func (s suite) smallCosts() {
	for i := range ratelimit.Milli(20) {
		s.granted(s.reserve(soon, draw("a", slow, 7)), 10_000-7*(i+1))
	}
}

func (s suite) changedLimit() {
	s.granted(s.reserve(soon, draw("a", slow, 4000)), 6000)
	wider := ratelimit.Limit{Tokens: 3, Every: time.Hour, Burst: 100_000}
	// 60 % of it are left. A conversion may lose what refills in an instant.
	g := s.reserve(soon, draw("a", wider, 1000))
	if !g.OK || g.Left < 58_999 || g.Left > 59_000 {
		s.Fatalf("got %+v, want 59000 left", g)
	}
	g = s.reserve(soon, draw("a", slow, 1))
	if !g.OK || g.Left < 5898 || g.Left > 5899 {
		s.Fatalf("got %+v, want 5899 left", g)
	}
}

func (s suite) concurrent() {
	const callers = 40
	var ok atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		// Pairs of draws in both orders: locking them as they come would end
		// in callers that wait for each other.
		draws := append(draw("x", slow, 500), draw("y", slow, 500)...)
		if i%2 == 1 {
			draws[0], draws[1] = draws[1], draws[0]
		}
		draws = append(draws, draw(fmt.Sprint("own", i), slow, 1)...)
		wg.Go(func() {
			g, err := s.buckets.Reserve(s.Context(), draws, soon)
			if err != nil {
				s.Errorf("Reserve: %v", err)
			}
			if g.OK {
				ok.Add(1)
			}
		})
	}
	wg.Wait()
	if ok.Load() != 20 {
		s.Errorf("%d of %d got 500 of 10000, want 20", ok.Load(), callers)
	}
}
