package browser_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// What the tiles show: the whole of a raster tile in red, the left half of a
// vector tile to be drawn in blue over it (see testdata/map.html).
var (
	red  = color.RGBA{R: 200, G: 30, B: 30, A: 255}
	blue = color.RGBA{R: 30, G: 30, B: 200, A: 255}
)

// tileServer answers every tile of two pyramids and lets every origin read it.
func tileServer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	switch {
	case strings.HasPrefix(r.URL.Path, "/raster/"):
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(rasterTile())
	case strings.HasPrefix(r.URL.Path, "/vector/"):
		w.Header().Set("Content-Type", "application/vnd.mapbox-vector-tile")
		_, _ = w.Write(vectorTile())
	default:
		http.NotFound(w, r)
	}
}

func rasterTile() []byte {
	tile := image.NewRGBA(image.Rect(0, 0, 256, 256))
	draw.Draw(tile, tile.Bounds(), image.NewUniform(red), image.Point{}, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, tile); err != nil {
		return nil
	}
	return out.Bytes()
}

// vectorTile is one polygon over the left half of a tile, written by hand
// after the Mapbox Vector Tile specification 2.1, sections 4.1 to 4.3.
func vectorTile() []byte {
	const extent = 4096
	const moveTo, lineTo, closePath = 1, 2, 7
	command := func(id, count uint64) uint64 { return count<<3 | id }
	point := func(x, y int64) []uint64 { return []uint64{protowire.EncodeZigZag(x), protowire.EncodeZigZag(y)} }

	var commands []uint64
	commands = append(commands, command(moveTo, 1))
	commands = append(commands, point(0, 0)...)
	commands = append(commands, command(lineTo, 3))
	commands = append(commands, point(extent/2, 0)...)
	commands = append(commands, point(0, extent)...)
	commands = append(commands, point(-extent/2, 0)...)
	commands = append(commands, command(closePath, 1))
	var geometry []byte
	for _, c := range commands {
		geometry = protowire.AppendVarint(geometry, c)
	}

	var feature []byte
	feature = protowire.AppendTag(feature, 3, protowire.VarintType)
	feature = protowire.AppendVarint(feature, 3) // POLYGON
	feature = protowire.AppendTag(feature, 4, protowire.BytesType)
	feature = protowire.AppendBytes(feature, geometry)

	var layer []byte
	layer = protowire.AppendTag(layer, 15, protowire.VarintType)
	layer = protowire.AppendVarint(layer, 2)
	layer = protowire.AppendTag(layer, 1, protowire.BytesType)
	layer = protowire.AppendString(layer, "shape")
	layer = protowire.AppendTag(layer, 2, protowire.BytesType)
	layer = protowire.AppendBytes(layer, feature)
	layer = protowire.AppendTag(layer, 5, protowire.VarintType)
	layer = protowire.AppendVarint(layer, extent)

	tile := protowire.AppendTag(nil, 3, protowire.BytesType)
	return protowire.AppendBytes(tile, layer)
}
