package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/geoproxy/geoproxy/ratelimit"
)

// leastPatience is the least time in which it is worth asking Redis, and
// fairPatience the least after which having no answer is Redis's fault.
const (
	leastPatience = time.Millisecond
	fairPatience  = mostPatience / 2
)

var (
	// errDown says that Redis does not decide.
	errDown = errors.New("redis is down")
	// errBusy says that there was no turn to ask Redis in time.
	errBusy = errors.New("too many calls to redis at a time")
)

// Reserve implements [ratelimit.Buckets]. The error is that of a draw whose
// Outage is to deny, or the context's.
func (b *Buckets) Reserve(ctx context.Context, draws []ratelimit.Draw, wait time.Duration) (ratelimit.Grant, error) {
	if len(draws) == 0 {
		return ratelimit.Grant{OK: true}, nil
	}
	if g, never := b.never(draws); never {
		return g, nil
	}
	until := time.Now().Add(wait)
	err := errDown
	if patience := b.patience(wait); patience >= leastPatience && !b.breaker.isOpen() {
		var g ratelimit.Grant
		if g, err = b.reserve(ctx, draws, until, patience); err == nil {
			return g, nil
		}
		if gone := ended(ctx); gone != nil {
			return ratelimit.Grant{}, fmt.Errorf("redis: %w", gone)
		}
	}
	return b.fallBack(draws, time.Until(until), err)
}

// never answers draws of which one is above its burst, which takes no call.
func (b *Buckets) never(draws []ratelimit.Draw) (ratelimit.Grant, bool) {
	for i := range draws {
		if d := &draws[i]; d.Cost > d.Limit.Burst || !sound(d.Limit) {
			g := ratelimit.Grant{Never: true, Draw: i}
			if sound(d.Limit) {
				g.Left = b.mirror.Left(d.Key, d.Limit)
			}
			return g, true
		}
	}
	return ratelimit.Grant{}, false
}

func sound(l ratelimit.Limit) bool { return l.Tokens > 0 && l.Every > 0 && l.Burst > 0 }

// reserve makes every draw in Redis, or none.
func (b *Buckets) reserve(ctx context.Context, draws []ratelimit.Draw, until time.Time, patience time.Duration) (ratelimit.Grant, error) {
	began := time.Now()
	openings := b.breaker.openings.Load()
	asking, cancel := context.WithDeadline(ctx, began.Add(patience))
	defer cancel()

	var room [8]int
	var resets [8]time.Duration
	order, full := inOrder(room[:0], draws), append(resets[:0], make([]time.Duration, len(draws))...)
	g := ratelimit.Grant{OK: true}
	taken := 0                 // of order
	var lookedAt time.Duration // what draws of the same bucket, only looked at, would have taken
	for at, i := range order {
		d := &draws[i]
		if at > 0 && d.Key != draws[order[at-1]].Key {
			lookedAt = 0
		}
		// Once one has refused, the others are only looked at: the graver
		// refusal is told.
		reset, ok, err := b.draw(asking, d, until, g.OK)
		if err == nil && b.breaker.openings.Load() != openings {
			err = errDown
		}
		if err != nil {
			b.giveBack(draws, order[:taken])
			b.count(ctx, err, patience)
			return g, err
		}
		full[i] = reset
		debited := ok && g.OK
		owed := reset
		if !debited {
			owed += lookedAt + duration(seconds(d.Limit, d.Cost))
		}
		wait := due(d.Limit, owed)
		// What was granted and is due too late by now, because the answer was
		// slow to come, is of no use.
		inTime := ok && wait <= time.Until(until)
		if debited {
			taken++
		} else if inTime {
			lookedAt = owed - reset
		}
		if d.Cost > 0 {
			g.Weigh(i, wait, inTime, false)
		}
	}
	b.succeeded()
	b.metrics.drawSeconds.Observe(time.Since(began).Seconds())
	if !g.OK {
		b.giveBack(draws, order[:taken])
		for _, i := range order[:taken] {
			if d := &draws[i]; d.Key == draws[g.Draw].Key {
				full[g.Draw] = max(0, full[g.Draw]-duration(seconds(d.Limit, d.Cost)))
			}
		}
	} else if g.Wait == 0 {
		for i := range draws {
			if left(draws[i].Limit, full[i]) < left(draws[g.Draw].Limit, full[g.Draw]) {
				g.Draw = i
			}
		}
	}
	g.Left, g.Reset = left(draws[g.Draw].Limit, full[g.Draw]), full[g.Draw]
	return g, nil
}

// inOrder gives the order in which draws are made, which is the same for every
// request: of two that want the same buckets, the one that gets the first is
// the one that gets the others.
func inOrder(into []int, draws []ratelimit.Draw) []int {
	for i := range draws {
		into = append(into, i)
	}
	slices.SortStableFunc(into, func(i, j int) int {
		p, q := &draws[i].Key, &draws[j].Key
		return cmp.Or(cmp.Compare(p.Policy, q.Policy), cmp.Compare(p.Subject, q.Subject))
	})
	return into
}

// draw asks Redis for one bucket: one call. It says in what time the bucket
// will be full again, and whether it was debited. Not taking, it only looks.
func (b *Buckets) draw(ctx context.Context, d *ratelimit.Draw, until time.Time, take bool) (reset time.Duration, ok bool, err error) {
	select {
	case b.turns <- struct{}{}:
		defer func() { <-b.turns }()
	case <-ctx.Done():
		return 0, false, errBusy
	}
	if b.breaker.isOpen() {
		return 0, false, errDown // it opened while this one waited
	}
	key := b.key(d.Key)
	if err := b.adopt(ctx, d, key); err != nil {
		return 0, false, err
	}
	limit, n := widened(d.Limit, d.Cost, time.Until(until))
	if !take {
		n = 0
	}
	result, err := b.limiter.AllowN(ctx, key, limit, n)
	if err != nil {
		return 0, false, err
	}
	b.metrics.drawOK.Inc()
	b.mirror.Follow(d, result.ResetAfter)
	// Drawing nothing is never refused, though a bucket may be in debt.
	return result.ResetAfter, result.Allowed == n, nil
}

// adopt brings a bucket under a changed limit with its used share. It is one
// call more, for the first draw of a bucket after the change.
func (b *Buckets) adopt(ctx context.Context, d *ratelimit.Draw, key string) error {
	before, known := b.mirror.LimitOf(d.Key)
	if !known || before == d.Limit {
		return nil
	}
	from, to := seconds(before, before.Burst), seconds(d.Limit, d.Limit.Burst)
	if from == to {
		return nil
	}
	keys := []string{storeKey(key), storeKey(key) + ":span"}
	if err := adoptScript.Run(ctx, b.client, keys, from, to).Err(); err != nil {
		return err
	}
	b.metrics.called(callAdopt, outcomeOK, 1)
	return nil
}

// count notes a call that failed. It is a failure of Redis unless the caller
// left, or there was not the time to ask.
func (b *Buckets) count(ctx context.Context, err error, patience time.Duration) {
	switch {
	case ended(ctx) != nil:
		b.metrics.called(callDraw, outcomeGone, 1)
	case errors.Is(err, errDown):
	case errors.Is(err, errBusy):
		b.metrics.called(callDraw, outcomeBusy, 1)
	case isTimeout(err):
		b.metrics.called(callDraw, outcomeTimeout, 1)
		if patience >= fairPatience {
			b.failed(err)
		}
	default:
		b.metrics.called(callDraw, outcomeError, 1)
		b.failed(err)
	}
}

// ended is why the caller's context has ended, nil where it has not. A
// connection's deadline is the context's, and may be noticed before it.
func ended(ctx context.Context) error {
	if until, has := ctx.Deadline(); has && !time.Now().Before(until) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// fallBack decides without Redis. All draws of a request have one Outage.
func (b *Buckets) fallBack(draws []ratelimit.Draw, wait time.Duration, cause error) (ratelimit.Grant, error) {
	policy := draws[0].Outage
	if policy == ratelimit.OutageDeny {
		b.metrics.fellBack(policy, false)
		return ratelimit.Grant{}, fmt.Errorf("redis: %w", cause)
	}
	// What is allowed regardless is counted all the same, so that Redis learns
	// of it as far as the share goes.
	g := b.mirror.ReserveShare(draws, b.shares(), max(0, wait))
	b.unsaid.Store(true)
	if policy == ratelimit.OutageAllow {
		g.OK, g.Wait, g.Never = true, 0, false
	}
	b.metrics.fellBack(policy, g.OK)
	return g, nil
}

// shares is how many replicas a limit is divided among.
func (b *Buckets) shares() int { return int(max(1, b.replicas.Load())) }
