package demo

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/peterstace/simplefeatures/geom"
)

// mvtExtent is the width of a vector tile in its own units.
const mvtExtent = 4096

// layerShapes are the features of one collection in a tile.
type layerShapes struct {
	name   string
	shapes []shape
	rows   []*feature // that each shape is of
}

// encodeMVT writes a Mapbox Vector Tile (specification 2.1), which is a
// protobuf message of few enough fields to write by hand. A tile without
// features is empty.
func encodeMVT(layers []layerShapes) []byte {
	var tile []byte
	for _, l := range layers {
		if layer := encodeLayer(l); layer != nil {
			tile = bytesField(tile, 3, layer)
		}
	}
	return tile
}

func encodeLayer(l layerShapes) []byte {
	var features [][]byte
	var keys []string
	var values [][]byte
	for i, s := range l.shapes {
		commands := geometryCommands(s)
		if len(commands) == 0 {
			continue
		}
		var tags []byte
		for _, name := range sortedKeys(l.rows[i].properties) {
			value := encodeValue(l.rows[i].properties[name])
			if value == nil {
				continue
			}
			k, v := slices.Index(keys, name), slices.IndexFunc(values, func(b []byte) bool { return string(b) == string(value) })
			if k < 0 {
				k, keys = len(keys), append(keys, name)
			}
			if v < 0 {
				v, values = len(values), append(values, value)
			}
			tags = binary.AppendUvarint(tags, uint64(k))
			tags = binary.AppendUvarint(tags, uint64(v))
		}
		var f []byte
		f = bytesField(f, 2, tags)
		f = uintField(f, 3, mvtType(s.kind))
		f = bytesField(f, 4, commands)
		features = append(features, f)
	}
	if features == nil {
		return nil
	}
	layer := uintField(nil, 15, 2) // version
	layer = bytesField(layer, 1, []byte(l.name))
	for _, f := range features {
		layer = bytesField(layer, 2, f)
	}
	for _, k := range keys {
		layer = bytesField(layer, 3, []byte(k))
	}
	for _, v := range values {
		layer = bytesField(layer, 4, v)
	}
	return uintField(layer, 5, mvtExtent)
}

func mvtType(kind geom.GeometryType) uint64 {
	if kind == geom.TypePoint {
		return 1
	}
	if kind == geom.TypeLineString {
		return 2
	}
	return 3
}

// geometryCommands writes paths as move-to, line-to and close-path, in steps
// from the last point, zigzag coded (specification, 4.3).
func geometryCommands(s shape) []byte {
	const moveTo, lineTo, closePath = 1, 2, 7
	var out []byte
	var atX, atY int64
	for _, path := range s.paths {
		p := rounded(path)
		switch {
		case s.kind == geom.TypePoint && len(p) == 1:
		case s.kind == geom.TypeLineString && len(p) >= 2:
		case s.kind == geom.TypePolygon && len(p) >= 3:
		default:
			continue // reduced to nothing
		}
		for i, xy := range p {
			switch i {
			case 0:
				out = binary.AppendUvarint(out, moveTo|1<<3)
			case 1:
				out = binary.AppendUvarint(out, lineTo|uint64(len(p)-1)<<3) //nolint:gosec // p has at least two points
			}
			out = binary.AppendVarint(out, xy[0]-atX) // AppendVarint is zigzag
			out = binary.AppendVarint(out, xy[1]-atY)
			atX, atY = xy[0], xy[1]
		}
		if s.kind == geom.TypePolygon {
			out = binary.AppendUvarint(out, closePath|1<<3)
		}
	}
	return out
}

func rounded(path []float64) [][2]int64 {
	out := make([][2]int64, 0, len(path)/2)
	for i := 0; i < len(path); i += 2 {
		p := [2]int64{int64(math.Round(path[i])), int64(math.Round(path[i+1]))}
		if n := len(out); n == 0 || out[n-1] != p {
			out = append(out, p)
		}
	}
	return out
}

// encodeValue writes a property's value; nil where a tile cannot hold it.
func encodeValue(v any) []byte {
	switch v := v.(type) {
	case string:
		return bytesField(nil, 1, []byte(v))
	case float64:
		b := binary.AppendUvarint(nil, 3<<3|1)
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	case bool:
		if v {
			return uintField(nil, 7, 1)
		}
		return uintField(nil, 7, 0)
	default:
		return nil
	}
}

func bytesField(b []byte, field uint64, value []byte) []byte {
	b = binary.AppendUvarint(b, field<<3|2)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

func uintField(b []byte, field, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, field<<3), value)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
