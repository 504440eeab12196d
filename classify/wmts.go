package classify

import (
	"strings"
)

func init() {
	// Its paths are of the shape that xyz reads as well.
	register(family{name: "wmts", rank: rankKVP + 10, recognise: recogniseWMTS})
}

// recogniseWMTS reads WMTS 1.0.0 (OGC 07-057r7), as KVP, and as paths below one
// that is named after it.
func recogniseWMTS(v *view) (answer, bool) {
	a := answer{Call: Call{
		Class: Metadata, Replayable: true,
		Dialect: Dialect{Service: "WMTS", Version: "1.0.0"},
	}}
	if v.speaks(serviceWMTS) {
		return v.owsDone(wmtsKVP(v, a)), true
	}
	if !v.read() {
		return answer{}, false
	}
	if a, ok := wmtsPath(v, a); ok {
		return v.owsDone(a), true
	}
	return answer{}, false
}

// wmtsRequest reads the name of an operation, in lower case.
func wmtsRequest(name []byte) (owsRequest, string) {
	switch string(name) {
	case "getcapabilities":
		return owsMetadata, "getcapabilities"
	case "getlegendgraphic": // not of the standard; some have it
		return owsLegend, "getlegendgraphic"
	case "getfeatureinfo":
		return owsInfo, "getfeatureinfo"
	case "gettile":
		return owsTile, "tile"
	}
	return owsUnknown, opUnknown
}

func wmtsKVP(v *view, a answer) answer {
	t := tile{layers: 1, size: 256, grid: gridOther, zoom: -1, x: -1, y: -1}
	request, op := owsNone, ""
	asks := func(r owsRequest, name string) {
		if r > request {
			request, op = r, name
		}
	}
	for k := v.kvp(); k.next(); {
		value := k.value
		if value == "" {
			continue
		}
		switch string(k.name()) {
		case "request":
			var buf lowered
			asks(wmtsRequest(value.lower(&buf)))
		case "layer":
			t.layer = value.firstItem()
			t.layers = max(t.layers, value.items())
		case "format":
			t.format = value.format()
		case "infoformat":
			a.Format = value.text()
		case "tilematrixset":
			t.grid = gridOf(value.text())
		case "tilematrix":
			t.deepest(matrixZoom(value.text()))
		case "tilerow":
			t.y = first(t.y, value.text())
		case "tilecol":
			t.x = first(t.x, value.text())
		case "time", "elevation":
			n, _ := value.times()
			t.layers *= n
		case "exceptions":
			a.Dialect.Exceptions = exceptionsOf(value)
		}
	}
	if v.ows.xml != nil {
		var buf lowered
		asks(wmtsRequest(escaped(v.ows.root.name).lower(&buf)))
		t.zoom = 0 // the body is not read further: the dearest tile
	}
	switch request {
	case owsMetadata:
		a.Op, a.Features, a.Basis = op, 1, op
	case owsLegend:
		a.Op, a.Cells, a.Basis = op, 400, "legend of 20 x 20 px"
	case owsInfo:
		a = wmtsInfo(v, a, t.layer)
	case owsTile:
		a = wmtsTile(v, a, t)
	case owsNone, owsUnknown, owsMap, owsFeatures, owsCoverage, owsWrite:
		a = v.owsUnknown(a)
	}
	return a
}

// deepest takes the dearer of two zooms, which is the lower.
func (t *tile) deepest(zoom int) {
	if t.zoom < 0 || zoom < t.zoom {
		t.zoom = zoom
	}
}

// first reads a row or a column, and keeps the smaller: it is within the
// pyramid where any is.
func first(at int, s string) int {
	n, ok := small(s)
	switch {
	case !ok:
		return 0
	case at < 0:
		return n
	}
	return min(at, n)
}

// matrixZoom reads the zoom from the identifier of a tile matrix: the number at
// its end ("12", "EPSG:3857:12"). An identifier that has none, or one that no
// pyramid reaches, is taken for the top of it.
func matrixZoom(id string) int {
	end := len(id)
	start := end
	for start > 0 && isDigit(id[start-1]) {
		start--
	}
	// A scale has digits at its end too.
	if start > 0 && id[start-1] == '.' {
		return 0
	}
	n := strings.TrimLeft(id[start:end], "0")
	zoom, ok := small(n)
	if !ok || zoom > maxZoom {
		return 0
	}
	return zoom
}

// wmtsTile prices a tile. WMTS has rows before columns and some templates have
// not: a tile is outside of the pyramid only if it is so in both orders.
func wmtsTile(v *view, a answer, t tile) answer {
	t.zoom, t.x, t.y = max(t.zoom, 0), max(t.x, 0), max(t.y, 0)
	t.raster = t.format == "" || rasterFormat(t.format) || !vectorFormat(t.format)
	turned := t
	turned.x, turned.y = t.y, t.x
	if t.outside() && !turned.outside() {
		t = turned
	}
	return t.price(v, a)
}

func vectorFormat(f string) bool {
	for _, kind := range [...]string{"mvt", "pbf", "vector-tile", "json", "utfgrid"} {
		if containsFold(f, kind) {
			return true
		}
	}
	return false
}

// wmtsInfo prices a GetFeatureInfo: the feature at one pixel of a tile.
func wmtsInfo(v *view, a answer, layer string) answer {
	a.Op, a.Class, a.Layer = "getfeatureinfo", Map, layer
	a.Features = 1
	v.addVertices(&a, 1)
	a.Basis = "1 feature at a pixel"
	return a
}

// wmtsPath reads the REST form: .../wmts/.../WMTSCapabilities.xml, and
// .../wmts/{layer}/.../{matrix}/{row}/{col}.{ext}, with /{j}/{i}.{ext} behind it
// for a GetFeatureInfo. The template is each server's own, but ends like that.
func wmtsPath(v *view, a answer) (answer, bool) {
	at := -1
	for i := range max(v.n, 0) {
		if strings.EqualFold(v.seg[i], "wmts") {
			at = i
			break
		}
	}
	if at < 0 && !v.forced {
		return answer{}, false
	}
	rest := v.seg[at+1 : max(v.n, 0)]
	if len(rest) == 0 {
		return answer{}, false
	}
	if strings.EqualFold(rest[len(rest)-1], "WMTSCapabilities.xml") {
		a.Op, a.Features, a.Basis = "getcapabilities", 1, "getcapabilities"
		return a, true
	}
	name, scale, ext, ok := scaled(rest[len(rest)-1])
	if !ok {
		return answer{}, false
	}
	var numbers [5]int // from the end of the path
	n := 0
	for ; n < len(numbers) && n < len(rest); n++ {
		segment := rest[len(rest)-1-n]
		if n == 0 {
			segment = name
		}
		if numbers[n], ok = small(segment); ok {
			continue
		}
		// The matrix may be named like "EPSG:3857:12".
		if text := decodePath(segment); n >= 2 && strings.LastIndexByte(text, ':') > 0 && isDigit(text[len(text)-1]) {
			numbers[n] = matrixZoom(text)
			n++
		}
		break
	}
	if n < 3 || len(rest) < 4 {
		return answer{}, false
	}
	head := rest[:len(rest)-n]
	if len(head) > 1 && isVersion(head[0]) {
		head = head[1:]
	}
	t := tile{layers: 1, size: 256 * scale, format: ext, grid: gridOther}
	if len(head) > 0 {
		t.layer = decodePath(head[0])
		t.grid = gridOf(decodePath(head[len(head)-1]))
	}
	if n == len(numbers) && !rasterFormat(ext) {
		return wmtsInfo(v, a, t.layer), true
	}
	t.zoom, t.y, t.x = numbers[2], numbers[1], numbers[0]
	return wmtsTile(v, a, t), true
}

// isVersion recognises "1.0.0".
func isVersion(s string) bool {
	return len(s) == 5 && isDigit(s[0]) && s[1] == '.' && isDigit(s[2]) && s[3] == '.' && isDigit(s[4])
}
