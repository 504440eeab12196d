package shed

import "net/http"

// Reason says why a request was not simply forwarded: the value of
// Geoproxy-Reason and a metric label.
type Reason string

// The reasons.
const (
	Rate        Reason = "rate"        // no token by the admission deadline
	NeverFits   Reason = "never-fits"  // cost above the bucket's burst
	Concurrency Reason = "concurrency" // no seat by the admission deadline, or the line is full
	Deadline    Reason = "deadline"    // no answer's header by the deadline
	OverBudget  Reason = "over-budget" // too big to wait for
	Dependency  Reason = "dependency"  // something geoproxy needs is down, and the policy is to deny
	Upstream    Reason = "upstream"    // the upstream could not be reached, or broke off
	Blocked     Reason = "blocked"     // the tenant is not served
	QueueDepth  Reason = "queue-depth" // the queue of jobs, or the caller's share of it, is full
	QueueWait   Reason = "queue-wait"  // a job would take too long from now
	Store       Reason = "store"       // the store of jobs is down, or nobody knows whether it kept the job
	StoreFull   Reason = "store-full"  // no room for more results of jobs
	Draining    Reason = "draining"    // this process is stopping
	NoRoute     Reason = "no-route"    // no route matches
	BadRequest  Reason = "bad-request" // the request cannot be read in one way only, or passes a limit
)

// Reasons lists every reason, in the order of their declaration.
func Reasons() []Reason {
	return []Reason{Rate, NeverFits, Concurrency, Deadline, OverBudget, QueueDepth, QueueWait, Store, StoreFull, Dependency, Upstream, Blocked, Draining, NoRoute, BadRequest}
}

// Status is the reason's status in the wire contract. Two reasons have others
// beside it, which whoever refuses chooses: a tenant whose own share of a gate
// or line is full gets 429, not 503, and a request that passes a limit may get
// 413, 414 or 431, not 400.
func (r Reason) Status() int {
	switch r {
	case Rate:
		return http.StatusTooManyRequests
	case NeverFits, OverBudget:
		return http.StatusUnprocessableEntity
	case Concurrency, QueueDepth, QueueWait, Store, StoreFull, Dependency, Draining:
		return http.StatusServiceUnavailable
	case Deadline:
		return http.StatusGatewayTimeout
	case Upstream:
		return http.StatusBadGateway
	case Blocked:
		return http.StatusForbidden
	case NoRoute:
		return http.StatusNotFound
	case BadRequest:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}
