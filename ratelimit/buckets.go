package ratelimit

import (
	"context"
	"fmt"
	"time"
)

// Milli is an amount in thousandths of a policy's unit.
type Milli int64

// Limit is what a bucket holds and how fast it refills.
type Limit struct {
	Tokens Milli         // refilled each Every, evenly; > 0
	Every  time.Duration // > 0
	Burst  Milli         // the most it holds; > 0
}

// Key names a bucket.
type Key struct {
	Policy  string // route and name of the policy
	Subject string // whom it counts: an HMAC of the tenant, an address prefix, or empty
}

// Draw asks one bucket for a cost.
type Draw struct {
	Key   Key
	Limit Limit
	Cost  Milli
	// Outage is what decides while the buckets' store fails. Buckets without
	// one do not look at it. The draws of one request have the same.
	Outage Outage
}

// Outage says what decides on a draw while the store that the replicas share
// does not answer.
type Outage uint8

// The answers to an outage.
const (
	OutageLocal Outage = iota // this replica's share of the limit
	OutageAllow               // everything is let through
	OutageDeny                // nothing is: Reserve fails
)

// ParseOutage reads an answer's name: local, which is also an empty one, allow
// or deny.
func ParseOutage(name string) (Outage, error) {
	switch name {
	case "", "local":
		return OutageLocal, nil
	case "allow":
		return OutageAllow, nil
	case "deny":
		return OutageDeny, nil
	}
	return 0, fmt.Errorf("%q is none of local, allow, deny", name)
}

// String gives the name.
func (o Outage) String() string {
	switch o {
	case OutageAllow:
		return "allow"
	case OutageDeny:
		return "deny"
	case OutageLocal:
	}
	return "local"
}

// Grant is the answer to a reservation.
type Grant struct {
	// OK says that every draw was debited. Otherwise none was.
	OK bool
	// Wait is how long until the caller is due: 0 for now. Of a refusal: how
	// long until the refusing draw's cost would fit, 0 where it never will.
	Wait time.Duration
	// Draw is the index of the draw that decided: the one that refused, else
	// the one the caller waits for longest, else the one with the least left.
	Draw int
	// Never says that the cost is above the bucket's burst: waiting cannot help.
	Never bool
	// Left is what remains in the bucket of Draw after the debit; 0 where it is in debt.
	Left Milli
	// Reset is how long until that bucket is full again.
	Reset time.Duration
}

// Buckets hold the state of all buckets. Implementations are safe for
// concurrent use.
type Buckets interface {
	// Reserve debits every draw, or none, where the caller can be due within
	// wait; the caller then sleeps Grant.Wait itself and does not ask again.
	// It returns within min(50 ms, a quarter of wait) or the context's end,
	// whichever is first, with an error where it could not decide; nothing is
	// debited then as far as it can know. An unknown key is a full bucket.
	Reserve(ctx context.Context, draws []Draw, wait time.Duration) (Grant, error)
	// Refund gives back draws that were reserved and not used. It never fills
	// a bucket past its burst, outlives the caller's context, and does not keep
	// the caller waiting: a store may have it a moment later.
	Refund(draws []Draw)
}
