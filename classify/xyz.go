package classify

import (
	"math"
	"net/http"
	"strings"
)

func init() {
	// Three numbers at the end of a path are the least that any family is
	// recognised by: it is asked last.
	register(family{name: "xyz", rank: rankPath + 90, recognise: recogniseXYZ})
}

// recogniseXYZ reads the paths of tile servers (pg_tileserv, martin, tegola,
// tileserver-gl, titiler's tiles, TMS), of what they serve beside tiles, and of
// cloud-optimised files.
func recogniseXYZ(v *view) (answer, bool) {
	a := answer{Call: Call{Class: Metadata, Replayable: true}}
	if v.last(2) == "static" {
		if out, ok := xyzStatic(v, a); ok {
			return out, true
		}
	}
	if !v.read() || v.n < 1 {
		return answer{}, false
	}
	if t, ok := xyzTile(v); ok {
		return t.price(v, a), true
	}
	// With a query that is no signature the file may be computed, and a range
	// of one byte has it computed whole: that is not recognised.
	if cloudFile(v.last(0)) && onlySignature(v.Query) {
		return xyzRange(v, a), true
	}
	if op := xyzMetadata(v); op != "" {
		a.Op, a.Features, a.Basis = op, 1, op
		return a, true
	}
	return answer{}, false
}

// tile is one tile of a pyramid.
type tile struct {
	zoom, x, y int
	grid       grid
	layer      string
	layers     float64 // drawn into it
	format     string
	raster     bool
	size       float64 // pixels of a side
	bands      float64
	features   float64 // at most, of a layer; 0 is what tile servers send by default
	grown      float64 // area read, as a multiple of what tile servers read by default
	detail     float64 // vertices kept, as a multiple of the default
	filter     float64 // vertices of a filter
}

const (
	// maxZoom is the deepest that any tile server goes (pg_tileserv's 32).
	maxZoom = 32
	// tileFeatures is how many features of a layer a vector tile holds at most
	// (pg_tileserv's MaxFeaturesPerTile; the others have no limit or a higher one).
	tileFeatures = 50_000
	// fullZoom is where the assumed number of features holds.
	fullZoom = 12
)

// grid is how many tiles a pyramid has at its top.
type grid uint8

const (
	gridSquare grid = iota // one: web mercator, and the sets named "Quad"
	gridWide               // two side by side: those in degrees
	gridOther              // some national one: nobody knows
)

// gridOf guesses the grid from the name of a tile matrix set, or of a layer
// that may have it in its name.
func gridOf(name string) grid {
	switch {
	case strings.Contains(name, "CRS84"), strings.Contains(name, "4326"):
		return gridWide
	case strings.Contains(name, "3857"), strings.Contains(name, "900913"), strings.Contains(name, "Mercator"), strings.Contains(name, "GoogleMaps"):
		return gridSquare
	}
	return gridOther
}

// outside reports whether there is surely no such tile.
func (t *tile) outside() bool {
	if t.zoom > maxZoom {
		return true
	}
	rows := math.Exp2(float64(t.zoom))
	cols := rows
	switch t.grid {
	case gridSquare:
	case gridWide:
		cols *= 2
	case gridOther:
		return false
	}
	return float64(t.x) >= cols || float64(t.y) >= rows
}

// price prices a tile. Nothing in the request says how many features are in
// it. Each zoom level has a quarter of the area, but data is clustered and
// servers thin it out at low zooms: half as many features for each level.
func (t *tile) price(v *view, a answer) answer {
	a.Op, a.Class, a.Layer, a.Format = "tile", Tile, t.layer, t.format
	a.Native = NativeVectorTile
	if t.raster {
		a.Native = NativeRasterTile
	}
	var b basis
	b.text("tile z=").number(float64(t.zoom))
	if t.outside() {
		a.Basis = b.text(", outside the pyramid").String()
		return a
	}
	rows := math.Ceil(float64(v.assume.Features) * math.Exp2(float64(fullZoom-t.zoom)) * max(1, t.grown))
	a.Features = t.layers * min(rows, max(tileFeatures, t.features))
	a.guess.Features = a.Features
	vertices := a.Features * float64(v.assume.Vertices) * max(1, t.detail)
	a.Vertices, a.guess.Vertices = vertices+t.filter, vertices
	if t.raster {
		a.Cells = t.size * t.size * max(1, t.bands)
		if a.Cells > 512*512 {
			a.Class = Map
		}
		b.text(", ").number(t.size).text(" px")
	}
	if t.layers > 1 {
		b.text(", ").number(t.layers).text(" layers")
	}
	if t.grown > 1 {
		b.text(", buffer")
	}
	a.Basis = b.String()
	return a
}

// xyzTile reads .../{layers}/[{size}/]{z}/{x}/{y}[@{n}x][.{ext}].
func xyzTile(v *view) (t tile, ok bool) {
	if v.n < 3 {
		return tile{}, false
	}
	t = tile{layers: 1, size: 256}
	y, scale, ext, ok := scaled(v.last(0))
	if !ok {
		return tile{}, false
	}
	var okX, okY, okZ bool
	t.y, okY = small(y)
	t.x, okX = small(v.last(1))
	t.zoom, okZ = small(v.last(2))
	if !okX || !okY || !okZ {
		return tile{}, false
	}
	t.format = ext
	t.layer = v.last(3)
	if px, isSize := small(t.layer); isSize && v.n > 4 && (px == 256 || px == 512 || px == 1024 || px == 2048) {
		t.size, t.layer = float64(px), v.last(4)
	}
	t.layer = decodePath(t.layer)
	t.layers = float64(1 + strings.Count(t.layer, ","))
	// XYZ is a square pyramid, unless the path names some other reference system.
	if t.grid = gridOf(t.layer); t.grid == gridOther && !containsFold(t.layer, "epsg") {
		t.grid = gridSquare
	}
	t.raster = rasterFormat(ext) || ext == "" && strings.HasPrefix(v.Header.Get("Accept"), "image/")
	// A date has the shape of a tile too.
	if t.outside() && ext == "" && !v.forced {
		return tile{}, false
	}
	t.readQuery(v.Query)
	t.size *= scale
	return t, true
}

// readQuery reads what clients may change of a tile: the limit, buffer and
// resolution of pg_tileserv, which clamps none of them and knows no case in
// their names, and the size and bands of titiler. What makes a tile smaller is
// not believed: other servers ignore these.
func (t *tile) readQuery(query string) {
	const extent, margin = 4096, 256
	buffer, coarse, fine := float64(margin), float64(extent), float64(extent)
	bands, assets := 0.0, 0.0
	for p := readQuery(query); p.next(); {
		if p.value == "" {
			continue
		}
		switch key, value := p.key, p.value; {
		case key.isFold("limit"):
			if limit := value.amount(); limit > 0 {
				t.features = max(t.features, limit)
			} else { // limit=0 takes the limit off
				t.features = maxInput
			}
		case key.isFold("buffer"):
			buffer = max(buffer, value.amount())
		case key.isFold("resolution"):
			r := value.amount()
			fine = max(fine, r)
			coarse = max(1, min(coarse, r))
		case key.isFold("filter"):
			t.filter += countFilter(value).Vertices
		case key.isFold("tilesize"):
			t.size = max(t.size, value.amount())
		case key.is("bidx"):
			bands += value.items()
		case key.is("assets"):
			assets += value.items()
		}
	}
	side := (1 + 2*buffer/coarse) / (1 + 2.0*margin/extent)
	t.grown, t.detail = side*side, fine/extent
	t.bands = max(1, bands) * max(1, assets)
}

// scaled cuts "5384@2x.pbf" into its name, scale and extension.
func scaled(segment string) (name string, scale float64, ext string, ok bool) {
	name, scale = segment, 1
	at := strings.IndexByte(name, '@')
	if dot := strings.IndexByte(name[max(at, 0):], '.'); dot >= 0 {
		dot += max(at, 0)
		// The point of a scale like @1.5x is none of an extension.
		if x := strings.IndexByte(name[dot:], 'x'); at >= 0 && x > 0 && digits(name[dot+1:]) == x-1 {
			if next := strings.IndexByte(name[dot+1:], '.'); next >= 0 {
				dot += 1 + next
			} else {
				dot = len(name)
			}
		}
		if dot < len(name) {
			name, ext = name[:dot], name[dot+1:]
		}
	}
	if at >= 0 {
		factor, isScale := strings.CutSuffix(name[at+1:], "x")
		if scale, ok = parseNumber(factor); !isScale || !ok || scale <= 0 {
			return "", 0, "", false
		}
		name = name[:at]
	}
	for i := range len(ext) {
		if !isDigit(ext[i]) && !isLetter(ext[i]) && ext[i] != '.' && ext[i] != '-' {
			return "", 0, "", false
		}
	}
	return name, max(1, scale), ext, len(ext) <= 16
}

func rasterFormat(ext string) bool {
	switch strings.TrimPrefix(strings.ToLower(ext), "image/") {
	case "png", "png8", "png24", "png32", "jpg", "jpeg", "jpgpng", "webp", "avif", "gif", "tif", "tiff", "jp2", "npy":
		return true
	}
	return false
}

// xyzStatic prices a static map: .../static/{camera}/{width}x{height}[@{n}x][.{ext}],
// which tileserver-gl and martin take with POST too. What is drawn on it is in
// the query (path, of points or an encoded polyline, and marker) or the body.
func xyzStatic(v *view, a answer) (answer, bool) {
	if !v.read() && v.Method != http.MethodPost {
		return answer{}, false
	}
	size, scale, ext, ok := scaled(v.last(0))
	w, h, isSize := strings.Cut(size, "x")
	width, okW := small(w)
	height, okH := small(h)
	if !ok || !isSize || !okW || !okH {
		return answer{}, false
	}
	a.Op, a.Class, a.Format, a.Layer, a.Native = "static", Map, ext, decodePath(v.last(3)), NativeRasterTile
	a.Cells = float64(width) * float64(height) * scale * scale
	for p := readQuery(v.Query); p.next(); {
		if p.key.is("path") || p.key.is("marker") {
			// A vertex of a polyline has two characters or more.
			a.Vertices += float64(len(p.value)/2 + 1)
		}
	}
	if !v.read() {
		a.body = true
		if !v.Body.empty() {
			n := v.count().Vertices
			a.Vertices += n
			if v.unread() {
				a.guess.Vertices = n
			}
		}
	}
	var b basis
	b.number(float64(width)).text(" x ").number(float64(height))
	if scale != 1 {
		b.text(" @").number(scale).text("x")
	}
	a.Basis = b.text(" px").String()
	return a, true
}

// cloudFile reports whether a segment names a file that is read in ranges.
func cloudFile(segment string) bool {
	dot := strings.LastIndexByte(segment, '.')
	if dot < 0 {
		return false
	}
	switch strings.ToLower(segment[dot+1:]) {
	case "pmtiles", "tif", "tiff", "fgb", "parquet", "geoparquet":
		return true
	}
	return false
}

// wholeFile is what a file is taken to hold where the request does not say how
// much of it is wanted.
const wholeFile = 100 << 20

// xyzRange prices a read of a file by its bytes.
func xyzRange(v *view, a answer) answer {
	a.Op, a.Class = "range", Range
	a.Format = v.last(0)[strings.LastIndexByte(v.last(0), '.')+1:]
	var b basis
	if n, ok := rangeBytes(v.Header["Range"]); ok {
		a.Bytes = n
		b.text("range of ").count(n, "byte")
	} else {
		a.Bytes, a.guess.Bytes = wholeFile, wholeFile
		b.text("whole file (assumed 100 MiB)")
	}
	a.Basis = b.String()
	return a
}

// rangeBytes sums the ranges of a Range header (RFC 9110 14.2), overlapping
// ones as often as they are asked for. False is no header, one that is not
// understood, which servers ignore, or a range without an end.
func rangeBytes(header []string) (n float64, ok bool) {
	if len(header) != 1 {
		return 0, false
	}
	ranges, isBytes := strings.CutPrefix(header[0], "bytes=")
	if !isBytes {
		return 0, false
	}
	for one := range strings.SplitSeq(ranges, ",") {
		from, to, _ := strings.Cut(strings.TrimSpace(one), "-")
		if len(from) > 18 || len(to) > 18 || digits(from) != len(from) || digits(to) != len(to) || to == "" {
			return 0, false
		}
		end, _ := parseNumber(to)
		if from == "" { // the last bytes
			n += end
			continue
		}
		start, _ := parseNumber(from)
		if end < start {
			return 0, false
		}
		n += end - start + 1
	}
	return n, true
}

// onlySignature reports whether a query holds nothing but what an object store
// signs its URLs with.
func onlySignature(query string) bool {
	for p := readQuery(query); p.next(); {
		key := string(p.key)
		switch {
		case strings.HasPrefix(key, "X-Amz-"), strings.HasPrefix(key, "X-Goog-"):
		case len(key) <= 3 && strings.HasPrefix(key, "s"), key == "versionId": // Azure's sv, sig, ...
		case key == "Expires", key == "Signature", key == "Key-Pair-Id", key == "Policy", key == "AWSAccessKeyId", key == "GoogleAccessId":
		default:
			return false
		}
	}
	return true
}

// xyzMetadata names what a path asks for beside tiles, "" where it is nothing of
// the kind. Where the config does not name the family, only what can hardly be
// anything else is.
func xyzMetadata(v *view) string {
	name, parent := v.last(0), v.last(1)
	stem, isJSON := strings.CutSuffix(name, ".json")
	switch {
	case isGlyphs(v):
		return "glyphs"
	case parent == "sprite", parent == "sprites", strings.HasPrefix(name, "sprite") && (isJSON || strings.HasSuffix(name, ".png")):
		return "sprite"
	case name == "style.json", parent == "style", parent == "styles" && isJSON:
		return "style"
	case name == "styles.json", name == "fonts.json":
		return "style"
	case !isJSON:
		return ""
	case v.forced, stem == "tile", stem == "tiles", stem == "tilejson", stem == "index", stem == "catalog":
		return "tilejson"
	case parent == "data", parent == "tiles", parent == "maps", parent == "services", parent == "capabilities":
		return "tilejson"
	case v.Query == "" && strings.IndexByte(stem, '.') > 0: // schema.table, by pg_tileserv
		return "tilejson"
	}
	return ""
}

// isGlyphs recognises fonts/{stack}/{from}-{to}.pbf.
func isGlyphs(v *view) bool {
	if v.last(2) != "fonts" && v.last(2) != "font" && v.last(2) != "glyphs" {
		return false
	}
	span, ok := strings.CutSuffix(v.last(0), ".pbf")
	from, to, isSpan := strings.Cut(span, "-")
	return ok && isSpan && from != "" && digits(from) == len(from) && digits(to) == len(to)
}
