package demo

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"

	"golang.org/x/image/vector"

	"github.com/peterstace/simplefeatures/geom"
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
	picture := image.NewNRGBA(image.Rect(0, 0, tilePixels, tilePixels))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(sea), image.Point{}, draw.Src)
	for _, l := range layers {
		p := paints[l.name]
		for _, s := range l.shapes {
			drawShape(picture, s, p)
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	err := encoder.Encode(&out, picture)
	return out.Bytes(), err
}

func drawShape(picture *image.NRGBA, s shape, p paint) {
	r := vector.NewRasterizer(tilePixels, tilePixels)
	fill := func(c color.NRGBA) {
		r.Draw(picture, picture.Bounds(), image.NewUniform(c), image.Point{})
		r.Reset(tilePixels, tilePixels)
	}
	if s.kind == geom.TypePoint {
		for _, path := range s.paths {
			addDot(r, path[0], path[1], p.width/2)
		}
		fill(p.fill)
		return
	}
	if s.kind == geom.TypePolygon && p.fill.A > 0 {
		for _, path := range s.paths {
			addRing(r, path)
		}
		fill(p.fill)
	}
	for _, path := range s.paths {
		if s.kind == geom.TypePolygon {
			path = append(path[:len(path):len(path)], path[0], path[1])
		}
		for i := 2; i < len(path); i += 2 {
			addStroke(r, path[i-2:i+2], p.width/2)
		}
	}
	fill(p.stroke)
}

func addRing(r *vector.Rasterizer, path []float64) {
	r.MoveTo(float32(path[0]), float32(path[1]))
	for i := 2; i < len(path); i += 2 {
		r.LineTo(float32(path[i]), float32(path[i+1]))
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
func addStroke(r *vector.Rasterizer, s []float64, half float64) {
	dx, dy := s[2]-s[0], s[3]-s[1]
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	nx, ny := -dy/length*half, dx/length*half
	addRing(r, []float64{s[0] + nx, s[1] + ny, s[2] + nx, s[3] + ny, s[2] - nx, s[3] - ny, s[0] - nx, s[1] - ny})
}
