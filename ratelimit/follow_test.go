package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/geoproxy/geoproxy/ratelimit"
)

// shares draws one by one from one of n shares until it is refused.
func shares(l *ratelimit.Local, n int) int {
	for got := 0; ; got++ {
		if g := l.ReserveShare(one("a", tenASecond), n, 0); !g.OK {
			return got
		}
	}
}

func TestAShareGoesOnFromTheStoresWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(100)
		draw := &one("a", tenASecond)[0]
		l.Follow(draw, 600*time.Millisecond) // 6 of 10 are missing
		if got := shares(l, 2); got != 2 {
			t.Errorf("half of the 4 that were left gave %d, want 2", got)
		}
		time.Sleep(time.Second)
		if got := shares(l, 2); got != 5 {
			t.Errorf("half of what refilled in a second gave %d, want 5", got)
		}
		if debts := l.Debts(); len(debts) != 1 || debts[0].Told != 0 || debts[0].Spent != time.Second {
			t.Errorf("%+v, want a second spent and nothing told", debts)
		}
	})
}

func TestFollowing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(100)
		draws := one("a", tenASecond)
		check := func(what string, told, spent time.Duration) {
			t.Helper()
			debts := l.Debts()
			if len(debts) != 1 || debts[0].Told != told || debts[0].Spent != spent || debts[0].Key != draws[0].Key || debts[0].Limit != tenASecond {
				t.Errorf("%s: %+v, want %v told and %v spent", what, debts, told, spent)
			}
		}
		l.Follow(&draws[0], 0)
		if l.Len() != 0 {
			t.Error("a full bucket is kept")
		}
		const ms = time.Millisecond
		l.Follow(&draws[0], 300*ms)
		check("told", 300*ms, 0)
		l.Follow(&draws[0], 200*ms) // an answer that was overtaken
		check("told less", 300*ms, 0)
		l.ReserveShare(draws, 2, 0) // one token of half a bucket is two of a whole one
		check("spent", 300*ms, 200*ms)
		l.Follow(&draws[0], 400*ms)
		check("told more", 400*ms, 200*ms)
		l.Unfollow(draws)
		check("given back to the store", 300*ms, 200*ms)
		l.RefundShare(draws, 2)
		check("given back to the share", 300*ms, 0)
		l.ReserveShare(draws, 2, 0)
		l.Settle(&draws[0], 400*ms, 200*ms)
		check("settled", 400*ms, 0)
		if limit, known := l.LimitOf(draws[0].Key); !known || limit != tenASecond {
			t.Error("limit", limit, known)
		}
		time.Sleep(400 * ms)
		if debts := l.Debts(); len(debts) != 0 {
			t.Errorf("%+v when all has refilled", debts)
		}
	})
}

// A cost that fits the whole bucket but no share waits for its share to refill
// more than once: the rate of all shares together is the whole's.
func TestACostAboveAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(100)
		draws := one("a", tenASecond)
		draws[0].Cost = 8000
		if g := l.ReserveShare(draws, 2, 100*time.Millisecond); g.OK || g.Never || g.Wait != 600*time.Millisecond {
			t.Errorf("got %+v, want refused, due in 600ms", g)
		}
		if g := l.ReserveShare(draws, 2, time.Second); !g.OK || g.Wait != 600*time.Millisecond {
			t.Errorf("got %+v, want due in 600ms", g)
		}
		draws[0].Cost = 10_001
		if g := l.ReserveShare(draws, 2, time.Hour); g.OK || !g.Never {
			t.Errorf("got %+v, want never", g)
		}
	})
}

// A changed limit keeps the share that is used, of what was told and spent.
func TestFollowingAChangedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewLocal(100)
		draws := one("a", tenASecond)
		l.Follow(&draws[0], 300*time.Millisecond)
		l.ReserveShare(draws, 2, 0)
		wider := tenASecond
		wider.Burst *= 3 // takes three times as long to fill
		draws[0].Limit = wider
		l.Follow(&draws[0], 0)
		if d := l.Debts()[0]; d.Limit != wider || d.Told != 900*time.Millisecond || d.Spent != 600*time.Millisecond {
			t.Errorf("got %+v", d)
		}
	})
}

func TestParseOutage(t *testing.T) {
	for name, want := range map[string]ratelimit.Outage{"": ratelimit.OutageLocal, "local": ratelimit.OutageLocal, "allow": ratelimit.OutageAllow, "deny": ratelimit.OutageDeny} {
		if got, err := ratelimit.ParseOutage(name); err != nil || got != want || name != "" && got.String() != name {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if _, err := ratelimit.ParseOutage("shrug"); err == nil {
		t.Error("shrug is no answer to an outage")
	}
}
