package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"github.com/peterstace/simplefeatures/geom"
	"golang.org/x/image/vector"
)

// tilePixels is the width of a raster tile.
const tilePixels = 256

// paint is how a collection looks.
type paint struct {
	fill, stroke color.NRGBA
	width        float64 // of its lines, or of its points, in pixels
}

var (
	sea    = color.NRGBA{0xcf, 0xe2, 0xee, 0xff}
	paints = map[string]paint{
		"countries": {color.NRGBA{0xf4, 0xf1, 0xe6, 0xff}, color.NRGBA{0x8a, 0x7f, 0x6a, 0xff}, 0.8},
		"states":    {color.NRGBA{}, color.NRGBA{0xb8, 0xae, 0x98, 0xff}, 0.6},
		"lakes":     {sea, color.NRGBA{0x8f, 0xb4, 0xcc, 0xff}, 0.5},
		"rivers":    {color.NRGBA{}, color.NRGBA{0x8f, 0xb4, 0xcc, 0xff}, 0.8},
		"cities":    {color.NRGBA{0xc0, 0x39, 0x2b, 0xff}, color.NRGBA{}, 4},
	}
)

// drawPNG paints the layers one above the other.
func drawPNG(layers []layerShapes) ([]byte, error) {
	picture := image.NewRGBA(image.Rect(0, 0, tilePixels, tilePixels))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(sea), image.Point{}, draw.Src)
	r := vector.NewRasterizer(tilePixels, tilePixels)
	for _, l := range layers {
		if len(l.shapes) > 0 {
			drawLayer(picture, r, l.shapes, paints[l.name])
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	err := encoder.Encode(&out, picture)
	return out.Bytes(), err
}

// drawLayer fills all shapes at once, and then draws all their lines at once:
// what a pass costs is the picture's size.
func drawLayer(picture draw.Image, r *vector.Rasterizer, shapes []shape, p paint) {
	pass := func(c color.NRGBA, add func(shape, []float64)) {
		if c.A == 0 {
			return
		}
		r.Reset(tilePixels, tilePixels)
		for _, s := range shapes {
			for _, path := range s.paths {
				add(s, path)
			}
		}
		r.Draw(picture, picture.Bounds(), image.NewUniform(c), image.Point{})
	}
	pass(p.fill, func(s shape, path []float64) {
		if s.kind == geom.TypePoint {
			addDot(r, path[0], path[1], p.width/2)
		}
		if s.kind == geom.TypePolygon {
			addRing(r, path)
		}
	})
	pass(p.stroke, func(s shape, path []float64) {
		for i := 2; i < len(path); i += 2 {
			addStroke(r, path[i-2], path[i-1], path[i], path[i+1], p.width/2)
		}
		if end := len(path); s.kind == geom.TypePolygon {
			addStroke(r, path[end-2], path[end-1], path[0], path[1], p.width/2)
		}
	})
}

func addRing(r *vector.Rasterizer, path []float64) {
	r.MoveTo(float32(path[0]), float32(path[1]))
	for i := 3; i < len(path); i += 2 {
		r.LineTo(float32(path[i-1]), float32(path[i]))
	}
	r.ClosePath()
}

func addDot(r *vector.Rasterizer, x, y, radius float64) {
	const corners = 12
	ring := make([]float64, 0, 2*corners)
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		ring = append(ring, x+radius*cos, y+radius*sin)
	}
	addRing(r, ring)
}

// addStroke adds a segment as the thin rectangle that a pen leaves.
func addStroke(r *vector.Rasterizer, x1, y1, x2, y2, half float64) {
	dx, dy := x2-x1, y2-y1
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	nx, ny := -dy/length*half, dx/length*half
	addRing(r, []float64{x1 + nx, y1 + ny, x2 + nx, y2 + ny, x2 - nx, y2 - ny, x1 - nx, y1 - ny})
}
