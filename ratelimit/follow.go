package ratelimit

import "time"

// This file is what a replica keeps of buckets that live in a store which all
// replicas share: enough to go on alone, with its part of the limit, while the
// store is away, and to tell the store afterwards what was spent.
//
// A part of 1/n of a limit is the whole limit with every cost n times: rate and
// burst shrink alike, so that a bucket's time until it is full is the same for
// the whole and for a part. The store's word can be taken over as it is.

// Debt is what one bucket lacks of being full.
type Debt struct {
	Key   Key
	Limit Limit
	// Told is for how long the store's bucket would still refill by its last word.
	Told time.Duration
	// Spent is what this replica's share lacks beyond that, as the time in
	// which the share refills: 1/n of it is what the whole bucket lacks.
	Spent time.Duration
}

// Follow notes the store's word of a draw's bucket, that it will be full in
// reset. Of two words the later instant counts: answers may overtake each other,
// and a store that has lost its memory is not believed.
func (l *Local) Follow(d *Draw, reset time.Duration) { l.tell(d, reset, 0, l.now()) }

// Settle is Follow after the store has been told of spent.
func (l *Local) Settle(d *Draw, reset, spent time.Duration) { l.tell(d, reset, int64(spent), l.now()) }

func (l *Local) tell(d *Draw, reset time.Duration, settled, now int64) {
	if !d.Limit.valid() {
		return
	}
	s := l.shard(d.Key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.find(d, now)
	if b == nil && reset > 0 {
		b, _ = l.add(d, now)
	}
	if b == nil {
		return
	}
	spent := max(0, b.full-max(b.told, now)-settled)
	b.told = max(b.told, now+min(int64(reset), maxSpan))
	b.full, b.frac = max(b.told, now)+spent, 0
}

// ReserveShare is Reserve from one of several equal shares of the buckets. A
// cost that fits the whole but not the share waits for more than one filling of
// the share.
func (l *Local) ReserveShare(draws []Draw, shares int, wait time.Duration) Grant {
	g := l.reserveTimes(Milli(shares), draws, wait, l.now())
	g.Left /= Milli(shares)
	return g
}

// RefundShare is Refund of what was drawn by ReserveShare.
func (l *Local) RefundShare(draws []Draw, shares int) {
	l.each(draws, l.now(), func(b *bucket, cost Milli, now int64) { b.credit(cost*Milli(shares), now) })
}

// Unfollow takes back what Follow was told of draws that are given back to the
// store.
func (l *Local) Unfollow(draws []Draw) {
	l.each(draws, l.now(), func(b *bucket, cost Milli, now int64) {
		b.credit(cost, now)
		ns, _ := b.limit.span(cost)
		b.told = min(b.full, b.told-ns)
	})
}

// LimitOf is the limit under which a bucket was last drawn from or followed.
func (l *Local) LimitOf(key Key) (Limit, bool) {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[key]; b != nil {
		return b.limit, true
	}
	return Limit{}, false
}

// Debts lists the buckets that are not full; overflow buckets stand for no
// bucket of the store and are not among them.
func (l *Local) Debts() []Debt {
	var debts []Debt
	now := l.now()
	for i := range l.shards[:len(l.shards)-1] {
		s := &l.shards[i]
		s.mu.Lock()
		for key, b := range s.buckets {
			if !b.isFull(now) {
				debts = append(debts, Debt{
					Key: key, Limit: b.limit,
					Told:  time.Duration(max(0, b.told-now)),
					Spent: time.Duration(max(0, b.full-max(b.told, now))),
				})
			}
		}
		s.mu.Unlock()
	}
	return debts
}
