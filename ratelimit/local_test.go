package ratelimit_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/ratelimit/buckettest"
)

func TestLocal(t *testing.T) {
	for _, max := range []int{100, 100_000} {
		t.Run(fmt.Sprint("max ", max), func(t *testing.T) {
			buckettest.Run(t, func(*testing.T) ratelimit.Buckets { return ratelimit.NewLocal(max) })
		})
	}
}

var tenASecond = ratelimit.Limit{Tokens: 10_000, Every: time.Second, Burst: 10_000}

func one(subject string, limit ratelimit.Limit) []ratelimit.Draw {
	return []ratelimit.Draw{{Key: ratelimit.Key{Policy: "r/p", Subject: subject}, Limit: limit, Cost: 1000}}
}

// 100 callers at 10/s with a burst of 10: ten at once, then one each 100 ms.
func TestCallersAreServedInTheOrderInWhichTheyAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		buckets := ratelimit.NewLocal(100)
		start := time.Now()
		var mu sync.Mutex
		var served []int
		var wg sync.WaitGroup
		for i := range 100 {
			g, err := buckets.Reserve(t.Context(), one("a", tenASecond), time.Minute)
			if err != nil || !g.OK {
				t.Fatalf("caller %d: %+v, %v", i, g, err)
			}
			wg.Go(func() {
				time.Sleep(g.Wait + time.Duration(i)) // a nanosecond apart, to order those of one instant
				mu.Lock()
				defer mu.Unlock()
				served = append(served, i)
			})
		}
		wg.Wait()
		if took := time.Since(start) - 99; took != 9*time.Second {
			t.Errorf("took %v, want 9s", took)
		}
		for i, caller := range served {
			if i != caller {
				t.Fatalf("caller %d was served as number %d", caller, i)
			}
		}
	})
}

// With 3 s to wait exactly 10 + 30 are due in time. The others are told at once
// and cost those behind them nothing.
func TestWhoCannotBeDueInTimeIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		buckets := ratelimit.NewLocal(100)
		start := time.Now()
		admitted := 0
		for range 100 {
			g, _ := buckets.Reserve(t.Context(), one("a", tenASecond), 3*time.Second)
			if g.OK {
				admitted++
				if g.Wait > 3*time.Second {
					t.Errorf("due in %v", g.Wait)
				}
			} else if g.Wait != 3100*time.Millisecond {
				t.Errorf("refused with %v, want 3.1s", g.Wait)
			}
		}
		if admitted != 40 || time.Since(start) != 0 {
			t.Errorf("%d admitted after %v, want 40 at once", admitted, time.Since(start))
		}
		time.Sleep(time.Second)
		for i := range 11 {
			if g, _ := buckets.Reserve(t.Context(), one("a", tenASecond), 3*time.Second); g.OK != (i < 10) {
				t.Errorf("call %d a second later: %+v", i, g)
			}
		}
	})
}

func TestRefilledBucketsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		buckets := ratelimit.NewLocal(50)
		reserve := func(subject string) ratelimit.Grant {
			g, _ := buckets.Reserve(t.Context(), one(subject, tenASecond), 0)
			return g
		}
		for i := range 50 {
			reserve(strconv.Itoa(i))
		}
		// No room: these share one bucket.
		for i := range 11 {
			if g := reserve("late" + strconv.Itoa(i)); g.OK != (i < 10) {
				t.Errorf("late caller %d: %+v", i, g)
			}
		}
		if got := buckets.Left(ratelimit.Key{Policy: "r/p", Subject: "late again"}, tenASecond); got != 0 {
			t.Errorf("a key without room has %d left, want the overflow bucket's 0", got)
		}
		// Those with a bucket keep it.
		if g := reserve("7"); !g.OK || g.Left != 8000 {
			t.Errorf("a known key: %+v", g)
		}
		if buckets.Len() != 50 {
			t.Errorf("%d buckets", buckets.Len())
		}
		time.Sleep(150 * time.Millisecond) // all but 7's have refilled
		for i := range 49 {
			if g := reserve("new" + strconv.Itoa(i)); !g.OK || g.Left != 9000 {
				t.Errorf("new key %d: %+v, want a bucket of its own", i, g)
			}
		}
		if g := reserve("7"); !g.OK || g.Left != 8500 {
			t.Errorf("7 was forgotten: %+v", g)
		}
	})
}

func TestALargeTableStaysBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		buckets := ratelimit.NewLocal(1000)
		for i := range 20_000 {
			_, _ = buckets.Reserve(t.Context(), one(strconv.Itoa(i), tenASecond), 0)
			if n := buckets.Len(); n > 1000 {
				t.Fatalf("%d buckets after %d keys", n, i+1)
			}
			time.Sleep(time.Millisecond)
		}
		// 100 ms of keys are not refilled; the rest has mostly been dropped.
		if n := buckets.Len(); n > 300 {
			t.Errorf("%d buckets kept, about 100 live", n)
		}
	})
}

// Whoever invents keys draws from its address as well, and gets no more.
func TestInventedKeysGainNothing(t *testing.T) {
	buckets := ratelimit.NewLocal(100_000)
	slow := ratelimit.Limit{Tokens: 1000, Every: time.Hour, Burst: 10_000}
	admitted := 0
	for i := range 10_000 {
		g, _ := buckets.Reserve(t.Context(), append(one("key"+strconv.Itoa(i), slow), one("address", slow)...), time.Second)
		if g.OK {
			admitted++
		}
	}
	if admitted != 10 || buckets.Len() != 11 {
		t.Errorf("%d admitted with %d buckets, want 10 with 11", admitted, buckets.Len())
	}
}

func BenchmarkReserve(b *testing.B) {
	// So fast that nobody is refused, as most requests are not.
	limit := ratelimit.Limit{Tokens: 1e12, Every: time.Second, Burst: 1e12}
	keys := make([][]ratelimit.Draw, 10_000)
	for i := range keys {
		keys[i] = one(fmt.Sprintf("%032x", i), limit)
	}
	ctx := b.Context()
	b.Run("one-key", func(b *testing.B) {
		buckets := ratelimit.NewLocal(100_000)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = buckets.Reserve(ctx, keys[0], time.Second)
		}
	})
	b.Run("10k-keys", func(b *testing.B) {
		buckets := ratelimit.NewLocal(100_000)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			_, _ = buckets.Reserve(ctx, keys[i%len(keys)], time.Second)
		}
	})
	b.Run("two-draws", func(b *testing.B) {
		buckets := ratelimit.NewLocal(100_000)
		two := append(append([]ratelimit.Draw(nil), keys[0]...), keys[1]...)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = buckets.Reserve(ctx, two, time.Second)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		buckets := ratelimit.NewLocal(100_000)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i += 7 {
				_, _ = buckets.Reserve(ctx, keys[i%len(keys)], time.Second)
			}
		})
	})
}
