package demo

import (
	"context"
	"math"

	"github.com/peterstace/simplefeatures/geom"
)

// arcSteps is how many straight pieces stand for a full circle: 8 a quarter,
// PostGIS's default.
const arcSteps = 32

// buffer gives everything within distance of g, in g's own unit, as ST_Buffer
// does for a geometry: the union of a capsule around each of its segments, and
// of g itself where it is an area. Neighbouring capsules share the vertices of
// a circle, which keeps the union exact. distance must be above 0.
func buffer(ctx context.Context, g geom.Geometry, distance float64) (geom.Geometry, error) {
	var parts []geom.Geometry
	for _, part := range g.Dump() {
		switch part.Type() {
		case geom.TypePoint:
			if xy, ok := part.MustAsPoint().XY(); ok {
				parts = append(parts, capsule(xy, xy, distance))
			}
		case geom.TypeLineString:
			parts = append(parts, capsules(part.MustAsLineString().Coordinates(), distance)...)
		case geom.TypePolygon:
			parts = append(parts, part)
			for _, ring := range part.MustAsPolygon().DumpRings() {
				parts = append(parts, capsules(ring.Coordinates(), distance)...)
			}
		case geom.TypeGeometryCollection, geom.TypeMultiPoint, geom.TypeMultiLineString, geom.TypeMultiPolygon:
			// Dump takes these apart.
		}
	}
	return unionAll(ctx, parts)
}

func capsules(line geom.Sequence, distance float64) []geom.Geometry {
	var out []geom.Geometry
	for i := 1; i < line.Length(); i++ {
		out = append(out, capsule(line.GetXY(i-1), line.GetXY(i), distance))
	}
	return out
}

// capsule is the convex hull of two circles of that radius.
func capsule(a, b geom.XY, radius float64) geom.Geometry {
	floats := make([]float64, 0, 4*arcSteps)
	for i := range arcSteps {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / arcSteps)
		floats = append(floats, a.X+radius*cos, a.Y+radius*sin, b.X+radius*cos, b.Y+radius*sin)
	}
	return geom.NewMultiPoint(points(floats)).ConvexHull()
}

func points(floats []float64) []geom.Point {
	out := make([]geom.Point, 0, len(floats)/2)
	for i := 0; i < len(floats); i += 2 {
		out = append(out, geom.XY{X: floats[i], Y: floats[i+1]}.AsPoint())
	}
	return out
}

// unionAll merges the parts pairwise, neighbours first, so that what is merged
// stays small for as long as it can.
func unionAll(ctx context.Context, parts []geom.Geometry) (geom.Geometry, error) {
	for len(parts) > 1 {
		merged := parts[:0:0]
		for i := 0; i < len(parts); i += 2 {
			if i+1 == len(parts) {
				merged = append(merged, parts[i])
				break
			}
			g, err := geom.Union(parts[i], parts[i+1])
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return geom.Geometry{}, err
			}
			merged = append(merged, g)
		}
		parts = merged
	}
	if len(parts) == 0 {
		return geom.Geometry{}, nil
	}
	return parts[0], nil
}
