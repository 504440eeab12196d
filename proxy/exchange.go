package proxy

import (
	"net/http"
	"time"
)

// fault says why an exchange ended without an answer to pass on, or broke off.
type fault uint8

const (
	faultNone        fault = iota
	faultDeadline          // no header from the upstream by the deadline
	faultUnreachable       // no connection, or it broke before the header
	faultGone              // the caller left
	faultSlow              // the caller sent or took less than stream.min_rate, or nothing for stream.idle
	faultBody              // the request's body passed the route's max_body
	faultBroken            // the upstream broke off after its header
)

// owner is whoever sent a request on its way: forward tells it what happens.
type owner interface {
	// release gives back what the upstream's work holds. forward calls it
	// exactly when that work has ended as far as can be known; calling it
	// again does nothing.
	release()
	// answered is called once, with the upstream's final header, before any of
	// it goes to the caller; it may change the header.
	answered(*http.Response)
}

// exchange is one admitted request on its way to the upstream and back. The
// front end fills in the first part and reads the second when forward returns.
type exchange struct {
	// deadline is the latest for the upstream's header.
	deadline time.Time
	owner    owner
	stream   *StreamConfig
	maxBody  int64
	// trusted says that the peer is one of tenant.trusted_proxies: what it
	// says in X-Forwarded-* and Forwarded is kept.
	trusted bool
	// streams is what all exchanges of the process share; nil is the
	// upstream's own.
	streams *streams

	fault     fault
	err       error         // what the fault was, for the log
	sent      bool          // the answer's header went out to the caller
	status    int           // the upstream's
	upBytes   int64         // of the request's body that went to the upstream
	downBytes int64         // of the answer's body that came from the upstream
	waited    time.Duration // spent waiting for upstream bytes, header included
}
