package proxy

import (
	"hash/maphash"
	"sync"
)

// tableShards keep requests of different tenants off each other's lock.
const tableShards = 32

// table is a map of bounded size. When it is full a new key takes the place of
// an arbitrary other, which costs only that the other is worked out again: no
// order of use is kept, so that reading does not write.
type table[K comparable, V any] struct {
	seed   maphash.Seed
	most   int // per shard
	shards [tableShards]shard[K, V]
}

type shard[K comparable, V any] struct {
	mu      sync.RWMutex
	entries map[K]V
}

// init makes the table hold at most the given number of entries, rounded up to
// a multiple of its shards.
func (t *table[K, V]) init(most int) {
	t.seed = maphash.MakeSeed()
	t.most = (most + tableShards - 1) / tableShards
	for i := range t.shards {
		t.shards[i].entries = make(map[K]V)
	}
}

func (t *table[K, V]) get(key K) (V, bool) {
	s := t.shard(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, ok := s.entries[key]
	return value, ok
}

func (t *table[K, V]) put(key K, value V) {
	s := t.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.entries[key]; !known && len(s.entries) >= t.most {
		for other := range s.entries {
			delete(s.entries, other)
			break
		}
	}
	s.entries[key] = value
}

// len counts the entries.
func (t *table[K, V]) len() int {
	n := 0
	for i := range t.shards {
		t.shards[i].mu.RLock()
		n += len(t.shards[i].entries)
		t.shards[i].mu.RUnlock()
	}
	return n
}

func (t *table[K, V]) shard(key K) *shard[K, V] {
	return &t.shards[maphash.Comparable(t.seed, key)%tableShards]
}
