package redis_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/ratelimit/buckettest"
	"github.com/geoproxy/geoproxy/ratelimit/redis"
	"github.com/geoproxy/geoproxy/test/redistest"
)

// open makes buckets as geoproxy does.
func open(tb testing.TB, url string) *redis.Buckets {
	tb.Helper()
	return openFor(tb, url, redis.New)
}

var newPatient = redis.NewPatient

func config(tb testing.TB, url string) redis.Config {
	tb.Helper()
	return redis.Config{
		URL: url, Secret: []byte("a secret of some length"), Max: 100_000,
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(tb.Output(), nil)),
	}
}

func openFor(tb testing.TB, url string, start func(redis.Config) (*redis.Buckets, error)) *redis.Buckets {
	tb.Helper()
	b, err := start(config(tb, url))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// settled are buckets whose refunds, those of refused draws too, have been made
// when a call returns, on a machine that may be busy.
type settled struct {
	*redis.Buckets
	tb testing.TB
}

func patient(tb testing.TB, url string) settled {
	tb.Helper()
	return settled{openFor(tb, url, newPatient), tb}
}

func (s settled) Reserve(ctx context.Context, draws []ratelimit.Draw, wait time.Duration) (ratelimit.Grant, error) {
	g, err := s.Buckets.Reserve(ctx, draws, wait)
	eventually(s.tb, "settled", s.Settled)
	if !s.Up() {
		s.tb.Error("the breaker is open: this was not decided by Redis")
	}
	return g, err
}

func (s settled) Refund(draws []ratelimit.Draw) {
	s.Buckets.Refund(draws)
	eventually(s.tb, "settled", s.Settled)
}

func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("not %s after 20 s", what)
		}
	}
}

// client talks to a server as the tests do, not as the buckets.
func client(tb testing.TB, server *redistest.Server) *goredis.Client {
	tb.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: server.Address})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRedis(t *testing.T) {
	server := redistest.Start(t)
	buckettest.Run(t, func(t *testing.T) ratelimit.Buckets {
		t.Helper()
		if err := client(t, server).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return patient(t, server.URL())
	})
}

func key(subject string) ratelimit.Key { return ratelimit.Key{Policy: "route/rate", Subject: subject} }

func one(subject string, limit ratelimit.Limit, cost ratelimit.Milli) []ratelimit.Draw {
	return []ratelimit.Draw{{Key: key(subject), Limit: limit, Cost: cost}}
}

// Random draws and refunds get the same answers of Redis and of the arithmetic
// in this process. The limits refill so slowly that it does not matter how long
// a step takes, and nobody waits for about as long as anything takes.
func TestRedisDecidesAsLocal(t *testing.T) {
	server := redistest.Start(t)
	shared := patient(t, server.URL())
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		local := ratelimit.NewLocal(1000)
		limits := []ratelimit.Limit{
			{Tokens: 1000, Every: time.Hour, Burst: 10_000},
			{Tokens: ratelimit.Milli(rapid.IntRange(1, 5000).Draw(rt, "tokens")), Every: time.Hour, Burst: ratelimit.Milli(rapid.IntRange(1, 50_000).Draw(rt, "burst"))},
		}
		type made struct{ draws []ratelimit.Draw }
		var out []made
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			if len(out) > 0 && rapid.IntRange(0, 3).Draw(rt, "refund") == 0 {
				last := out[len(out)-1]
				out = out[:len(out)-1]
				shared.Refund(last.draws)
				local.Refund(last.draws)
				continue
			}
			var draws []ratelimit.Draw
			for range rapid.IntRange(1, 3).Draw(rt, "draws") {
				which := rapid.IntRange(0, 3).Draw(rt, "bucket")
				limit := limits[which%2]
				draws = append(draws, ratelimit.Draw{
					Key:   key(fmt.Sprint(run, "-", which)),
					Limit: limit, Cost: ratelimit.Milli(rapid.IntRange(0, int(limit.Burst)+1).Draw(rt, "cost")),
				})
			}
			wait := time.Duration(rapid.IntRange(1, 50).Draw(rt, "wait")) * 37 * time.Minute
			want, _ := local.Reserve(t.Context(), draws, wait)
			got, err := shared.Reserve(t.Context(), draws, wait)
			if err != nil {
				rt.Fatal(err)
			}
			const blur = 30 * time.Second
			if near(want.Wait, wait, blur) {
				rt.Skip("due about when it stops waiting")
			}
			if got.OK != want.OK || got.Never != want.Never || !near(got.Wait, want.Wait, blur) {
				rt.Fatalf("draws %+v waiting %v: Redis says %+v, local %+v", draws, wait, got, want)
			}
			if got.Draw == want.Draw && !got.Never && (!near(got.Reset, want.Reset, blur) || got.Left-want.Left > 50 || want.Left-got.Left > 50) {
				rt.Fatalf("draws %+v: Redis says %+v, local %+v", draws, got, want)
			}
			if got.OK {
				out = append(out, made{draws})
			}
		}
	})
}

// zNow is a member of a sorted set, as old as the server's clock says.
func zNow(tb testing.TB, c *goredis.Client, name string) goredis.Z {
	tb.Helper()
	now, err := c.Time(tb.Context()).Result()
	if err != nil {
		tb.Fatal(err)
	}
	return goredis.Z{Score: float64(now.UnixMicro())/1e6 - 1483228800, Member: name}
}

func near(a, b, by time.Duration) bool { return a-b <= by && b-a <= by }
