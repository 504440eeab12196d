package proxy

import (
	"context"
	"sync/atomic"
)

// inFlight counts the requests that are being served. Unlike a WaitGroup it
// may be waited for while requests still begin: on connections that were kept
// alive some do.
type inFlight struct {
	count atomic.Int64
	idle  atomic.Pointer[chan struct{}] // what a drain waits on; nil without one
}

func (f *inFlight) begin() { f.count.Add(1) }

func (f *inFlight) end() {
	if f.count.Add(-1) > 0 {
		return
	}
	if idle := f.idle.Load(); idle != nil {
		select {
		case *idle <- struct{}{}:
		default: // it has been told already
		}
	}
}

// drained waits until no request is left and reports whether that came before
// ctx ended. One drain at a time.
func (f *inFlight) drained(ctx context.Context) bool {
	idle := make(chan struct{}, 1)
	f.idle.Store(&idle) // before the count is looked at: whoever ends later tells
	defer f.idle.Store(nil)
	for f.count.Load() > 0 {
		select {
		case <-idle:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
