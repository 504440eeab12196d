package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/geoproxy/geoproxy/ratelimit"
)

const (
	// mostRefunds is how many wait to be made; more are dropped, which errs to
	// the side of admitting less.
	mostRefunds = 8192
	// batch is how many calls of the background go to Redis at once.
	batch = 256
	// refundWithin bounds a batch.
	refundWithin = time.Second
)

// refund is a bucket, and the time in which it would refill what it is given.
type refund struct {
	key     ratelimit.Key
	seconds float64
}

// Refund implements [ratelimit.Buckets]. The mirror has it at once, Redis
// within a millisecond or so. While Redis is down it goes to the share: a token
// given back is a token, wherever it was drawn.
func (b *Buckets) Refund(draws []ratelimit.Draw) {
	if b.breaker.isOpen() {
		b.mirror.RefundShare(draws, b.shares())
		return
	}
	b.mirror.Unfollow(draws)
	for i := range draws {
		b.refund(&draws[i])
	}
}

// giveBack refunds those draws that are listed.
func (b *Buckets) giveBack(draws []ratelimit.Draw, which []int) {
	for _, i := range which {
		b.mirror.Unfollow(draws[i : i+1])
		b.refund(&draws[i])
	}
}

func (b *Buckets) refund(d *ratelimit.Draw) {
	if d.Cost <= 0 || !sound(d.Limit) {
		return
	}
	b.pending.Add(1)
	select {
	case b.refunds <- refund{d.Key, seconds(d.Limit, d.Cost)}:
	default:
		b.pending.Add(-1)
		b.metrics.called(callRefund, outcomeDropped, 1)
	}
}

// refundAll makes refunds as they come, as many at once as are waiting. When
// ctx ends it makes those that are left.
func (b *Buckets) refundAll(ctx context.Context) {
	for {
		var next refund
		select {
		case next = <-b.refunds:
		case <-ctx.Done():
			select {
			case next = <-b.refunds:
			default:
				return
			}
		}
		work := []refund{next}
		for more := true; more && len(work) < batch; {
			select {
			case next = <-b.refunds:
				work = append(work, next)
			default:
				more = false
			}
		}
		b.make(work)
		b.pending.Add(-int64(len(work)))
	}
}

// make makes refunds in one round trip. It does so after the caller has left,
// and while the process stops.
func (b *Buckets) make(work []refund) {
	if b.breaker.isOpen() {
		b.metrics.called(callRefund, outcomeDropped, len(work))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), refundWithin)
	defer cancel()
	_, err := b.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, r := range work {
			refundScript.Eval(ctx, p, []string{storeKey(b.key(r.key))}, r.seconds)
		}
		return nil
	})
	switch {
	case err == nil:
		b.metrics.called(callRefund, outcomeOK, len(work))
	case isTimeout(err):
		b.metrics.called(callRefund, outcomeTimeout, len(work))
	default:
		b.metrics.called(callRefund, outcomeError, len(work))
	}
}
