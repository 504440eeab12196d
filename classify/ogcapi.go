package classify

import (
	"math"
	"net/http"
	"strings"
)

func init() {
	register(family{name: "ogcapi", rank: rankPath, recognise: recogniseOGCAPI})
}

// ogcShape is what the path of an OGC API request names, the dearer after the
// cheaper: of a path that can be read in two ways the last one counts.
type ogcShape uint8

const (
	ogcNone ogcShape = iota
	ogcLanding
	ogcConformance
	ogcAPI
	ogcCollection
	ogcSchema
	ogcTileset
	ogcCollections
	ogcFunctions
	ogcItem
	ogcTile
	ogcItems
	ogcFunction
)

// ogcOps are the operations and what metadata is called in bases. The others
// say in words what they cost.
var ogcOps = [...]string{
	ogcLanding: "landing", ogcConformance: "conformance", ogcAPI: "api", ogcCollection: "collection", ogcSchema: "schema",
	ogcTileset: "tileset", ogcCollections: "collections", ogcFunctions: "functions",
	ogcItem: "item", ogcTile: "tile", ogcItems: "items", ogcFunction: "function",
}

// recogniseOGCAPI reads OGC API Features Part 1 to 5 and OGC API Tiles Part 1,
// under any prefix, and the functions of pg_featureserv, which have the same form.
func recogniseOGCAPI(v *view) (answer, bool) {
	shape, collection := ogcShapeOf(v)
	a := answer{Call: Call{Op: ogcOps[shape], Class: Metadata, Replayable: true}}
	if collection != "" {
		a.Collection = decodePath(collection)
	}
	switch shape {
	case ogcNone:
		return answer{}, false
	case ogcItems, ogcItem:
		if !v.read() {
			return ogcNotGET(v, a, shape), true
		}
		if shape == ogcItem {
			return ogcOneItem(v, a), true
		}
		return ogcItemsPage(v, a), true
	case ogcFunction:
		if !v.read() {
			return answer{}, false
		}
		return ogcCall(v, a), true
	case ogcTile:
		if !v.read() {
			return answer{}, false
		}
		return ogcOneTile(v, a), true
	case ogcLanding, ogcAPI:
		// "/" and "/api" are also where others answer queries: Photon, Overpass,
		// every server of OGC KVP.
		if !v.read() || !v.forced && !onlyFormat(v.Query) {
			return answer{}, false
		}
	case ogcConformance, ogcCollection, ogcSchema, ogcTileset, ogcCollections, ogcFunctions:
		if !v.read() {
			return answer{}, false
		}
	}
	a.Features, a.Basis = 1, a.Op
	return a, true
}

// ogcShapeOf finds what the path names, and the collection it names it of.
func ogcShapeOf(v *view) (shape ogcShape, collection string) {
	better := func(s ogcShape, c string) {
		if s > shape {
			shape, collection = s, c
		}
	}
	for i := range v.n {
		tail := v.seg[i+1 : v.n]
		switch {
		case named(v.seg[i], "collections"):
			switch {
			case len(tail) == 0:
				better(ogcCollections, "")
			case len(tail) == 1:
				better(ogcCollection, tail[0])
			case len(tail) == 2 && named(tail[1], "items"):
				better(ogcItems, tail[0])
			case len(tail) == 3 && tail[1] == "items":
				better(ogcItem, tail[0])
			case len(tail) == 2 && (tail[1] == "schema" || tail[1] == "queryables" || tail[1] == "sortables"):
				better(ogcSchema, tail[0])
			default:
				better(ogcTilesShape(tail, true), tail[0])
			}
		case v.seg[i] == "functions" && len(tail) == 2 && named(tail[1], "items"):
			better(ogcFunction, tail[0])
		case v.seg[i] == "functions" && len(tail) <= 1:
			better(ogcFunctions, "")
		}
	}
	if shape != ogcNone {
		return shape, collection
	}
	better(ogcTilesShape(v.seg[:max(v.n, 0)], v.forced), "")
	switch {
	case v.n == 0:
		better(ogcLanding, "")
	case named(v.last(0), "conformance"):
		better(ogcConformance, "")
	case named(v.last(0), "api"), named(v.last(0), "openapi"):
		better(ogcAPI, "")
	}
	return shape, collection
}

// ogcTilesShape reads the segments of a tile or a tileset; sure says that what
// comes before them leaves no doubt that they are of an OGC API.
func ogcTilesShape(seg []string, sure bool) ogcShape {
	n := len(seg)
	switch {
	case n >= 5 && seg[n-5] == "tiles":
		if _, ok := ogcTileAddress(seg[n-4:]); ok {
			return ogcTile
		}
	case n >= 2 && seg[n-2] == "tiles" && (sure || strings.HasSuffix(seg[n-1], "Quad")),
		n >= 2 && seg[n-2] == "tileMatrixSets":
		return ogcTileset
	case n >= 1 && (seg[n-1] == "tiles" && sure || seg[n-1] == "tileMatrixSets"):
		return ogcTileset
	}
	return ogcNone
}

// ogcTileAddress reads {tileMatrixSet}/{tileMatrix}/{row}/{col}: row before
// column, unlike XYZ. The matrix may be named like "EPSG:3857:12".
func ogcTileAddress(seg []string) (t tile, ok bool) {
	matrix := seg[1]
	if i := strings.LastIndexByte(decodePath(matrix), ':'); i >= 0 {
		matrix = decodePath(matrix)[i+1:]
	}
	var okZoom, okRow, okCol bool
	t.zoom, okZoom = small(matrix)
	t.y, okRow = small(seg[2])
	t.x, okCol = small(seg[3])
	t.grid = gridOf(seg[0])
	return t, okZoom && okRow && okCol
}

// named reports whether a segment is a name, with or without the extension that
// says in which form to answer ("items.json").
func named(segment, name string) bool {
	if !strings.HasPrefix(segment, name) {
		return false
	}
	ext := segment[len(name):]
	return ext == "" || ext[0] == '.' && strings.LastIndexByte(ext, '.') == 0
}

// onlyFormat reports whether a query asks for nothing but a form of the answer.
func onlyFormat(query string) bool {
	for q := readQuery(query); q.next(); {
		if !q.key.is("f") && !q.key.is("lang") && !q.key.is("_") {
			return false
		}
	}
	return true
}

// ogcQuery is what the query of a read of items says, in its dearest reading.
type ogcQuery struct {
	limit    float64 // as asked; -1 where nobody asked
	offset   float64
	share    float64 // of the world, in the bbox; -1 without one
	filter   Geometry
	filtered bool // by a filter
	scanned  bool // rows are read that are not answered: sorted, or filtered by what no spatial index knows
	hits     bool // only their number is asked for
	changed  bool // geometries are computed (pg_featureserv's transform)
	format   string
}

func ogcReadQuery(v *view) ogcQuery {
	q, paged := ogcQuery{limit: -1, share: -1}, false
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case key.is("f"):
			q.format = value.text()
		case key.is("lang"), key.is("crs"), key.is("bbox-crs"), key.is("filter-crs"), key.is("filter-lang"), key.is("datetime"),
			key.is("properties"), key.is("skipGeometry"), key.is("precision"), key.is("_"), key.is("apikey"), key.is("key"), key.is("token"):
		case key.is("limit"):
			asked := value.amount()
			if value == "" || asked == 0 { // absent to some, nothing to no one
				asked = float64(v.assume.Limit)
			}
			q.limit = max(q.limit, asked)
		case key.is("offset"), key.isFold("startindex"):
			if x, ok := value.number(); value != "" && (!ok || x > 0) {
				q.offset = max(q.offset, value.amount())
			}
		case key.is("bbox"):
			if share, ok := value.worldShare(); ok {
				q.share = max(q.share, share)
			} else {
				q.share = 1
			}
		case key.is("filter"):
			if value != "" {
				q.filtered = true
				g := countFilter(value)
				q.filter = q.filter.add(g)
				q.scanned = q.scanned || g.Vertices == 0
			}
		case key.is("resulttype"), key.is("resultType"):
			// Only what nobody reads otherwise makes a request cheap: keys of OGC
			// API know case, and a repeated one has to say the same.
			q.hits, paged = !paged && value.is("hits"), paged || !value.is("hits")
		case key.is("transform"):
			q.changed = q.changed || value != ""
		default: // sortby, orderby, groupby, q, or a property to filter by
			q.scanned = q.scanned || value != ""
		}
	}
	return q
}

// countFilter counts the geometry literals of a CQL2 filter, as text and as
// JSON: upstreams that are not told which guess.
func countFilter(value escaped) Geometry {
	text := value.appendText(make([]byte, 0, len(value)))
	g := CountWKT(text)
	if j := strings.TrimLeft(string(text[:min(len(text), 16)]), " \t\r\n"); j != "" && (j[0] == '{' || j[0] == '[') {
		if other := CountGeoJSON(text); other.Vertices > g.Vertices {
			g = other
		}
	}
	if g.Malformed {
		g = g.atBound(float64(len(text)))
	}
	return g
}

// rows is what is assumed of a collection's rows in a share of the world: what
// the config says of a read without limit where that is small, up to what the
// upstream sends at most where it is everything.
func (v *view) rows(share float64) float64 {
	few := float64(v.assume.Features)
	many := max(few, float64(v.assume.MaxLimit))
	if share < 0 {
		share = 1
	}
	return math.Ceil(few + (many-few)*share)
}

// ogcItemsPage prices a page of features: what is skipped is read as well, so
// offset + limit of them, and every row in the bbox where an index does not give
// their order or their choice.
func ogcItemsPage(v *view, a answer) answer {
	q := ogcReadQuery(v)
	a.Class, a.Format = Read, q.format
	var b basis
	a.Vertices = q.filter.Vertices
	if q.hits {
		a.Op = "count"
		a.Features = v.rows(q.share)
		if !v.sure.features {
			a.guess.Features = a.Features
		}
		a.Basis = q.filterBasis(b.text("count of ").number(a.Features).text(" rows").assumed(!v.sure.features)).String()
		return a
	}
	if q.filtered {
		a.Op = "filter"
	}
	if q.changed {
		a.Op, a.Class = "transform", Compute
	}
	asked := q.limit
	if asked < 0 {
		asked = float64(v.assume.Limit)
	}
	limit := min(asked, float64(v.assume.MaxLimit))
	a.Features = min(q.offset+limit, maxInput)
	v.addVertices(&a, a.Features)

	if q.offset > 0 {
		b.text("offset=").number(q.offset).text(" + ")
		a.LaterPage = true
	}
	b.text("limit=").number(limit)
	if asked > limit {
		b.text(" (the most)")
	}
	if q.limit < 0 {
		b.text(" (default)")
		if !v.sure.limit {
			a.guess.Features += limit
		}
	}
	v.timesVertices(&b)
	if rows := v.rows(q.share); q.scanned && rows > a.Features {
		if !v.sure.features {
			a.guess.Features += rows - a.Features
		}
		a.Features = rows
		b.text(", ").number(rows).text(" rows scanned").assumed(!v.sure.features)
	}
	a.Basis = q.filterBasis(&b).String()
	if a.Class == Read && (a.LaterPage || asked > downloadFeatures || fileFormat(q.format)) {
		a.Class = Download
	}
	return a
}

// downloadFeatures is how many features make a read a download.
const downloadFeatures = 10_000

// filterBasis adds what the filter's geometries are.
func (q *ogcQuery) filterBasis(b *basis) *basis {
	if q.filter.Vertices > 0 {
		b.text(", filter of ").count(q.filter.Vertices, "vertex")
	}
	return b
}

// fileFormat reports whether a form of answer is a file rather than a page.
func fileFormat(f string) bool {
	switch strings.ToLower(f) {
	case "gpkg", "geopackage", "shp", "shape-zip", "shapefile", "zip", "fgb", "flatgeobuf", "parquet", "geoparquet":
		return true
	}
	return false
}

func ogcOneItem(v *view, a answer) answer {
	a.Class, a.Features = Read, 1
	v.addVertices(&a, 1)
	var b basis
	a.Basis = v.timesVertices(b.text("1 feature")).String()
	return a
}

// ogcCall prices a function of the database (pg_featureserv): whatever it does,
// with a page of answers.
func ogcCall(v *view, a answer) answer {
	q := ogcReadQuery(v)
	asked := q.limit
	if asked < 0 {
		asked = float64(v.assume.Limit)
	}
	limit := min(asked, float64(v.assume.MaxLimit))
	a.Class, a.Format, a.unsure = Compute, q.format, true
	a.LaterPage = q.offset > 0
	a.Features = min(q.offset+limit, maxInput)
	a.Vertices = q.filter.Vertices
	v.addVertices(&a, a.Features)
	var b basis
	a.Basis = b.text("function, limit=").number(limit).String()
	return a
}

// ogcNotGET tells the queries that are posted to the items of a collection (a
// CQL2 filter in JSON, as pygeoapi has it) from what changes them.
func ogcNotGET(v *view, a answer, shape ogcShape) answer {
	a.body = true
	var g Geometry
	if !v.Body.empty() {
		g = v.count()
	}
	if v.Method == http.MethodPost && shape == ogcItems && isCQL2(v.Body.Prefix) {
		a = ogcItemsPage(v, a)
		a.body = true
		a.Vertices += g.Vertices
		if a.Op == "items" {
			a.Op = "filter"
		}
		var b basis
		a.Basis = b.text(a.Basis).text(", body of ").count(g.Vertices, "vertex").String()
		return a
	}
	a.Op, a.Class, a.Replayable = "write", Write, false
	a.Features, a.Vertices = max(1, g.Features), g.Vertices
	if v.unread() {
		a.guess.Features, a.guess.Vertices = a.Features, a.Vertices
	}
	if v.Method == http.MethodDelete && shape == ogcItems {
		a.Features = max(a.Features, v.rows(-1))
		a.guess.Features = a.Features
	}
	var b basis
	a.Basis = b.text("write of ").count(a.Features, "feature").text(", ").count(a.Vertices, "vertex").String()
	return a
}

// isCQL2 reports whether a JSON body is an expression of CQL2: its outermost
// object has an "op" and no "type", in whatever case: encoding/json, which
// pg_featureserv reads with, knows none. A name with an escape might be either.
func isCQL2(b []byte) bool {
	op, depth := false, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			start := i + 1
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth != 1 || i >= len(b) {
				continue
			}
			after := i + 1
			for after < len(b) && strings.IndexByte(" \t\r\n", b[after]) >= 0 {
				after++
			}
			if after == len(b) || b[after] != ':' {
				continue
			}
			switch key := string(b[start:i]); {
			case key == "op":
				op = true
			case strings.EqualFold(key, "type"), strings.IndexByte(key, '\\') >= 0:
				return false
			}
		}
	}
	return op
}

// ogcOneTile prices a tile of OGC API Tiles.
func ogcOneTile(v *view, a answer) answer {
	t, _ := ogcTileAddress(v.seg[v.n-4 : v.n])
	t.layers, t.size = 1, 256
	for p := readQuery(v.Query); p.next(); {
		switch {
		case p.key.is("f"):
			t.format = p.value.text()
		case p.key.is("collections"):
			t.layers = max(t.layers, p.value.items())
		}
	}
	t.raster = rasterFormat(t.format) || t.format == "" && (v.last(5) == "map" || strings.HasPrefix(v.Header.Get("Accept"), "image/"))
	return t.price(v, a)
}
