package config_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/config"
)

// Small files that would expand to large ones are refused with little work.
func TestHostileFiles(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("tenant: { from: &a0 [x, x, x, x, x, x, x, x, x, x] }\nroutes:\n")
	rates := strings.TrimSuffix(strings.Repeat("*rate, ", 2000), ", ")
	laughs.WriteString("- &route { upstream: x, rates: [ &rate { tokens: 1, for: { op: *a0 } }, " + rates + " ] }\n")
	laughs.WriteString(strings.Repeat("- *route\n", 2000))
	for name, content := range map[string]string{
		"aliases":       laughs.String(),
		"nested":        "tenant: " + strings.Repeat("[", 100_000),
		"nested keys":   strings.Repeat("{ a: ", 100_000),
		"block nesting": strings.Repeat("- ", 100_000),
		"large":         "upstream: " + strings.Repeat("x", 2<<20),
		"many mistakes": strings.Repeat("x: 1\n", 100_000),
		"variables":     "tenant: { from: [" + strings.Repeat("'${LONG}', ", 40_000) + "x] }",
		"one variable":  "listen: '" + strings.Repeat("${LONG}", 100_000) + "'",
		"binary":        "\x00\x01\x02",
		"not UTF-8":     "upstream: \xff\xfe",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			long := strings.Repeat("y", 100_000)
			_, _, err := config.Load(write(t, content), func(string) (string, bool) { return long, true })
			if err == nil {
				t.Fatal("accepted")
			}
			if n := len(err.Error()); n > 64<<10 {
				t.Errorf("an error of %d bytes: %.200s", n, err)
			}
			// What is allocated stands for the work done, however busy the machine is.
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			if allocated > 512 {
				t.Errorf("allocated %d MiB", allocated)
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			t.Logf("%d MiB: %.200s", allocated, first)
		})
	}
}
