package redis

import "time"

// NewPatient is New for tests on machines that are busy with other things than
// what is tested: calls may take ten seconds.
func NewPatient(cfg Config) (*Buckets, error) {
	return start(cfg, func(time.Duration) time.Duration { return 10 * time.Second })
}

// Settled reports whether every refund has been made.
func (b *Buckets) Settled() bool { return b.pending.Load() == 0 }

// Replicas is how many are counted.
func (b *Buckets) Replicas() int { return b.shares() }
