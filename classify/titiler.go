package classify

import (
	"math"
	"net/http"
	"strings"
)

func init() {
	// Before xyz, which has its tiles and TileJSON where the config does not say
	// whose they are.
	register(family{name: "titiler", rank: rankPath + 80, recognise: recogniseTitiler})
}

// titilerImage is what a request reads of an image.
type titilerImage struct {
	width, height float64 // of the picture, where they are asked for
	longest       float64 // of its sides, where that is asked for; 0 without a bound
	bands, assets float64
	cover         float64 // how much finer than a pixel polygons are drawn
	square        float64 // the side of a tile, with its buffer
	format        string
}

const (
	titilerPreview = 1024 // pixels of a side, the default of previews and statistics
	titilerBlock   = 512  // what is read of a file for a point: one block of it
	titilerCover   = 10   // the default of cover_scale
	// titilerMetres is the size of a pixel that is assumed where a part of an image
	// is wanted in all its detail: that of Sentinel-2.
	titilerMetres = 10
	degreeMetres  = 111_320
	// mosaicAssets is how many files of a mosaic are assumed to lie in a window.
	mosaicAssets = 4
)

// titilerMetadata are the last segments that only read the header of a file, or
// nothing.
var titilerMetadata = map[string]bool{
	"info": true, "info.geojson": true, "bounds": true, "assets": true, "available_assets": true, "validate": true,
}

// recogniseTitiler reads the paths of titiler (cog, stac and mosaicjson, under any
// prefix): the query's url= says which image, and the path what of it. A part of
// an image or of its statistics is computed in all its detail where nobody says
// otherwise, and that, not the picture, is what it costs.
func recogniseTitiler(v *view) (answer, bool) {
	if v.n < 1 {
		return answer{}, false
	}
	name, ext := titilerName(v.last(0))
	word, arg := name, ""
	if isTitilerWord(v.last(1)) {
		word, arg = v.last(1), name
	}
	if _, _, isSize := titilerSize(name); isSize && isTitilerWord(v.last(2)) {
		word, arg = v.last(2), v.last(1)
	}
	meta := titilerMetadata[v.last(0)] || v.forced && (v.last(0) == "tilejson.json" || v.last(0) == "WMTSCapabilities.xml" || v.last(0) == "viewer")
	tiled := v.forced && v.n >= 4 && v.last(4) == "tiles"
	if !isTitilerWord(word) && !meta && !tiled || !titilerSure(v) {
		return answer{}, false
	}
	post := v.Method == http.MethodPost
	if !v.read() && (!post || word != "feature" && word != "statistics") {
		return answer{}, false
	}
	a := answer{Call: Call{Class: Metadata, Replayable: true}, body: post}
	q := titilerQuery(v)
	q.format = ext
	switch {
	case tiled:
		return q.tile(v, a)
	case word == "point":
		a.Op, a.Class = "point", Read
		a.Cells = titilerBlock * titilerBlock * q.bands * q.assets
		var b basis
		a.Basis = b.text("one block of ").count(q.assets, "asset").String()
	case word == "preview":
		q.sized(arg)
		return q.picture(a, "preview", q.sides(titilerPreview)), true
	case word == "bbox":
		box, ok := degreesOf(decodePath(arg))
		if !ok {
			box = everywhere
		}
		q.sized(name)
		return q.part(a, box), true
	case word == "feature":
		q.sized(name)
		box := BoundsBody(v.Body, v.Header.Get("Content-Encoding"), v.Header.Get("Content-Type"))
		return q.body(v, q.part(a, box), box), true
	case word == "statistics":
		a.Class = Compute
		if !post {
			return q.picture(a, "statistics", q.sides(titilerPreview)), true
		}
		box := BoundsBody(v.Body, v.Header.Get("Content-Encoding"), v.Header.Get("Content-Type"))
		a = q.part(a, box)
		a.Op, a.Class = "statistics", Compute
		a.Cells *= 1 + q.cover*q.cover/q.bands
		if a.guess.Cells > 0 {
			a.guess.Cells = a.Cells
		}
		return q.body(v, a, box), true
	default:
		a.Op, a.Features = "info", 1
		a.Basis = "info"
	}
	return a, true
}

func isTitilerWord(s string) bool {
	switch s {
	case "point", "preview", "bbox", "feature", "statistics":
		return true
	}
	return false
}

// titilerSure reports whether it is titiler that is asked: others have paths that
// end in "feature" or "info" as well, and some of theirs write.
func titilerSure(v *view) bool {
	if v.forced {
		return true
	}
	router := false
	for i := range v.n - 1 {
		router = router || v.seg[i] == "cog" || v.seg[i] == "stac" || v.seg[i] == "mosaicjson"
	}
	if !router {
		return false
	}
	for p := readQuery(v.Query); p.next(); {
		if p.key.is("url") && p.value != "" {
			return true
		}
	}
	return false
}

// titilerName cuts the extension off a segment. A number's decimals are none.
func titilerName(segment string) (name, ext string) {
	if dot := strings.LastIndexByte(segment, '.'); dot > 0 && dot+1 < len(segment) && isLetter(segment[dot+1]) {
		return segment[:dot], segment[dot+1:]
	}
	return segment, ""
}

// titilerSize reads "{width}x{height}".
func titilerSize(s string) (width, height float64, ok bool) {
	w, h, ok := strings.Cut(s, "x")
	if !ok || w == "" || h == "" || digits(w) != len(w) || digits(h) != len(h) {
		return 0, 0, false
	}
	return escaped(w).amount(), escaped(h).amount(), true
}

// sized takes the size of a picture from a segment, if it is one.
func (q *titilerImage) sized(segment string) {
	if w, h, ok := titilerSize(segment); ok {
		q.width, q.height = max(q.width, w), max(q.height, h)
	}
}

func titilerQuery(v *view) titilerImage {
	q := titilerImage{cover: titilerCover, square: 256}
	bands, expression, buffer := 0.0, 0.0, 0.0
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("max_size"):
			q.longest = max(q.longest, value.amount())
		case key.is("width"):
			q.width = max(q.width, value.amount())
		case key.is("height"):
			q.height = max(q.height, value.amount())
		case key.is("tilesize"):
			q.square = max(q.square, value.amount())
		case key.is("buffer"), key.is("padding"):
			buffer += value.amount()
		case key.is("cover_scale"):
			q.cover = max(q.cover, value.amount())
		case key.is("bidx"), key.is("asset_bidx"), key.is("bands"):
			bands += value.items()
		case key.is("assets"):
			q.assets += value.items()
		case key.is("expression"):
			expression += value.operands()
		}
	}
	q.square += 2 * buffer
	q.bands, q.assets = max(1, bands, expression), max(1, q.assets)
	for i := range v.n {
		if v.seg[i] == "mosaicjson" || v.seg[i] == "mosaic" || v.seg[i] == "searches" {
			q.assets *= mosaicAssets
			break
		}
	}
	return q
}

// operands counts the names in an arithmetic expression: "(b1-b2)/(b1+b2)" has
// four, each a band that is read.
func (e escaped) operands() float64 {
	n, inName := 0.0, false
	for i := 0; i < len(e); {
		var c byte
		c, i = e.at(i)
		name := isLetter(c) || isDigit(c) || c == '_'
		if name && !inName {
			n++
		}
		inName = name
	}
	return n
}

// sides are the pixels of a picture that is as large as asked, else as the default.
func (q *titilerImage) sides(usual float64) float64 {
	switch {
	case q.width > 0 && q.height > 0:
		return min(q.width*q.height, maxInput)
	case q.width > 0 || q.height > 0:
		side := max(q.width, q.height, q.longest)
		return min(side*side, maxInput)
	case q.longest > 0:
		return min(q.longest*q.longest, maxInput)
	}
	return usual * usual
}

// picture prices a picture of so many pixels.
func (q *titilerImage) picture(a answer, op string, pixels float64) answer {
	a.Op, a.Format = op, q.format
	if a.Class == Metadata {
		a.Class, a.Native = Map, NativeRasterTile
	}
	a.Cells = min(pixels, maxInput) * q.bands * q.assets
	var b basis
	a.Basis = q.words(b.number(pixels).text(" px")).String()
	return a
}

func (q *titilerImage) words(b *basis) *basis {
	if q.bands > 1 {
		b.text(" x ").number(q.bands).text(" bands")
	}
	if q.assets > 1 {
		b.text(" x ").number(q.assets).text(" assets")
	}
	return b
}

// part prices a part of an image: as many pixels as are asked for, else all that
// are assumed to be in it.
func (q *titilerImage) part(a answer, box Bounds) answer {
	a.Window, a.SRID = box.degrees()
	if q.width > 0 || q.height > 0 || q.longest > 0 {
		return q.picture(a, "crop", q.sides(0))
	}
	pixels := box.pixels()
	a = q.picture(a, "crop", pixels)
	a.guess.Cells = a.Cells
	a.Class = Download // of the data, as a coverage is
	var b basis
	a.Basis = q.words(b.text("full detail, ").number(pixels).text(" px").assumed(true)).String()
	return a
}

// body adds the polygons of a body, each of which is a part of its own within
// their common box.
func (q *titilerImage) body(v *view, a answer, box Bounds) answer {
	g := v.count()
	a.Vertices = g.Vertices
	if a.Op == "crop" && g.Features > 1 {
		g.Features = 1 // a collection is refused
	}
	if v.unread() || g.Malformed || box.Empty() {
		a.Cells, a.guess.Cells, a.guess.Vertices = maxInput, maxInput, a.Vertices
	} else if q.width > 0 || q.height > 0 || q.longest > 0 {
		a.Cells *= max(1, g.Features)
	}
	var b basis
	a.Basis = b.text(a.Basis).text(", body of ").count(g.Vertices, "vertex").String()
	return a
}

// tile prices a tile: of an image, so it has no features.
func (q *titilerImage) tile(v *view, a answer) (answer, bool) {
	y, scale, ext, ok := scaled(v.last(0))
	_, okY := small(y)
	_, okX := small(v.last(1))
	zoom, okZ := small(v.last(2))
	if !ok || !okY || !okX || !okZ {
		return answer{}, false
	}
	side := q.square * scale
	q.format = ext
	a = q.picture(a, "tile", side*side)
	if side <= 512 {
		a.Class = Tile
	}
	var b basis
	a.Basis = q.words(b.text("tile z=").number(float64(zoom)).text(", ").number(side).text(" px")).String()
	return a, true
}

// degreesOf reads "west,south,east,north".
func degreesOf(s string) (box Bounds, ok bool) {
	var n [4]float64
	for i := range n {
		one, rest, more := strings.Cut(s, ",")
		if n[i], ok = parseNumber(one); !ok || more != (i < 3) {
			return Bounds{}, false
		}
		s = rest
	}
	return Bounds{min(n[0], n[2]), min(n[1], n[3]), max(n[0], n[2]), max(n[1], n[3]), true}, true
}

// isDegrees reports whether the bounds can be longitudes and latitudes.
func (b Bounds) isDegrees() bool {
	return b.some && b.MinX >= -180 && b.MaxX <= 180 && b.MinY >= -90 && b.MaxY <= 90
}

// degrees gives the window of bounds that are longitudes and latitudes.
func (b Bounds) degrees() (Bounds, int) {
	if !b.isDegrees() {
		return Bounds{}, 0
	}
	return b, 4326
}

// pixels is how many pixels of titilerMetres a box has. Outside of degrees the
// numbers are metres, or whatever: at least what degrees of that size have.
func (b Bounds) pixels() float64 {
	width, height := b.MaxX-b.MinX, b.MaxY-b.MinY
	if b.isDegrees() {
		width, height = width*degreeMetres, height*degreeMetres
	} else {
		width, height = max(width, 180*degreeMetres), max(height, 90*degreeMetres)
	}
	return min(max(1, math.Ceil(width/titilerMetres)*math.Ceil(height/titilerMetres)), maxInput)
}
