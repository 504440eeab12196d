package proxy

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrainWhileRequestsBegin: a drain ends when the last request does, though
// others began meanwhile.
func TestDrainWhileRequestsBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f inFlight
		if !f.drained(t.Context()) {
			t.Error("nothing is in flight")
		}
		var all sync.WaitGroup
		began := time.Now()
		for i := range 10 {
			f.begin()
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				f.begin() // one more on a connection that was kept alive
				f.end()
				f.end()
			})
		}
		if !f.drained(t.Context()) || time.Since(began) != 9*time.Second {
			t.Errorf("drained after %s; want 9s", time.Since(began))
		}
		all.Wait()

		f.begin()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if f.drained(ctx) {
			t.Error("one request is left")
		}
		f.end()
	})
}
