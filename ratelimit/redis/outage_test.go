package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/test/redistest"
)

// anHour refills so slowly that a test does not see it.
var anHour = ratelimit.Limit{Tokens: 1000, Every: time.Hour, Burst: 10_000}

// until draws one by one until it is refused and says how many it got.
func until(tb testing.TB, b ratelimit.Buckets, draws []ratelimit.Draw) int {
	tb.Helper()
	for n := 0; ; n++ {
		g, err := b.Reserve(tb.Context(), draws, time.Second)
		if err != nil {
			tb.Fatal(err)
		}
		if !g.OK {
			return n
		}
	}
}

func TestEachPolicyDecidesWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	b := open(t, server.URL())
	eventually(t, "up", func() bool { return until(t, b, one("a", anHour, 5000)) >= 0 && b.Up() })
	server.Pause(t)
	defer server.Resume(t)
	// The first three wait for their time, and no longer; nobody waits after that.
	for b.Up() {
		began := time.Now()
		_, _ = b.Reserve(t.Context(), one("b", anHour, 1), time.Second)
		if took := time.Since(began); took > 250*time.Millisecond {
			t.Errorf("a draw waited %v for a Redis that does not answer", took)
		}
	}
	began := time.Now()
	for range 1000 {
		_, _ = b.Reserve(t.Context(), one("b", anHour, 1), time.Second)
	}
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Errorf("1000 draws took %v while Redis was known to be down", took)
	}

	draws := one("a", anHour, 1000) // of which Redis said that nothing is left
	if g, err := b.Reserve(t.Context(), draws, time.Second); err != nil || g.OK {
		t.Errorf("local: %+v, %v, want refused: the bucket was empty", g, err)
	}
	draws[0].Outage = ratelimit.OutageAllow
	if g, err := b.Reserve(t.Context(), draws, time.Second); err != nil || !g.OK || g.Wait != 0 {
		t.Errorf("allow: %+v, %v", g, err)
	}
	draws[0].Outage = ratelimit.OutageDeny
	if g, err := b.Reserve(t.Context(), draws, time.Second); err == nil || g.OK {
		t.Errorf("deny: %+v, %v, want an error", g, err)
	}
	draws[0].Cost = 10_001
	if g, err := b.Reserve(t.Context(), draws, time.Second); err != nil || !g.Never {
		t.Errorf("a cost above the burst: %+v, %v, want never, whoever decides", g, err)
	}
}

// Two replicas go on with half of what was left each, and Redis, which comes
// back empty, knows of all of it.
func TestSharesAreTakenFromAndGivenBackToTheWhole(t *testing.T) {
	server := redistest.Start(t)
	one1, one2 := open(t, server.URL()), open(t, server.URL())
	eventually(t, "two replicas", func() bool { return one1.Replicas() == 2 && one2.Replicas() == 2 })
	draws := one("a", anHour, 1000)
	reserve := func(b ratelimit.Buckets, cost ratelimit.Milli) ratelimit.Grant {
		t.Helper()
		draws := one("a", anHour, cost)
		g, err := b.Reserve(t.Context(), draws, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	reserve(one1, 3000)
	reserve(one2, 1000) // both know that 6 of 10 are left, or 7

	server.Stop(t)
	eventually(t, "down", func() bool {
		_, _ = one1.Reserve(t.Context(), one("b", anHour, 1), time.Second)
		_, _ = one2.Reserve(t.Context(), one("b", anHour, 1), time.Second)
		return !one1.Up() && !one2.Up()
	})
	// Half of 7 is what the first knew of, half of 6 the second.
	if n := until(t, one1, draws); n != 3 {
		t.Errorf("the first replica got %d, want 3", n)
	}
	if g := reserve(one2, 1000); !g.OK {
		t.Errorf("the second replica got %+v", g)
	}
	server.Restart(t)
	eventually(t, "up", func() bool { return one1.Up() && one2.Up() })
	// 4 were drawn of Redis, 4 without it: 2 are left.
	if n := until(t, one1, draws); n != 2 {
		t.Errorf("%d were left after the outage, want 2", n)
	}
}

// A Redis that keeps running and loses what it knew is found by its replicas.
func TestLostMemoryIsToldAgain(t *testing.T) {
	server := redistest.Start(t)
	b := patient(t, server.URL())
	until(t, b, one("a", anHour, 5000))
	c := client(t, server)
	eventually(t, "known", func() bool { return c.ZCard(t.Context(), "geoproxy:replicas").Val() == 1 })
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "told", func() bool { return len(c.Keys(t.Context(), "rate:*").Val()) > 0 })
	eventually(t, "up", b.Up)
	if n := until(t, b, one("a", anHour, 1000)); n != 0 {
		t.Errorf("%d could be drawn after the memory was lost", n)
	}
}

// A restart between two requests, too short for three failures.
func TestAQuickRestartGivesNoBurst(t *testing.T) {
	server := redistest.Start(t)
	b := open(t, server.URL())
	eventually(t, "drawn from Redis", func() bool { return until(t, b, one("a", anHour, 5000)) == 0 && b.Up() })
	server.Stop(t)
	server.Restart(t)
	for range 20 {
		if g, err := b.Reserve(t.Context(), one("a", anHour, 1000), time.Second); err != nil || g.OK {
			t.Fatalf("%+v, %v: drawn from a bucket that was empty", g, err)
		}
	}
	eventually(t, "up", b.Up)
	if n := until(t, b, one("a", anHour, 1000)); n != 0 {
		t.Errorf("%d could be drawn after the restart", n)
	}
}

// A caller that leaves while Redis is asked gets its error and leaves nothing
// debited that is known to be.
func TestACallerThatLeaves(t *testing.T) {
	server := redistest.Start(t)
	slow := redistest.NewSlow(t, server.Address)
	b := openFor(t, "redis://"+slow.Address, newPatient)
	until(t, b, one("warm", anHour, 5000))
	slow.Delay(200 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // one draw is answered by then
	defer cancel()
	_, err := b.Reserve(ctx, append(one("a", anHour, 1000), one("b", anHour, 1000)...), time.Minute)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	if !b.Up() {
		t.Error("a caller that left counts as a failure of Redis")
	}
	slow.Delay(0)
	eventually(t, "settled", b.Settled)
	if g, err := b.Reserve(t.Context(), one("a", anHour, 10_000), time.Minute); err != nil || !g.OK {
		t.Errorf("%+v, %v: the first draw was not given back", g, err)
	}
}

func TestReplicasAreCounted(t *testing.T) {
	server := redistest.Start(t)
	a := open(t, server.URL())
	b, err := newPatient(config(t, server.URL()))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "two", func() bool { return a.Replicas() == 2 && b.Replicas() == 2 })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one", func() bool { return a.Replicas() == 1 })
	// One that dies without a word is counted for three seconds.
	c := client(t, server)
	c.ZAdd(t.Context(), "geoproxy:replicas", zNow(t, c, "dead"))
	eventually(t, "two with the dead one", func() bool { return a.Replicas() == 2 })
	eventually(t, "one without it", func() bool { return a.Replicas() == 1 })
}

func TestNothingInRedisNamesAnybody(t *testing.T) {
	server := redistest.Start(t)
	b := patient(t, server.URL())
	draws := append(one("a-secret-subject", anHour, 1000), ratelimit.Draw{Key: ratelimit.Key{Policy: "route/rate"}, Limit: anHour, Cost: 1})
	if _, err := b.Reserve(t.Context(), draws, time.Second); err != nil {
		t.Fatal(err)
	}
	c := client(t, server)
	keys := c.Keys(t.Context(), "*").Val()
	buckets := 0
	for _, key := range keys {
		if strings.Contains(key, "secret") {
			t.Errorf("key %q shows a subject", key)
		}
		if ttl := c.TTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("key %q does not expire", key)
		}
		if strings.HasPrefix(key, "rate:geoproxy:{route/rate}:") {
			buckets++
		}
	}
	if buckets != 2 {
		t.Errorf("keys %q, want two of the policy", keys)
	}
}
