// Package ratelimit is the arithmetic of token buckets by reservation.
//
// # The model
//
// A bucket refills at Tokens per Every up to Burst. One call debits the cost
// and says when the caller is due; a caller that cannot be due in time is
// refused at once and debited nothing. Nobody asks twice, so waiters are served
// in the order in which they asked. It is the generic cell rate algorithm
// (ITU-T I.371) written as a theoretical arrival time: the instant at which the
// bucket will be full again. With now, cost, and a rate of Tokens per Every
//
//	full' = max(full, now) + cost x Every/Tokens
//	due   = max(now, full' - Burst x Every/Tokens)
//
// and the caller is refused where due is later than it can wait. In this
// process the quotient is exact, in fractions of a nanosecond.
//
// A request that several policies match draws from all of their buckets or from
// none. It waits for the one that is due last; in the others its tokens count
// from when they were due there.
//
// # What always holds
//
//  1. Tokens admitted in any window never exceed burst + rate x window. What
//     is given back is spent by whoever asks next, so that a window may hold,
//     besides, what was refunded of draws that were due before it began; from
//     the start of a bucket on, the bound holds without that.
//  2. Several draws of one request are all made or none.
//  3. What is refunded restores the bucket exactly, but never past full.
//  4. Amounts are whole thousandths of a unit; time is monotonic.
//  5. Memory is bounded: a bucket that has refilled is dropped (it equals
//     none), and beyond the cap new keys share an overflow bucket.
package ratelimit
