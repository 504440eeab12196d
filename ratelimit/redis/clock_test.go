package redis_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/test/redistest"
)

// A store whose clock the test sets: what counts is its time, never ours.
func TestTimeIsTheStores(t *testing.T) {
	store := miniredis.RunT(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set := func(to time.Time) {
		store.FastForward(max(0, to.Sub(now))) // what keys expire by
		now = to
		store.SetTime(now)
	}
	set(now)
	b := patient(t, "redis://"+store.Addr())
	limit := ratelimit.Limit{Tokens: 10_000, Every: time.Second, Burst: 10_000}
	reserve := func(wait time.Duration) ratelimit.Grant {
		t.Helper()
		g, err := b.Reserve(t.Context(), one("a", limit, 1000), wait)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	near := func(got, want time.Duration) bool { return near(got, want, 2*time.Microsecond) }

	// While its clock stands still, ten are due at once and thirty by the end
	// of three seconds, a tenth apart; the next would be due after that.
	for i := range 40 {
		if g, due := reserve(3*time.Second), max(0, i-9); !g.OK && i < 39 || !near(g.Wait, time.Duration(due)*100*time.Millisecond) {
			t.Fatalf("caller %d: %+v", i, g)
		}
	}
	for range 5 { // who is refused takes nothing
		if g := reserve(3 * time.Second); g.OK || !near(g.Wait, 3100*time.Millisecond) {
			// The last of the forty may have lost its place to the time that
			// asking took: it is refused then, and given back.
			if g.OK || !near(g.Wait, 3*time.Second) {
				t.Fatalf("got %+v, want refused", g)
			}
		}
	}
	set(now.Add(time.Second)) // ten more
	got := 0
	for reserve(3 * time.Second).OK {
		got++
	}
	if got < 9 || got > 11 {
		t.Errorf("%d a second later, want 10", got)
	}
	// Its clock goes back: nobody gains by it.
	set(now.Add(-time.Hour))
	if g := reserve(3 * time.Second); g.OK {
		t.Errorf("got %+v after the clock went back", g)
	}
	// A full bucket is no key.
	set(now.Add(3 * time.Hour))
	if keys := store.Keys(); len(keys) > 1 { // the set of replicas lives on
		t.Errorf("keys %q, want none of a bucket", keys)
	}
	if g := reserve(3 * time.Second); !g.OK || g.Left != 9000 {
		t.Errorf("got %+v of a bucket that has refilled", g)
	}
}

// What is given back a store does not forget, at the edges of full and of debt.
func TestRefundsAreExact(t *testing.T) {
	store := miniredis.RunT(t)
	store.SetTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	b := patient(t, "redis://"+store.Addr())
	limit := ratelimit.Limit{Tokens: 3000, Every: time.Second, Burst: 7000}
	reserve := func(cost ratelimit.Milli) ratelimit.Grant {
		t.Helper()
		g, err := b.Reserve(t.Context(), one("a", limit, cost), time.Hour)
		if err != nil || !g.OK {
			t.Fatal(g, err)
		}
		return g
	}
	reserve(3000)
	b.Refund(one("a", limit, 5000)) // more than is missing: full, and no more
	if g := reserve(7000); g.Left != 0 || g.Wait != 0 {
		t.Errorf("got %+v, want the whole burst", g)
	}
	if g := reserve(6000); !near(g.Wait, 2*time.Second, 2*time.Microsecond) { // in debt
		t.Errorf("got %+v, want a wait of 2 s", g)
	}
	b.Refund(one("a", limit, 6000))
	b.Refund(one("a", limit, 1))
	if g := reserve(1); g.Left != 0 || g.Wait != 0 {
		t.Errorf("got %+v, want the thousandth that was given back", g)
	}
}

func BenchmarkRedisReserve(b *testing.B) {
	store := redistest.Start(b).URL()
	// So fast that nobody is refused.
	limit := ratelimit.Limit{Tokens: 1e12, Every: time.Second, Burst: 1e12}
	for _, draws := range []int{1, 2} {
		b.Run([]string{"", "one-draw", "two-draws"}[draws], func(b *testing.B) {
			buckets := open(b, store)
			asked := one("a", limit, 1000)
			if draws == 2 {
				asked = append(asked, one("b", limit, 1000)...)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := buckets.Reserve(b.Context(), asked, time.Second); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		buckets := open(b, store)
		b.SetParallelism(8)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			asked := one("a", limit, 1000)
			for pb.Next() {
				if _, err := buckets.Reserve(b.Context(), asked, time.Second); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("down", func(b *testing.B) {
		buckets := open(b, "redis://127.0.0.1:1")
		asked := one("a", limit, 1000)
		for buckets.Up() {
			_, _ = buckets.Reserve(b.Context(), asked, time.Second)
		}
		b.ReportAllocs()
		for b.Loop() {
			_, _ = buckets.Reserve(b.Context(), asked, time.Second)
		}
	})
}
