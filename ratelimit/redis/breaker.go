package redis

import (
	"log/slog"
	"sync/atomic"
)

// mostFailures is how many calls fail in a row before Redis is taken for down.
const mostFailures = 3

// breaker is open while Redis is taken for down: nobody asks it then but the
// probe. Its zero value is closed.
type breaker struct {
	open     atomic.Bool
	failures atomic.Int32 // in a row
	openings atomic.Uint64
}

func (k *breaker) isOpen() bool { return k.open.Load() }

// succeeded ends a row of failures.
func (b *Buckets) succeeded() {
	if b.breaker.failures.Load() != 0 {
		b.breaker.failures.Store(0)
	}
}

// failed counts a failure, the third of which in a row opens the breaker.
func (b *Buckets) failed(err error) {
	if b.breaker.failures.Add(1) >= mostFailures {
		b.trip(err)
	}
}

// trip opens the breaker. Answers to calls that began before are not believed:
// they may be those of a Redis without its memory.
func (b *Buckets) trip(err error) {
	b.breaker.openings.Add(1)
	if !b.breaker.open.CompareAndSwap(false, true) {
		return
	}
	b.metrics.openings.Inc()
	b.metrics.up.Set(0)
	b.log.Warn("Redis is down: each route's redis_down decides on its rates", slog.Any("error", err))
}

// mend closes the breaker.
func (b *Buckets) mend() {
	b.breaker.failures.Store(0)
	if b.breaker.open.CompareAndSwap(true, false) {
		b.metrics.up.Set(1)
		b.log.Info("Redis is back: limits are shared again", slog.Int64("replicas", b.replicas.Load()))
	}
}
