package classify

import (
	"encoding/json"
	"strings"
	"testing"
)

// countReal counts what a real parser found.
func countReal(value any, coords, collection bool, g *Geometry) {
	switch value := value.(type) {
	case []any:
		if coords && len(value) > 0 {
			if _, ok := value[0].(float64); ok {
				g.Vertices++
			}
		}
		for _, item := range value {
			if _, ok := item.(map[string]any); ok && collection {
				g.Features++
			}
			countReal(item, coords, false, g)
		}
	case map[string]any:
		for name, member := range value {
			_, list := member.([]any)
			_, number := member.(float64)
			switch name {
			case "rings", "paths", "points", "curveRings", "curvePaths":
				countReal(member, coords || list, false, g)
				continue
			case "features", "geometries":
				countReal(member, coords, list, g)
				continue
			case "x":
				if number && !coords {
					g.Vertices++
				}
			case "xmin":
				if number && !coords {
					g.Vertices += 4
				}
			}
			countReal(member, coords, false, g)
		}
	}
}

// What encoding/json finds is counted; more is only where names are repeated.
func FuzzScanArcGIS(f *testing.F) {
	for _, s := range []string{
		`{"rings":[[[1,2],[3,4],[5,6],[1,2]]],"spatialReference":{"wkid":4326}}`,
		`{"x":1,"y":2}`, `{"xmin":1,"ymin":2,"xmax":3,"ymax":4}`,
		`{"geometryType":"esriGeometryPoint","geometries":[{"x":1,"y":2},{"x":3,"y":4}]}`,
		`{"features":[{"attributes":{"x":"a"},"geometry":{"paths":[[[1,2,3],[4,5,6]]]}},{"geometry":null}]}`,
		`{"curveRings":[[[1,2],{"c":[[3,3],[1,4]]},{"b":[[1,2],[3,4],[5,6]]}]]}`,
		`{"points":[[1,2],[3,`, `{"\u0072ings":[[[1,2]]]}`, `{"points":[ 1 , 2 ]}`, `[[1,2]]`, `[{"geometry":{"x":1}},{}]`, `{"rings":[[[1,"a"],[2,{"x":3}]]]}`,
		strings.Repeat(`{"points":[`, 40), `{"points":{"x":1}}`, `{"features":[{"features":[{}]},[{}]]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, how := scanArcGIS(b)
		if g.Vertices > float64(len(b)) || g.Features > float64(len(b)) {
			t.Fatalf("%+v in %q", g, b)
		}
		var value any
		if json.Unmarshal(b, &value) != nil || deepest(b) >= maxBrackets {
			return
		}
		if how != complete {
			t.Fatalf("%d of %q", how, b)
		}
		var want Geometry
		_, list := value.([]any)
		countReal(value, false, list, &want)
		if want.Features == 0 && want.Vertices > 0 {
			want.Features = 1
		}
		if g.Vertices < want.Vertices || g.Features < want.Features {
			t.Fatalf("%+v, want %+v, of %q", g, want, b)
		}
	})
}

func TestScanArcGISAllocatesNothing(t *testing.T) {
	b := []byte(`{"features":[{"geometry":{"rings":[[[1,2],[3,4]]]}}]}`)
	if n := testing.AllocsPerRun(100, func() { scanArcGIS(b) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkScanArcGIS(b *testing.B) {
	text := []byte(`{"rings":[[` + strings.TrimSuffix(strings.Repeat(`[4.9012345,52.3745612],`, 5000), ",") + `]],"spatialReference":{"wkid":4326}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		scanArcGIS(text)
	}
}
