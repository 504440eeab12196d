package proxy

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// stayer stands in for a caller that may leave while an upstream that would not
// notice is at work for it. What the upstream sends then goes nowhere, but it
// is read to its end: only so is it known when the work has ended and the seat
// is free. Closing the connection would free the seat at once and let the next
// request in beside work that still runs.
type stayer struct {
	http.ResponseWriter
	left bool // a write failed: nobody takes the answer any more
}

// Write passes on what the caller takes, and takes the rest itself.
func (s *stayer) Write(p []byte) (int, error) {
	if !s.left {
		_, err := s.ResponseWriter.Write(p)
		s.left = err != nil
	}
	return len(p), nil
}

// Unwrap gives [http.ResponseController] the writer that can do more.
func (s *stayer) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// stayOn makes a request and its writer go on when the caller leaves: until the
// upstream has answered, at most until latest. A process that stops ends them
// all the same. The caller calls end when the exchange is over.
func stayOn(w http.ResponseWriter, r *http.Request, latest time.Time) (*stayer, *http.Request, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	unwatch := context.AfterFunc(r.Context(), func() {
		if cause := context.Cause(r.Context()); errors.Is(cause, errDraining) {
			cancel(cause)
			return
		}
		timer := time.NewTimer(time.Until(latest))
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(errLeft)
		case <-ctx.Done():
		}
	})
	return &stayer{ResponseWriter: w}, r.WithContext(ctx), func() {
		unwatch()
		cancel(errOver)
	}
}
