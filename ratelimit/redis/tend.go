package redis

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/geoproxy/geoproxy/ratelimit"
)

const (
	// replicaSet has the name of each living replica by when it was last heard of.
	replicaSet = "geoproxy:replicas"
	// beatEvery is how often a replica is heard of; Redis is probed as often
	// while it is down.
	beatEvery = time.Second
	// beatsMissed is how long a replica that is not heard of counts as living.
	beatsMissed = 3 * time.Second
	// reachWithin bounds finding out whether Redis can be reached at all.
	reachWithin = 900 * time.Millisecond
	// tellWithin bounds telling Redis of all buckets after an outage.
	tellWithin = 3 * time.Second
)

// tend beats once a second. It closes the breaker when Redis answers again,
// and tells Redis what was spent without it.
func (b *Buckets) tend(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var t tending
	for {
		b.beat(ctx, &t)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tending is what one beat remembers of those before.
type tending struct {
	beaten time.Time // the last that succeeded
	up     time.Time // since when Redis has been up
}

func (b *Buckets) beat(ctx context.Context, t *tending) {
	count, known, err := b.askBeat(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		b.failed(err)
		return
	}
	now := time.Now()
	if !known && now.Sub(t.beaten) < beatsMissed {
		b.trip(errForgotten)
	}
	t.beaten = now
	open := b.breaker.isOpen()
	if open || t.up.IsZero() {
		t.up = now
		b.warm(ctx)
	}
	// The others of a Redis that came back have not all beaten yet.
	if now.Sub(t.up) < beatsMissed {
		count = max(count, b.replicas.Load())
	}
	b.replicas.Store(count)
	b.metrics.replicas.Set(float64(count))
	if !open {
		b.succeeded()
		if b.unsaid.Swap(false) && !b.tell(ctx, false) {
			b.unsaid.Store(true)
		}
		return
	}
	b.unsaid.Store(true) // what is spent from here on is told at the next beat
	if b.tell(ctx, true) {
		b.mend()
	}
}

var errForgotten = errors.New("the server has lost its memory")

// askBeat beats. Reaching Redis may take its time, answering may not: a Redis
// that is slow is down.
func (b *Buckets) askBeat(ctx context.Context) (count int64, known bool, err error) {
	if b.breaker.isOpen() {
		reaching, cancel := context.WithTimeout(ctx, reachWithin)
		err = b.client.Ping(reaching).Err()
		cancel()
	}
	began := time.Now()
	var answer []int64
	if err == nil {
		answering, cancel := context.WithTimeout(ctx, b.patience(beatEvery))
		answer, err = beatScript.Run(answering, b.client, []string{replicaSet}, b.replica, beatsMissed.Seconds()).Int64Slice()
		cancel()
	}
	switch {
	case err == nil && len(answer) == 2:
		b.metrics.called(callBeat, outcomeOK, 1)
		b.metrics.seconds.WithLabelValues(callBeat).Observe(time.Since(began).Seconds())
		return answer[0], answer[1] == 1, nil
	case isTimeout(err):
		b.metrics.called(callBeat, outcomeTimeout, 1)
	default:
		b.metrics.called(callBeat, outcomeError, 1)
	}
	return 0, false, err
}

// warm has a server that just came up know redis_rate's script, so that a
// request's first draw is one call like any other. It asks for nothing. Should
// it fail, that draw is two calls.
func (b *Buckets) warm(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	_, _ = b.limiter.AllowN(ctx, keyPrefix+"warm}", redis_rate.PerSecond(1), 0)
}

// tell tells Redis what the buckets lack: after an outage what Redis itself
// last knew, which it may have lost, and always this replica's part of what was
// spent since. It reports whether all was told.
func (b *Buckets) tell(ctx context.Context, outage bool) bool {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	debts := b.mirror.Debts()
	if !outage {
		n := 0
		for _, d := range debts {
			if d.Told = 0; d.Spent > 0 {
				debts[n] = d
				n++
			}
		}
		debts = debts[:n]
	}
	for len(debts) > 0 {
		n := min(len(debts), batch)
		if err := b.tellSome(ctx, debts[:n]); err != nil {
			b.metrics.called(callTell, outcomeError, n)
			return false
		}
		b.metrics.called(callTell, outcomeOK, n)
		debts = debts[n:]
	}
	return true
}

func (b *Buckets) tellSome(ctx context.Context, debts []ratelimit.Debt) error {
	shares := float64(b.shares())
	answers, err := b.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, d := range debts {
			key := storeKey(b.key(d.Key))
			tellScript.Eval(ctx, p, []string{key, key + ":told"}, d.Told.Seconds(), d.Spent.Seconds()/shares)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, answer := range answers {
		text, err := answer.(*redis.Cmd).Text()
		if err != nil {
			return err
		}
		reset, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		d := &debts[i]
		b.mirror.Settle(&ratelimit.Draw{Key: d.Key, Limit: d.Limit}, duration(max(0, reset)), d.Spent)
	}
	return nil
}
