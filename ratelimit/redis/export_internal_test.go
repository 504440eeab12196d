package redis

import "time"

// SetPatience lets calls take longer, for tests on machines that are busy with
// other things than what is tested.
func (b *Buckets) SetPatience(d time.Duration) { b.patience = d }

// Settled reports whether every refund has been made.
func (b *Buckets) Settled() bool { return b.pending.Load() == 0 }

// Replicas is how many are counted.
func (b *Buckets) Replicas() int { return b.shares() }
