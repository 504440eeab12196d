// Package redis keeps the buckets of ratelimit in Redis, so that all replicas
// of a geoproxy share one limit.
//
// # A reservation
//
// redis_rate's script knows a bucket as the instant at which it will be full
// again, and refuses what does not fit the burst now. A request that can wait t
// is asked for with a burst widened by what refills in t:
//
//	AllowN(Burst = burst + floor(rate x t), n = cost)
//
// so that it is debited if it can be due in t, and is due in
// ResetAfter - burst/rate. It sleeps once and does not ask again: one round trip
// for each bucket, and waiters are served in the order in which they asked.
// Amounts are whole thousandths; where a thousandth takes longer than a
// microsecond to refill, all numbers of a call are multiplied so that floor
// loses no more than that (see scale).
//
// Several buckets are drawn one after the other, in one order for all requests,
// and given back if one refuses or the caller leaves. Keys are
// rate:geoproxy:{policy}:HMAC of the subject; those of a policy share a slot of
// a Redis Cluster, and all expire when their bucket has refilled.
//
// # When Redis fails
//
//	          3 failures in a row, or its memory was lost
//	closed ------------------------------------------------> open
//	  ^                                                       |
//	  +--- a probe a second answers in time, debts are told --+
//
// While the breaker is open no request waits on Redis: the draw's Outage
// decides. Each answer of Redis is followed by a bucket in this process, so
// that OutageLocal goes on from what Redis knew, with a share of the limit that
// is 1/n of it for n living replicas, and never from a full bucket. Before the
// breaker closes, Redis is told what the buckets lack: at least what its own
// last word was, and 1/n of what each share spent since. That is exact where
// Redis kept its memory and where it lost it.
//
// # What always holds
//
//  1. A call takes at most 50 ms or a quarter of the time left, whichever is
//     less, and at most 32 draws ask at a time.
//  2. What may have been debited and is not known to be is not debited again:
//     errors are to the side of admitting less.
//  3. Time is the store's: no replica's clock is written to it.
//  4. Replicas are counted in one set in Redis. The count falls only when Redis
//     has been up for as long as a replica's entry lasts, so that one that came
//     back empty does not make every replica think itself alone.
//
// What nobody can tell: a process that starts while Redis is down counts itself
// alone, and its buckets are full.
package redis
