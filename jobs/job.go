package jobs

import (
	"errors"
	"strconv"
	"time"
)

// State is where a job stands. The package's documentation draws who moves it.
type State string

// The states, in the words of OGC API - Processes.
const (
	Accepted   State = "accepted"   // queued: submitted, or waiting for another attempt
	Running    State = "running"    // claimed by a worker that renews its lease
	Successful State = "successful" // ended with a result
	Failed     State = "failed"     // ended without one
	Dismissed  State = "dismissed"  // cancelled
)

// ParseState reads a state's name.
func ParseState(s string) (State, bool) {
	switch st := State(s); st {
	case Accepted, Running, Successful, Failed, Dismissed:
		return st, true
	default:
		return "", false
	}
}

// Ended reports whether the job stays as it is for good.
func (s State) Ended() bool { return s == Successful || s == Failed || s == Dismissed }

// Job is a job as its store knows it. Times are the store's.
type Job struct {
	ID     ID
	Queue  string // the route's name
	Tenant string // whom it counts against in the queue
	Owner  string // who may see it; empty where the handle alone is the right to it
	State  State

	Attempt, MaxAttempts int
	Fence                int64 // rises with every claim

	Estimate time.Duration
	Timeout  time.Duration // of one attempt
	Keep     time.Duration // of the result, and the longest wait for a first attempt
	Info     Info

	Request []byte // sealed; nil once the job has ended
	Body    string // the blob of the request's body; empty without one

	Created, NotBefore, Started, Finished, Expires time.Time
	Now                                            time.Time // when it was read

	Reason string // why it failed: one of the reasons of this package, or of Geoproxy-Reason
	Error  string // the same in words
	Answer []byte // sealed: the upstream's status and header, or what made it fail
	Result string // the result's blob; empty where there is none
	Size   int64  // of the result, in bytes as the caller gets them
	// Gone says that the result's time is over.
	Gone bool

	// Ahead is what stands before an accepted job. Only Submit and Get fill it in.
	Ahead Ahead
}

// Mark is what changes with every move of a job.
func Mark(state State, fence int64, gone bool) string {
	mark := string(state) + "." + strconv.FormatInt(fence, 10)
	if gone {
		mark += ".gone"
	}
	return mark
}

func runningMark(k Key) string { return Mark(Running, k.Fence, false) }

// Info is what may be told of a job's request: nothing that was typed.
type Info struct {
	Family  string  `json:"family,omitempty"`
	Op      string  `json:"op,omitempty"`
	Class   string  `json:"class,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // as disclosed
	Low     bool    `json:"low,omitempty"`
	Basis   string  `json:"basis,omitempty"`  // as disclosed
	Why     string  `json:"why,omitempty"`    // the reason for the mode, in words
	Reason  string  `json:"reason,omitempty"` // asked, over-budget or deadline
	Inline  float64 `json:"inline,omitempty"` // the limit that was passed, in seconds; 0 where none was
	Method  string  `json:"method,omitempty"`
}

// Ahead is what stands before an accepted job in its queue.
type Ahead struct {
	Position int           // 1 is next
	Wait     time.Duration // until it is expected to start
}

// Key names one attempt: a job under the fence of its claim.
type Key struct {
	ID    ID
	Fence int64
}

// Ending is how an attempt ended.
type Ending struct {
	// State is Successful, Failed, or Accepted to be tried again.
	State State
	// Delay is how long until then.
	Delay time.Duration
	// Refund gives the attempt back: nothing was sent.
	Refund bool
	// HandBack gives it back too, but at most twice a job: the process stops.
	HandBack bool

	Reason string
	Error  string
	Answer []byte // sealed
	Result string // the blob, complete; of Successful
	Size   int64
}

// The reasons for which a job fails, beside those of Geoproxy-Reason.
const (
	ReasonUpstream  = "upstream"         // the upstream's final answer is no result
	ReasonTimeout   = "timeout"          // the attempt took longer than jobs.timeout
	ReasonLost      = "worker-lost"      // the last attempt's worker was lost
	ReasonQueueWait = "queue-wait"       // not started within keep
	ReasonTooLarge  = "result-too-large" // above jobs.max_result
	ReasonNoRoute   = "no-route"         // its route is gone
	ReasonStoreFull = "store-full"       // no room for the result
)

// Why a store did not do what it was asked.
var (
	// ErrUnknown says that there is no such job.
	ErrUnknown = errors.New("no such job")
	// ErrLost says that the attempt is no longer the caller's to end.
	ErrLost = errors.New("the lease was lost")
	// ErrMismatch says that the idempotency key belongs to another request.
	ErrMismatch = errors.New("the idempotency key was used for another request")
)
