// Package ratelimit is the arithmetic of token buckets by reservation.
//
// # The model
//
// A bucket refills at Tokens per Every up to Burst. One call debits the cost
// and says when the caller is due; a caller that cannot be due in time is
// refused at once and debited nothing. Nobody asks twice, so waiters are served
// in the order in which they asked. It is the generic cell rate algorithm
// (ITU-T I.371) written as a theoretical arrival time: one number a bucket.
//
// # What always holds
//
//  1. Tokens admitted in any window never exceed burst + rate x window.
//  2. Several draws of one request are all made or none.
//  3. What is refunded restores the bucket exactly, but never past full.
//  4. Amounts are whole thousandths of a unit; time is monotonic.
//  5. Memory is bounded: a bucket that has refilled is dropped (it equals
//     none), and beyond the cap new keys share an overflow bucket.
package ratelimit
