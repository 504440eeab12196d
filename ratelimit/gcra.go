package ratelimit

import (
	"math/bits"
	"time"
)

// maxSpan is the longest stretch of time that is computed with, in
// nanoseconds: 73 years. Longer ones count as this long, so that no sum of a
// span, a wait and the time since the epoch overflows.
const maxSpan = 1 << 61

// bucket is the state of one bucket, kept as the instant at which it will be
// full again: the theoretical arrival time of the generic cell rate algorithm
// (ITU-T I.371). A cost moves the instant back by the time in which it
// refills, cost x Every / Tokens.
//
// That quotient is rarely a whole number of nanoseconds, and rounding it would
// let the rate drift: at 3e6 tokens a second by two parts in a thousand. So the
// instant has a fraction in units of 1/Tokens nanoseconds, which every whole
// amount hits exactly: debiting and crediting are exact whatever the numbers.
// Only converting to another limit rounds, by at most a nanosecond.
type bucket struct {
	limit Limit
	full  int64 // nanoseconds since the epoch
	frac  int64 // 0 to limit.Tokens - 1
	told  int64 // full by the last word of a shared bucket that this one follows; see Local.Follow
}

// valid reports whether the limit can be computed with.
func (l Limit) valid() bool { return l.Tokens > 0 && l.Every > 0 && l.Burst > 0 }

// span is the time in which amount refills: ns + frac/Tokens nanoseconds.
func (l Limit) span(amount Milli) (ns, frac int64) {
	// 1e12 thousandths x 1 h is far above 64 bits.
	hi, lo := bits.Mul64(uint64(amount), uint64(l.Every)) //nolint:gosec // both are positive
	tokens := uint64(l.Tokens)                            //nolint:gosec // positive
	if hi >= tokens {
		return maxSpan, 0
	}
	q, r := bits.Div64(hi, lo, tokens)
	if q >= maxSpan {
		return maxSpan, 0
	}
	return int64(q), int64(r) //nolint:gosec // q < maxSpan, r < tokens
}

// refill forgets the past of a bucket that is full: it equals a new one.
func (b *bucket) refill(now int64) {
	if b.full < now {
		b.full, b.frac = now, 0
	}
}

// isFull reports whether the bucket equals none.
func (b *bucket) isFull(now int64) bool {
	return b.full < now || (b.full == now && b.frac == 0)
}

// debit takes cost where the caller can be due within wait, and says in how
// many nanoseconds it is due, rounded up. Otherwise it takes nothing and says
// when the cost would fit, or that it never will. It takes the cost times over:
// from a share of the bucket, where a cost may need more than one filling.
func (b *bucket) debit(cost, times Milli, wait, now int64) (due int64, ok, never bool) {
	if !b.limit.valid() || cost > b.limit.Burst {
		return 0, false, true
	}
	b.refill(now)
	before := *b
	b.move(b.limit.span(cost * times))
	due = b.due(now)
	if due > min(wait, maxSpan) {
		*b = before
		return due, false, false
	}
	return due, true, false
}

// due is how long it takes until the bucket is out of debt: until what it lacks
// of being full is no more than its burst.
func (b *bucket) due(now int64) int64 {
	ns, frac := b.limit.span(b.limit.Burst)
	due := b.full - ns - now
	if b.frac > frac {
		due++ // the fraction is rounded up: nobody is due early
	}
	return max(0, due)
}

// credit gives back cost, but never past full.
func (b *bucket) credit(cost Milli, now int64) {
	ns, frac := b.limit.span(cost)
	b.move(-ns, -frac)
	b.refill(now)
}

// move adds a span to the instant.
func (b *bucket) move(ns, frac int64) {
	b.full += ns
	b.frac += frac
	switch tokens := int64(b.limit.Tokens); {
	case b.frac >= tokens:
		b.frac -= tokens
		b.full++
	case b.frac < 0:
		b.frac += tokens
		b.full--
	}
}

// left is what the bucket holds, rounded down; 0 where it is in debt.
func (b *bucket) left(now int64) Milli {
	if !b.limit.valid() {
		return 0
	}
	if b.full < now {
		return b.limit.Burst
	}
	// What is missing, rounded up: (full - now) x Tokens / Every.
	tokens, every := uint64(b.limit.Tokens), uint64(b.limit.Every) //nolint:gosec // both are positive
	hi, lo := bits.Mul64(uint64(b.full-now), tokens)               //nolint:gosec // not negative
	lo, carry := bits.Add64(lo, uint64(b.frac), 0)                 //nolint:gosec // not negative
	hi += carry
	if hi >= every {
		return 0
	}
	missing, rest := bits.Div64(hi, lo, every)
	if rest > 0 {
		missing++
	}
	if missing >= uint64(b.limit.Burst) { //nolint:gosec // positive
		return 0
	}
	return b.limit.Burst - Milli(missing) //nolint:gosec // below Burst
}

// reset is how long until the bucket is full, rounded up.
func (b *bucket) reset(now int64) time.Duration {
	d := b.full - now
	if b.frac > 0 {
		d++
	}
	return time.Duration(max(0, d))
}

// adopt goes over to another limit and keeps the used share: a bucket that was
// half used is half used, and what it was in debt keeps its proportion to the
// burst. The result is rounded by at most a nanosecond, to the bucket's loss.
func (b *bucket) adopt(limit Limit, now int64) {
	old := b.limit
	b.limit = limit
	if !old.valid() || !limit.valid() || b.isFull(now) {
		b.full, b.frac, b.told = now, 0, now
		return
	}
	used := share(uint64(b.reset(now)), wholeSpan(old), wholeSpan(limit)) //nolint:gosec // not negative
	b.full, b.frac = now+int64(used), 0                                   //nolint:gosec // at most maxSpan
	told := share(uint64(max(0, b.told-now)), wholeSpan(old), wholeSpan(limit))
	b.told = now + int64(told) //nolint:gosec // at most maxSpan
}

// wholeSpan is the time in which an empty bucket refills, rounded up.
func wholeSpan(l Limit) uint64 {
	ns, frac := l.span(l.Burst)
	if frac > 0 {
		ns++
	}
	return uint64(ns) //nolint:gosec // not negative
}

// share is used x to / from, rounded up, at most maxSpan.
func share(used, from, to uint64) uint64 {
	hi, lo := bits.Mul64(used, to)
	if hi >= from {
		return maxSpan
	}
	q, r := bits.Div64(hi, lo, from)
	if r > 0 {
		q++
	}
	return min(q, maxSpan)
}
