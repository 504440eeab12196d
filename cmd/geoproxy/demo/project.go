package demo

import (
	"math"

	"github.com/peterstace/simplefeatures/geom"
	"github.com/peterstace/simplefeatures/rtree"
)

// grid is a tile with its own coordinates: (0, 0) at its north-west corner,
// (size, size) at its south-east one.
type grid struct {
	z, x, y int
	size    float64
	margin  float64 // how far beyond its edges a tile draws
}

// maxLatitude is where the square of Web Mercator ends.
const maxLatitude = 85.0511287798066

func (t grid) project(lon, lat float64) (x, y float64) {
	lat = max(-maxLatitude, min(maxLatitude, lat))
	tiles := math.Exp2(float64(t.z))
	sin := math.Sin(lat * math.Pi / 180)
	x = (lon/360 + 0.5) * tiles
	y = (0.5 - math.Atanh(sin)/(2*math.Pi)) * tiles
	return (x - float64(t.x)) * t.size, (y - float64(t.y)) * t.size
}

// bounds is the tile with its margin, in degrees.
func (t grid) bounds() rtree.Box {
	tiles := math.Exp2(float64(t.z))
	margin := t.margin / t.size
	lon := func(x float64) float64 { return (x/tiles - 0.5) * 360 }
	lat := func(y float64) float64 { return math.Atan(math.Sinh((1-2*y/tiles)*math.Pi)) * 180 / math.Pi }
	box := rtree.Box{
		MinX: lon(float64(t.x) - margin), MinY: lat(float64(t.y) + 1 + margin),
		MaxX: lon(float64(t.x) + 1 + margin), MaxY: lat(float64(t.y) - margin),
	}
	if t.y+1 >= 1<<t.z {
		box.MinY = -90 // beyond the square: Antarctica is drawn down to the edge
	}
	return box
}

// shape is a feature's geometry in a tile's coordinates: x, y, x, y, ... A
// polygon's rings are closed by repeating nothing; its holes follow its shell.
type shape struct {
	kind  geom.GeometryType // TypePoint, TypeLineString or TypePolygon
	paths [][]float64
}

// clip brings a geometry into the tile, drops what lies outside of it and the
// points that make no difference at its resolution.
func (t grid) clip(g geom.Geometry) shape {
	var s shape
	for _, part := range g.Dump() {
		switch part.Type() {
		case geom.TypePoint:
			s.kind = geom.TypePoint
			if xy, ok := part.MustAsPoint().XY(); ok {
				if x, y := t.project(xy.X, xy.Y); t.holds(x, y) {
					s.paths = append(s.paths, []float64{x, y})
				}
			}
		case geom.TypeLineString:
			s.kind = geom.TypeLineString
			s.paths = append(s.paths, t.clipLine(t.path(part.MustAsLineString().Coordinates()))...)
		case geom.TypePolygon:
			s.kind = geom.TypePolygon
			for i, ring := range part.MustAsPolygon().ForceCW().DumpRings() {
				clipped := t.clipRing(t.path(ring.Coordinates()))
				if len(clipped) < 6 {
					if i == 0 {
						break
					}
					continue
				}
				s.paths = append(s.paths, clipped)
			}
		case geom.TypeGeometryCollection, geom.TypeMultiPoint, geom.TypeMultiLineString, geom.TypeMultiPolygon:
			// Dump takes these apart.
		}
	}
	return s
}

func (t grid) holds(x, y float64) bool {
	return x >= -t.margin && x <= t.size+t.margin && y >= -t.margin && y <= t.size+t.margin
}

// path projects a line and leaves out the points that fall on the same unit as
// the one before.
func (t grid) path(seq geom.Sequence) []float64 {
	out := make([]float64, 0, 2*seq.Length())
	for i := range seq.Length() {
		xy := seq.GetXY(i)
		x, y := t.project(xy.X, xy.Y)
		if n := len(out); n > 0 && i < seq.Length()-1 && math.Round(out[n-2]) == math.Round(x) && math.Round(out[n-1]) == math.Round(y) {
			continue
		}
		out = append(out, x, y)
	}
	return out
}

// clipRing cuts a ring at the four edges one after the other (Sutherland and
// Hodgman, 1974) and gives it without its closing point.
func (t grid) clipRing(ring []float64) []float64 {
	if n := len(ring); n >= 2 {
		ring = ring[:n-2]
	}
	low, high := -t.margin, t.size+t.margin
	ring = cut(ring, 0, low, 1)
	ring = cut(ring, 0, high, -1)
	ring = cut(ring, 1, low, 1)
	return cut(ring, 1, high, -1)
}

// cut keeps the part of a ring where sign * (coordinate - edge) >= 0.
func cut(ring []float64, axis int, edge, sign float64) []float64 {
	if len(ring) == 0 {
		return nil
	}
	out := make([]float64, 0, len(ring)+4)
	last := ring[len(ring)-2:]
	for i := 0; i < len(ring); i += 2 {
		p := ring[i : i+2]
		a, b := sign*(last[axis]-edge), sign*(p[axis]-edge)
		if (a < 0) != (b < 0) {
			f := a / (a - b)
			out = append(out, last[0]+f*(p[0]-last[0]), last[1]+f*(p[1]-last[1]))
		}
		if b >= 0 {
			out = append(out, p[0], p[1])
		}
		last = p
	}
	return out
}

// clipLine cuts a line into the pieces that are inside (Liang and Barsky, 1984).
func (t grid) clipLine(line []float64) [][]float64 {
	var pieces [][]float64
	low, high := -t.margin, t.size+t.margin
	joined := false
	for i := 2; i < len(line); i += 2 {
		x, y := line[i-2], line[i-1]
		dx, dy := line[i]-x, line[i+1]-y
		from, to := 0.0, 1.0
		for _, side := range [4][2]float64{{-dx, x - low}, {dx, high - x}, {-dy, y - low}, {dy, high - y}} {
			switch d, room := side[0], side[1]; {
			case d == 0 && room < 0:
				to = -1
			case d < 0:
				from = max(from, room/d)
			case d > 0:
				to = min(to, room/d)
			}
		}
		if from > to {
			joined = false
			continue
		}
		if !joined {
			pieces = append(pieces, []float64{x + from*dx, y + from*dy})
		}
		last := &pieces[len(pieces)-1]
		*last = append(*last, x+to*dx, y+to*dy)
		joined = to == 1
	}
	return pieces
}
