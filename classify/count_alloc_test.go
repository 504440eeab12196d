//go:build !race

// The race detector makes sync.Pool forget at random.

package classify_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

func TestCountBodyAllocatesLittle(t *testing.T) {
	// A collection empties the pools, and each processor has its own.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	text := []byte(polygons(200, 50))
	for _, coding := range []string{"", "gzip", "deflate", "br", "zstd", "gzip, br"} {
		body := whole(encode(t, text, coding))
		classify.CountBody(body, coding, "")
		const runs = 100
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			classify.CountBody(body, coding, "")
		}
		runtime.ReadMemStats(&after)
		each := (after.TotalAlloc - before.TotalAlloc) / runs
		if each > 64<<10 || coding == "" && each > 100 {
			t.Errorf("%q: %d bytes of memory each", coding, each)
		}
	}
}
