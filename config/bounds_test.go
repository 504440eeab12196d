package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/config"
)

// Small files that would expand to large ones are refused in little time.
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
			began := time.Now()
			long := strings.Repeat("y", 100_000)
			_, _, err := config.Load(write(t, content), func(string) (string, bool) { return long, true })
			if err == nil {
				t.Fatal("accepted")
			}
			if n := len(err.Error()); n > 64<<10 {
				t.Errorf("an error of %d bytes: %.200s", n, err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			first, _, _ := strings.Cut(err.Error(), "\n")
			t.Logf("%.200s", first)
		})
	}
}
