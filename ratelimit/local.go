package ratelimit

import (
	"context"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// manyShards is how many locks the buckets of a large table are spread
	// over. With the overflow buckets' own, a set of shards is one word.
	manyShards = 63
	// fewBuckets is the table size up to which one lock does, and a whole sweep
	// is cheap enough to be made whenever the table is full.
	fewBuckets = 256
	// sweepEvery is how often, in nanoseconds, a shard of a full table is
	// searched for buckets that have refilled.
	sweepEvery = int64(100 * time.Millisecond)
	// glances is how many buckets are looked at, and dropped where they have
	// refilled, whenever one is added to a table that is no longer small: such a
	// table shrinks faster than it grows. In a small one they may stay until
	// they are drawn from again, which saves making them anew.
	glances = 3
	// small is the part of the maximum up to which a table is small.
	small = 8
)

// Local holds the buckets of one process. Its Reserve decides at once and never
// fails.
//
// Memory is bounded by the number of buckets given to [NewLocal] plus one
// overflow bucket a policy. A bucket that has refilled equals none and makes
// room; a key that finds none draws from its policy's overflow bucket, which
// all such keys share. A refund of such a draw is lost, because by then nobody
// can tell whose it was: that errs on the side of admitting less.
type Local struct {
	epoch time.Time // carries the monotonic clock
	seed  maphash.Seed
	max   int64
	count atomic.Int64 // buckets, overflow buckets aside
	// shards are 1 or manyShards, and last the overflow buckets. They are
	// locked in this order.
	shards []shard
}

type shard struct {
	mu      sync.Mutex
	buckets map[Key]*bucket
	swept   int64    // when it was last searched whole
	_       [40]byte // a cache line of its own
}

// NewLocal makes an empty table of at most max buckets (at least 1), all full.
func NewLocal(max int) *Local {
	l := &Local{epoch: time.Now(), seed: maphash.MakeSeed(), max: int64(max)}
	n := 1
	if max > fewBuckets {
		n = manyShards
	}
	l.shards = make([]shard, n+1)
	for i := range l.shards {
		l.shards[i].buckets = make(map[Key]*bucket)
	}
	return l
}

// Reserve implements [Buckets]. It does not look at the context: it never waits.
func (l *Local) Reserve(_ context.Context, draws []Draw, wait time.Duration) (Grant, error) {
	return l.reserve(draws, wait, l.now()), nil
}

// Refund implements [Buckets].
func (l *Local) Refund(draws []Draw) { l.refund(draws, l.now()) }

// Left is what a bucket holds, for those who only look: a key without a bucket
// has its whole burst.
func (l *Local) Left(key Key, limit Limit) Milli { return l.left(key, limit, l.now()) }

// Len is how many buckets are kept, overflow buckets aside.
func (l *Local) Len() int { return int(l.count.Load()) }

func (l *Local) now() int64 { return int64(time.Since(l.epoch)) }

// touched remembers a bucket as it was before a draw.
type touched struct {
	bucket *bucket
	before bucket
	fresh  bool // was added by this draw
}

func (l *Local) reserve(draws []Draw, wait time.Duration, now int64) Grant {
	return l.reserveTimes(1, draws, wait, now)
}

// reserveTimes makes every draw, or none. Each is debited times its cost: what
// is drawn from a share of the bucket.
func (l *Local) reserveTimes(times Milli, draws []Draw, wait time.Duration, now int64) Grant {
	locked := l.lock(draws)
	defer func() { l.unlock(locked) }()

	// Draw one after the other, so that two draws of one bucket see each other.
	var room [4]touched // on the stack: more policies at once are rare
	undo := room[:0]
	grant := Grant{OK: true}
	for i := range draws {
		d := &draws[i]
		b, fresh := l.shard(d.Key).find(d, now), false
		if b == nil {
			b, fresh = l.add(d, now)
		}
		if b == nil {
			b = l.overflow(d, &locked, now)
		}
		undo = append(undo, touched{b, *b, fresh})
		if d.Cost > 0 {
			due, ok, never := b.debit(d.Cost, times, int64(max(0, wait)), now)
			grant.Weigh(i, time.Duration(due), ok, never)
		}
	}
	if !grant.OK {
		for i, u := range slices.Backward(undo) {
			*u.bucket = u.before
			if u.fresh {
				l.drop(l.shard(draws[i].Key), draws[i].Key)
			}
		}
	}
	if len(undo) == 0 {
		return grant
	}
	if grant.OK && grant.Wait == 0 {
		for i := range undo {
			if undo[i].bucket.left(now) < undo[grant.Draw].bucket.left(now) {
				grant.Draw = i
			}
		}
	}
	decided := undo[grant.Draw].bucket
	grant.Left, grant.Reset = decided.left(now), decided.reset(now)
	return grant
}

// Weigh takes the answer to draw i into the grant, which begins with OK true: a
// draw that never fits outweighs one that does not fit yet, that one those that
// fit, and of equals the one that takes longest.
func (g *Grant) Weigh(i int, due time.Duration, ok, never bool) {
	switch {
	case ok && !g.OK, g.Never:
		return
	case ok == g.OK && !never && due <= g.Wait:
		return
	}
	g.OK, g.Never, g.Wait, g.Draw = ok, never, due, i
}

func (l *Local) refund(draws []Draw, now int64) { l.each(draws, now, (*bucket).credit) }

// each calls f with the bucket of every draw that has one.
func (l *Local) each(draws []Draw, now int64, f func(b *bucket, cost Milli, now int64)) {
	locked := l.lock(draws)
	defer l.unlock(locked)
	for i := range draws {
		d := &draws[i]
		if b := l.shard(d.Key).find(d, now); b != nil && d.Cost > 0 && d.Limit.valid() {
			f(b, d.Cost, now)
		}
	}
}

func (l *Local) left(key Key, limit Limit, now int64) Milli {
	d := Draw{Key: key, Limit: limit}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.find(&d, now)
	if b == nil && l.count.Load() >= l.max {
		last := &l.shards[len(l.shards)-1]
		last.mu.Lock()
		defer last.mu.Unlock()
		d.Key.Subject = ""
		b = last.find(&d, now)
	}
	if b == nil {
		return limit.Burst
	}
	return b.left(now)
}

// shard is where a key's bucket is kept. The draws of one subject share a
// shard, so that most requests take one lock.
func (l *Local) shard(key Key) *shard { return &l.shards[l.index(key)] }

func (l *Local) index(key Key) int {
	n := len(l.shards) - 1
	if n == 1 {
		return 0
	}
	name := key.Subject
	if name == "" {
		name = key.Policy
	}
	return int(maphash.String(l.seed, name) % uint64(n)) //nolint:gosec // positive, and below manyShards
}

// lock locks the shards of the draws, each once and in order, so that no two
// callers can wait for each other. It gives their set, one bit each.
func (l *Local) lock(draws []Draw) uint64 {
	var set uint64
	for i := range draws {
		set |= 1 << l.index(draws[i].Key)
	}
	for rest := set; rest != 0; rest &= rest - 1 {
		l.shards[bits.TrailingZeros64(rest)].mu.Lock()
	}
	return set
}

func (l *Local) unlock(set uint64) {
	for ; set != 0; set &= set - 1 {
		l.shards[bits.TrailingZeros64(set)].mu.Unlock()
	}
}

// find gives the bucket of a draw, under the draw's limit, or nil.
func (s *shard) find(d *Draw, now int64) *bucket {
	b := s.buckets[d.Key]
	if b != nil && b.limit != d.Limit {
		b.adopt(d.Limit, now)
	}
	return b
}

// overflow gives the bucket that a policy's keys without one share. It locks
// the last shard and adds it to those that are locked.
func (l *Local) overflow(d *Draw, locked *uint64, now int64) *bucket {
	n := len(l.shards) - 1
	last := &l.shards[n]
	if *locked&(1<<n) == 0 {
		last.mu.Lock()
		*locked |= 1 << n
	}
	shared := Draw{Key: Key{Policy: d.Key.Policy}, Limit: d.Limit}
	b := last.find(&shared, now)
	if b == nil {
		maps.DeleteFunc(last.buckets, func(_ Key, b *bucket) bool { return b.isFull(now) })
		b = &bucket{limit: d.Limit, full: now}
		last.buckets[shared.Key] = b
	}
	return b
}

// add makes a full bucket for a draw's key, or gives nil where there is no room.
func (l *Local) add(d *Draw, now int64) (b *bucket, fresh bool) {
	s := l.shard(d.Key)
	if l.count.Load() > l.max/small {
		l.sweep(s, glances, now)
	}
	if l.count.Add(1) > l.max {
		l.count.Add(-1)
		if len(s.buckets) > fewBuckets && now-s.swept < sweepEvery {
			return nil, false
		}
		s.swept = now
		l.sweep(s, len(s.buckets), now)
		if l.count.Add(1) > l.max {
			l.count.Add(-1)
			return nil, false
		}
	}
	b = &bucket{limit: d.Limit, full: now}
	s.buckets[d.Key] = b
	return b, true
}

// sweep drops those of up to n buckets that have refilled. Which ones it looks
// at is the map's choice; dropping one changes no decision.
func (l *Local) sweep(s *shard, n int, now int64) {
	for key, b := range s.buckets {
		if n--; n < 0 {
			return
		}
		if b.isFull(now) {
			l.drop(s, key)
		}
	}
}

func (l *Local) drop(s *shard, key Key) {
	if _, ok := s.buckets[key]; ok {
		delete(s.buckets, key)
		l.count.Add(-1)
	}
}
