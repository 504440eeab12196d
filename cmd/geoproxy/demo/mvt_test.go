package demo_test

import (
	"encoding/binary"
	"math"
	"net/http"
	"testing"
)

// field is one field of a protobuf message: a number, or bytes.
type field struct {
	number int
	value  uint64
	bytes  []byte
}

func fields(t *testing.T, message []byte) []field {
	t.Helper()
	var all []field
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			t.Fatal("a tag breaks off")
		}
		message = message[n:]
		f := field{number: int(tag >> 3)}
		switch tag & 7 {
		case 0:
			f.value, n = binary.Uvarint(message)
		case 1:
			f.value, n = binary.LittleEndian.Uint64(message), 8
		case 2:
			var length uint64
			length, n = binary.Uvarint(message)
			f.bytes = message[n : n+int(length)]
			n += int(length)
		default:
			t.Fatalf("wire type %d", tag&7)
		}
		message = message[n:]
		all = append(all, f)
	}
	return all
}

// decoded is one layer of a vector tile.
type decoded struct {
	name     string
	features []decodedFeature
}

type decodedFeature struct {
	properties map[string]any
	kind       uint64
	paths      [][][2]int64
	closed     int
}

func decodeMVT(t *testing.T, tile []byte) map[string]decoded {
	t.Helper()
	layers := make(map[string]decoded)
	for _, f := range fields(t, tile) {
		if f.number != 3 {
			t.Fatalf("field %d in a tile", f.number)
		}
		var l decoded
		var keys []string
		var values []any
		var raw [][]byte
		var version, extent uint64
		for _, f := range fields(t, f.bytes) {
			switch f.number {
			case 1:
				l.name = string(f.bytes)
			case 2:
				raw = append(raw, f.bytes)
			case 3:
				keys = append(keys, string(f.bytes))
			case 4:
				values = append(values, decodeValue(t, f.bytes))
			case 5:
				extent = f.value
			case 15:
				version = f.value
			}
		}
		if version != 2 || extent != 4096 {
			t.Fatalf("layer %s: version %d, extent %d", l.name, version, extent)
		}
		for _, message := range raw {
			l.features = append(l.features, decodeFeature(t, message, keys, values))
		}
		layers[l.name] = l
	}
	return layers
}

func decodeValue(t *testing.T, message []byte) any {
	t.Helper()
	f := fields(t, message)[0]
	switch f.number {
	case 1:
		return string(f.bytes)
	case 3:
		return math.Float64frombits(f.value)
	case 7:
		return f.value == 1
	default:
		t.Fatalf("value of type %d", f.number)
		return nil
	}
}

func decodeFeature(t *testing.T, message []byte, keys []string, values []any) decodedFeature {
	t.Helper()
	out := decodedFeature{properties: make(map[string]any)}
	for _, f := range fields(t, message) {
		switch f.number {
		case 2:
			tags := uvarints(t, f.bytes)
			for i := 0; i < len(tags); i += 2 {
				out.properties[keys[tags[i]]] = values[tags[i+1]]
			}
		case 3:
			out.kind = f.value
		case 4:
			commands := uvarints(t, f.bytes)
			var x, y int64
			for len(commands) > 0 {
				id, count := commands[0]&7, int(commands[0]>>3)
				commands = commands[1:]
				if id == 7 {
					out.closed++
					continue
				}
				for range count {
					x += int64(commands[0]>>1) ^ -int64(commands[0]&1)
					y += int64(commands[1]>>1) ^ -int64(commands[1]&1)
					commands = commands[2:]
					if id == 1 {
						out.paths = append(out.paths, nil)
					}
					last := len(out.paths) - 1
					out.paths[last] = append(out.paths[last], [2]int64{x, y})
				}
			}
		}
	}
	return out
}

func uvarints(t *testing.T, b []byte) []uint64 {
	t.Helper()
	var all []uint64
	for len(b) > 0 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatal("a number breaks off")
		}
		all, b = append(all, v), b[n:]
	}
	return all
}

func TestVectorTilesDecode(t *testing.T) {
	_, server := start(t)
	res, body := do(t, http.MethodGet, server.URL+"/tiles/world/4/7/4.mvt", "") // Iceland and Ireland's north
	if got := res.header.Get("Content-Type"); got != "application/vnd.mapbox-vector-tile" {
		t.Fatalf("%d %s: %s", res.status, got, body)
	}
	layers := decodeMVT(t, body)
	var iceland *decodedFeature
	for i, f := range layers["countries"].features {
		if f.properties["name"] == "Iceland" {
			iceland = &layers["countries"].features[i]
		}
	}
	if iceland == nil {
		t.Fatalf("no Iceland among %d countries", len(layers["countries"].features))
	}
	if iceland.kind != 3 || iceland.closed != len(iceland.paths) || iceland.properties["iso_a3"] != "ISL" {
		t.Errorf("kind %d, %d paths of which %d closed, %v", iceland.kind, len(iceland.paths), iceland.closed, iceland.properties)
	}
	for _, l := range layers {
		for _, f := range l.features {
			for _, path := range f.paths {
				for _, p := range path {
					if p[0] < -64 || p[0] > 4160 || p[1] < -64 || p[1] > 4160 {
						t.Fatalf("%s: %v is outside of the tile and its margin", l.name, p)
					}
				}
			}
		}
	}
}

// The specification wants a polygon's shell to have a positive area in the
// tile's coordinates (4.3.3.3), and its holes a negative one.
func TestShellsOfVectorTilesRunTheRightWay(t *testing.T) {
	_, server := start(t)
	_, body := do(t, http.MethodGet, server.URL+"/tiles/countries/0/0/0.mvt", "")
	for _, f := range decodeMVT(t, body)["countries"].features {
		if area(f.paths[0]) < 0 {
			t.Errorf("%v: the first ring runs the wrong way", f.properties["name"])
		}
	}
}

func area(ring [][2]int64) (twice int64) {
	for i, p := range ring {
		q := ring[(i+1)%len(ring)]
		twice += p[0]*q[1] - q[0]*p[1]
	}
	return twice
}

func TestATileOfNothingIsEmpty(t *testing.T) {
	_, server := start(t)
	res, body := do(t, http.MethodGet, server.URL+"/tiles/countries/6/10/35.mvt", "") // the Pacific
	if res.status != http.StatusNoContent || len(body) != 0 {
		t.Errorf("%d with %d bytes, want 204 and none", res.status, len(body))
	}
}
