package classify

import (
	"encoding/json"
	"math"
	"testing"
)

// encodePolyline is the algorithm as its inventors describe it.
func encodePolyline(points [][2]float64, precision float64) []byte {
	var out []byte
	last := [2]int{}
	for _, p := range points {
		for i := range p {
			value := int(math.Round(p[i] * precision))
			delta := value - last[i]
			last[i] = value
			delta <<= 1
			if delta < 0 {
				delta = ^delta
			}
			for delta >= 0x20 {
				out = append(out, byte(0x20|delta&0x1f)+63)
				delta >>= 5
			}
			out = append(out, byte(delta)+63)
		}
	}
	return out
}

// What an encoder makes of points is counted as so many, also in JSON and in a
// path; and nothing counts as more than a point in two bytes, or less than none.
func FuzzPolylinePoints(f *testing.F) {
	f.Add([]byte("_p~iF~ps|U_ulLnnqC_mqNvxq`@"), 3, 1.5)
	f.Add([]byte(`\\\\`), 0, -180.0)
	f.Add([]byte(""), 100, 0.00001)
	f.Fuzz(func(t *testing.T, raw []byte, n int, step float64) {
		if got := polylinePoints(raw, true); got < 0 || got > float64(len(raw)/2+1) {
			t.Fatalf("%v points in %q", got, raw)
		}
		pathPoints(string(raw))
		if n < 0 || n > 500 || math.IsNaN(step) || math.Abs(step) > 180 {
			return
		}
		points := make([][2]float64, n)
		for i := range points {
			points[i] = [2]float64{math.Mod(step*float64(i), 180), math.Mod(-step*float64(i*i), 90)}
		}
		for _, precision := range []float64{1e5, 1e6} {
			text := encodePolyline(points, precision)
			if got := polylinePoints(text, false); got != float64(n) {
				t.Fatalf("%v points, want %d", got, n)
			}
			quoted, err := json.Marshal(string(text))
			if err != nil {
				t.Fatal(err)
			}
			v := jsonValue{text: quoted}
			if got := polylinePoints(v.str(), true); got != float64(n) && !hasUnicodeEscape(quoted) {
				t.Fatalf("%v points in JSON, want %d", got, n)
			}
		}
	})
}

// encoding/json writes <, > and & as escapes, which no other encoder does.
func hasUnicodeEscape(quoted []byte) bool {
	for i := range len(quoted) - 1 {
		if quoted[i] == '\\' && quoted[i+1] == 'u' {
			return true
		}
	}
	return false
}

func TestPathPoints(t *testing.T) {
	for segment, want := range map[string]float64{
		"4.90,52.37;4.48,51.92":                     2,
		"4.90,52.37%3B4.48,51.92.json":              2,
		"4.90,52.37":                                1,
		"polyline(_p~iF~ps%7CU_ulLnnqC_mqNvxq%60@)": 3,
		"polyline6(_p~iF~ps|U_ulLnnqC).json":        2,
		"polyline(%5C%5C%5C%5C)":                    2,
		"polyline()":                                0,
	} {
		if got := pathPoints(segment); got != want {
			t.Errorf("%s: %v points, want %v", segment, got, want)
		}
	}
}
