package classify_test

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leastCPU is the least processor time that f takes in rounds calls: that of
// its own thread, which a loaded machine cannot lengthen as it does the clock
// on the wall.
func leastCPU(t *testing.T, rounds int, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	least := time.Hour
	for range rounds {
		began := now()
		f()
		least = min(least, now()-began)
	}
	return least
}
