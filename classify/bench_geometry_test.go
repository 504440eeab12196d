package classify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

// spaced writes JSON as Python's json.dumps does: a space after ',' and ':'.
func spaced(text string) string {
	return strings.NewReplacer(",", ", ", ":", ": ").Replace(text)
}

func indented(b *testing.B, text, indent string) string {
	b.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, []byte(text), "", indent); err != nil {
		b.Fatal(err)
	}
	return out.String()
}

// points writes features of one vertex each, most of which is properties.
func points(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"FeatureCollection","features":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"Feature","properties":{"name":"Hauptstra\u00dfe %d","kind":"address","floor":%d,"listed":true,"owner":null},"geometry":{"type":"Point","coordinates":[13.%07d,52.%06d]}}`, i, i%9, i, i)
	}
	b.WriteString(`]}`)
	return b.String()
}

func wktPolygons(n, vertices int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(" OR ")
		}
		b.WriteString("S_INTERSECTS(geom,POLYGON((")
		for v := range vertices {
			if v > 0 {
				b.WriteString(", ")
			}
			x, y := position(i, v)
			fmt.Fprintf(&b, "%s %s", x, y)
		}
		b.WriteString(")))")
	}
	return b.String()
}

func BenchmarkCountGeoJSON(b *testing.B) {
	compact := polygons(1781, 215)
	for _, c := range []struct{ name, text string }{
		{"compact", compact},
		{"pretty", indented(b, compact, "  ")},
		{"pretty4", indented(b, compact, "    ")},
		{"tabs", indented(b, compact, "\t")},
		{"spaced", spaced(compact)},
		{"points", points(60000)},
		{"20KiB", polygons(4, 200)},
		{"bounds", compact},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(c.text)
			count := func() { classify.CountGeoJSON(text) }
			if c.name == "bounds" {
				count = func() { classify.BoundsGeoJSON(text) }
			} else if g := classify.CountGeoJSON(text); g.Malformed || g.Vertices == 0 {
				b.Fatalf("counted %+v", g)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				count()
			}
		})
	}
}

// Throughput is that of the decoded text.
func BenchmarkCountBody(b *testing.B) {
	text := []byte(polygons(20, 100))
	for _, coding := range []string{"identity", "gzip", "deflate", "br", "zstd"} {
		b.Run(coding, func(b *testing.B) {
			body := whole(encode(b, text, coding))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				classify.CountBody(body, coding, "application/geo+json")
			}
		})
	}
}

func BenchmarkCountWKT(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"filter", wktPolygons(100, 4000)},
		{"compact", strings.ReplaceAll(wktPolygons(100, 4000), ", ", ",")},
		{"prose", strings.Repeat("name = 'Berlin (Mitte)' AND area IN (1, 2, 3) ", 1e5)},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(c.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				classify.CountWKT(text)
			}
		})
	}
}
