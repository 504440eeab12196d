package shed

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
	Draining    Reason = "draining"    // this process is stopping
	NoRoute     Reason = "no-route"    // no route matches
	BadRequest  Reason = "bad-request" // the request cannot be read in one way only, or passes a limit
)
