package classify

import (
	"bytes"
	"math"
	"net/http"
	"strings"
)

func init() {
	register(family{name: "arcgis", rank: rankPath, recognise: recogniseArcGIS})
}

const (
	arcgisPage    = 2000 // features that a query sends where nobody says how many
	arcgisSide    = 400  // pixels of a picture's side, where nobody says
	arcgisLayers  = 10   // of a map, where all are meant
	arcgisSamples = 1e6  // cells of a window of an image, where nothing says how many
)

// arcgisAsk is what a request says in its query and its form, in its dearest
// reading.
type arcgisAsk struct {
	where, order bool // rows are read that are not answered
	// What is left away, where nothing says otherwise as well.
	count, idsOnly, stats, bare bool
	full                        bool    // nothing of that is sure
	ids                         float64 // at most; 0 for any
	limit, offset               float64 // limit is -1 where nobody says
	share                       float64 // of the world; -1 without a window
	geometry                    Geometry
	width, height               float64
	layers, bands               float64
	allLayers                   bool
	records, values             float64 // in a list: of addresses, of stops
	format                      string
	opaque                      bool // part of the request is not read
}

// recogniseArcGIS reads ArcGIS REST:
// rest/services/{folder}/{service}/{kind}Server/[{layer}/]{operation}, by GET or
// with a form, which say the same.
func recogniseArcGIS(v *view) (answer, bool) {
	kind, at := "", -1
	services := v.forced
	for i := range max(0, v.n) {
		services = services || v.seg[i] == "services" && i > 0 && v.seg[i-1] == "rest"
		if services && strings.HasSuffix(v.seg[i], "Server") && len(v.seg[i]) > len("Server") {
			kind, at = v.seg[i], i
		}
	}
	a := answer{Call: Call{Class: Metadata, Replayable: true}}
	if kind == "" {
		if services && v.read() && v.n > 1 && v.n <= 8 && (v.last(0) == "services" || v.last(1) == "services") {
			a.Op, a.Features, a.Basis = "service", 1, "services"
			return a, true
		}
		return answer{}, false
	}
	if at > 0 {
		a.Collection = decodePath(v.seg[at-1])
	}
	tail := v.seg[at+1 : v.n]
	switch {
	case kind == "WMSServer", kind == "WFSServer", kind == "WCSServer", len(tail) > 0 && tail[0] == "WMTS":
		return answer{}, false // these speak OGC
	}
	for len(tail) > 0 && tail[0] != "" && digits(tail[0]) == len(tail[0]) { // a layer, a feature
		a.Layer, tail = tail[0], tail[1:]
	}
	if !v.read() {
		if v.Method != http.MethodPost {
			return arcgisWrite(v, a, v.last(0)), true
		}
		a.body = true
	}
	if len(tail) == 0 {
		a.Op, a.Features, a.Basis = "service", 1, "service"
		return a, true
	}
	op := tail[len(tail)-1]
	if len(tail) >= 4 && tail[len(tail)-4] == "tile" {
		return arcgisTile(v, a, tail[len(tail)-3:], kind)
	}
	q := arcgisRead(v)
	a.unsure = q.opaque
	switch kind {
	case "GPServer":
		return q.task(v, a, tail)
	case "GeometryServer":
		return q.overlay(a, op), true
	case "GeocodeServer":
		if out, ok := q.geocode(a, op); ok {
			return out, true
		}
	case "NAServer":
		if out, ok := q.network(v, a, op); ok {
			return out, true
		}
	case "ImageServer":
		if out, ok := q.image(a, op); ok {
			return out, true
		}
	}
	switch op {
	case "query", "queryRelatedRecords", "queryTopFeatures", "queryAttachments", "queryBins", "queryAnalytic":
		return q.query(v, a), true
	case "export", "find", "identify":
		return q.drawing(v, a, op), true
	case "legend", "layers", "queryDomains", "info", "iteminfo", "metadata", "keyProperties", "tables", "relationships", "queryLegends", "rasterFunctionInfos":
		a.Op, a.Features, a.Basis = "service", 1, op
		return a, true
	}
	if arcgisWrites[op] {
		return arcgisWrite(v, a, op), true
	}
	a = v.owsUnknown(a)
	a.body = a.body || !v.read()
	return a, true
}

// arcgisWrites are the operations that change something, or may.
var arcgisWrites = map[string]bool{
	"applyEdits": true, "addFeatures": true, "updateFeatures": true, "deleteFeatures": true, "calculate": true, "append": true,
	"uploads": true, "upload": true, "addAttachment": true, "updateAttachment": true, "deleteAttachments": true,
	"createReplica": true, "synchronizeReplica": true, "unRegisterReplica": true, "truncate": true, "add": true, "update": true, "delete": true,
	"refresh": true, "cancel": true, "applyTextureEdits": true, "addToDefinition": true, "updateDefinition": true, "deleteFromDefinition": true,
}

// arcgisWrite prices a change by the features in it.
func arcgisWrite(v *view, a answer, op string) answer {
	a.Op, a.Class, a.Replayable, a.body = "write", Write, false, !v.read()
	q := arcgisRead(v)
	g := q.geometry
	if q.opaque {
		other := v.count()
		g.Features, g.Vertices = max(g.Features, other.Features), max(g.Vertices, other.Vertices)
	}
	a.Features, a.Vertices = max(1, g.Features), g.Vertices
	if op == "deleteFeatures" || op == "calculate" || op == "truncate" {
		a.Features = max(a.Features, v.layerRows(-1))
		a.guess.Features = a.Features
	}
	var b basis
	a.Basis = b.text(op[:min(len(op), 32)]).text(" of ").count(a.Features, "feature").text(", ").count(a.Vertices, "vertex").String()
	return a
}

// arcgisRead reads the query and the form.
func arcgisRead(v *view) arcgisAsk {
	q := arcgisAsk{limit: -1, share: -1}
	o := v.readOWS()
	q.opaque = o.opaque || o.cut || o.xml != nil
	nobare, nocount, noids := false, false, false
	for p := v.kvp(); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("f"):
			q.format = value.format()
		case key.is("where"), key.is("text"):
			q.where = q.where || !value.is("1=1") && !value.is("1 = 1")
		case key.is("orderByFields"), key.is("having"), key.is("historicMoment"):
			q.order = true
		case key.is("objectIds"):
			q.ids = max(q.ids, value.items())
		case key.is("geometry"), key.is("mapExtent"), key.is("bbox"):
			if share, ok := value.worldShare(); ok {
				q.share = max(q.share, share)
			} else {
				q.share = 1
			}
			if !key.is("geometry") {
				continue
			}
			q.geometry = q.geometry.add(countEsri(value))
		case key.is("returnCountOnly"), key.is("returnExtentOnly"):
			q.count, nocount = q.count || value.is("true"), nocount || !value.is("true")
		case key.is("returnIdsOnly"):
			q.idsOnly, noids = q.idsOnly || value.is("true"), noids || !value.is("true")
		case key.is("returnGeometry"):
			q.bare, nobare = q.bare || value.is("false"), nobare || !value.is("false")
		case key.is("outStatistics"), key.is("groupByFieldsForStatistics"), key.is("returnDistinctValues"):
			q.stats = q.stats || value[0] == '[' || value[0] == '%' || value.is("true")
		case key.is("resultRecordCount"), key.is("maxLocations"), key.is("maxSuggestions"), key.is("sampleCount"):
			q.limit = max(q.limit, value.amount())
		case key.is("resultOffset"):
			q.offset = max(q.offset, value.amount())
		case key.is("resultType"):
			if !value.is("none") {
				q.limit = max(q.limit, 32_000) // what the service has as its most for these
			}
		case key.is("size"), key.is("imageDisplay"):
			width, height := sizeOf(value)
			q.width, q.height = max(q.width, width), max(q.height, height)
		case key.is("layers"):
			n := value.items()
			q.layers = max(q.layers, n)
			q.allLayers = q.allLayers || !listsLayers(value)
		case key.is("bandIds"):
			q.bands = max(q.bands, value.items())
		case key.is("addresses"):
			q.records += arcgisRecords(value)
		case key.is("stops"), key.is("facilities"), key.is("incidents"):
			q.values = max(q.values, arcgisStops(value))
		case key.is("origins"):
			q.values = max(q.values, arcgisStops(value))
		case key.is("destinations"):
			q.records = max(q.records, arcgisStops(value))
		default: // features to add, geometries, parameters of tasks
			var c byte
			for i := 0; i < len(value) && c <= ' '; {
				c, i = value.at(i)
			}
			if c == '{' || c == '[' || key.is("geometries") || key.is("polygons") || key.is("polylines") {
				q.geometry = q.geometry.add(countEsri(value))
			}
		}
	}
	if nobare {
		q.bare = false
	}
	if nocount {
		q.count = false
	}
	if noids {
		q.idsOnly = false
	}
	if q.opaque {
		q.bare, q.count, q.idsOnly, q.full = false, false, false, true
		rest := v.decodedLength(v.Body.Prefix, complete)
		q.geometry = q.geometry.add(Geometry{Vertices: math.Ceil(rest / minVertexBytes)})
		q.records = max(q.records, math.Ceil(rest/minFeatureBytes))
		q.limit = max(q.limit, float64(v.assume.MaxLimit))
		q.ids, q.share = 0, max(q.share, 1)
	}
	return q
}

// listsLayers reports whether a value names the layers that are meant: "show:0,1".
// The others name those that are not, or come on top.
func listsLayers(value escaped) bool {
	kind, _, ok := strings.Cut(value.text(), ":")
	switch kind {
	case "show", "top", "visible", "all":
		return ok
	}
	return false
}

// sizeOf reads "width,height[,dpi]".
func sizeOf(value escaped) (width, height float64) {
	w, rest, _ := strings.Cut(value.text(), ",")
	h, _, _ := strings.Cut(rest, ",")
	return escaped(w).amount(), escaped(h).amount()
}

// arcgisRecords counts the records of a batch of addresses.
func arcgisRecords(value escaped) float64 {
	room := borrow()
	defer giveBack(room)
	room.out = value.appendText(room.out[:0])
	n, length := 0.0, float64(len(room.out))
	how := readJSONText(room.out, func(m jsonValue) {
		if m.is("records") {
			n = max(n, countJSON(m.text))
		}
	})
	if how != complete {
		n = max(n, math.Ceil(length/minFeatureBytes))
	}
	return n
}

// arcgisStops counts places: "x,y;x,y", or features in JSON.
func arcgisStops(value escaped) float64 {
	text := value.appendText(nil)
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) > 0 && first[0] == '{' {
		g, how := scanArcGIS(text)
		if how != complete {
			g = g.atBound(float64(len(text)))
		}
		return max(g.Features, g.Vertices)
	}
	return float64(1 + bytes.Count(text, []byte{';'}))
}

// query prices a query of a layer: a page of what is asked, and every row in the
// window where an index does not give their order or their choice.
func (q *arcgisAsk) query(v *view, a answer) answer {
	a.Op, a.Class, a.Format = "query", Read, q.format
	rows := v.layerRows(q.share)
	var b basis
	finish := func() answer {
		if q.geometry.Vertices > 0 {
			b.text(", geometry of ").count(q.geometry.Vertices, "vertex")
		}
		a.Vertices += q.geometry.Vertices
		a.Basis = b.String()
		return a
	}
	if q.count || q.idsOnly || q.stats {
		a.Features = rows
		if q.ids > 0 && !q.full && q.ids < rows {
			a.Features = q.ids
		} else if !v.sure.features {
			a.guess.Features = rows
		}
		b.number(a.Features).text(" rows").assumed(!v.sure.features)
		switch {
		case q.idsOnly: // there is no limit on these
			a.Class = Download
			b.text(", all ids")
		case q.stats:
			a.Op, a.Class = "summarize", Compute
			b.text(" summed up")
		default:
			a.Op = "count"
			b.text(" counted")
		}
		return finish()
	}
	asked := q.limit
	if asked < 0 {
		asked = min(arcgisPage, float64(v.assume.MaxLimit))
		if !v.sure.limit && q.ids == 0 {
			a.guess.Features = min(asked, rows)
		}
	}
	limit := min(asked, max(float64(v.assume.MaxLimit), 32_000))
	if q.ids > 0 && !q.full && q.ids < limit {
		limit = q.ids
	}
	a.Features = min(q.offset+limit, maxInput)
	if q.offset > 0 {
		a.LaterPage = true
		b.text("offset=").number(q.offset).text(" + ")
	}
	b.text("at most ").count(limit, "feature")
	if !q.bare {
		v.addVertices(&a, a.Features)
		v.timesVertices(&b)
	}
	if (q.where || q.order) && rows > a.Features {
		if !v.sure.features {
			a.guess.Features += rows - a.Features
		}
		a.Features = rows
		b.text(", ").number(rows).text(" rows scanned").assumed(!v.sure.features)
	}
	if a.LaterPage || limit > downloadFeatures {
		a.Class = Download
	}
	return finish()
}

// drawing prices a picture of a map, and the search for what is at a place of
// it or has a word in it.
func (q *arcgisAsk) drawing(v *view, a answer, op string) answer {
	a.Op, a.Class, a.Format = op, Map, q.format
	layers := max(1, q.layers)
	if q.allLayers || q.layers == 0 {
		layers = max(layers, arcgisLayers)
	}
	rows := v.layerRows(q.share)
	var b basis
	switch op {
	case "identify":
		a.Features = 10 * layers
		v.addVertices(&a, a.Features)
		b.text("identify in ").count(layers, "layer").assumed(q.layers == 0)
	case "find":
		a.Features = rows * layers
		if !v.sure.features {
			a.guess.Features = a.Features
		}
		a.Class = Read
		b.text("find in ").count(layers, "layer").text(", ").number(rows).text(" rows each").assumed(true)
	default:
		width, height := q.sides()
		a.Native = NativeRasterTile
		a.Cells = min(width*height, maxInput) * layers
		a.Features = rows * layers
		if !v.sure.features {
			a.guess.Features = a.Features
		}
		v.addVertices(&a, min(a.Features, maxInput))
		b.number(width).text(" x ").number(height).text(" px x ").count(layers, "layer").assumed(q.layers == 0).text(", ").number(rows).text(" rows each").assumed(!v.sure.features)
	}
	if q.geometry.Vertices > 0 {
		a.Vertices += q.geometry.Vertices
		b.text(", geometry of ").count(q.geometry.Vertices, "vertex")
	}
	a.Basis = b.String()
	return a
}

func (q *arcgisAsk) sides() (width, height float64) {
	if q.opaque && q.width*q.height < arcgisSamples {
		return 4096, 4096
	}
	if q.width == 0 || q.height == 0 {
		return max(arcgisSide, q.width), max(arcgisSide, q.height)
	}
	return q.width, q.height
}

// image prices what is read of an image service.
func (q *arcgisAsk) image(a answer, op string) (answer, bool) {
	a.Format = q.format
	a.Vertices = q.geometry.Vertices
	bands := max(1, q.bands)
	if q.bands == 0 {
		bands = 3
	}
	var b basis
	switch op {
	case "exportImage":
		width, height := q.sides()
		a.Op, a.Class, a.Native = "exportimage", Map, NativeRasterTile
		a.Cells = min(width*height, maxInput) * bands
		b.number(width).text(" x ").number(height).text(" px x ").count(bands, "band").assumed(q.bands == 0)
	case "computeHistograms", "computeStatisticsHistograms", "measure", "computeClassStatistics", "computePixelLocation", "computeAngles":
		a.Op, a.Class, a.Cells = "statistics", Compute, arcgisSamples*bands*max(1, 100*max(0, q.share))
		a.guess.Cells = a.Cells
		b.text("cells of a window").assumed(true)
	case "getSamples", "identify":
		a.Op, a.Class = "point", Read
		a.Cells = max(1, q.limit, q.geometry.Vertices) * titilerBlock * titilerBlock
		b.text("samples of ").count(max(1, q.geometry.Vertices), "vertex")
	default:
		return answer{}, false
	}
	if a.Op != "point" && a.Vertices > 0 {
		b.text(", geometry of ").count(a.Vertices, "vertex")
	}
	a.Basis = b.String()
	return a, true
}

// overlay prices an operation on the geometries of the request.
func (q *arcgisAsk) overlay(a answer, op string) answer {
	switch op {
	case "buffer", "offset", "convexHull", "generalize", "densify", "simplify", "autoComplete":
		a.Op = "buffer_body"
	case "union", "cut", "intersect", "difference", "reshape", "trimExtend":
		a.Op = "dissolve_body"
	default: // project, areasAndLengths, relation, labelPoints, ...
		a.Op = "overlay"
	}
	a.Class = Compute
	a.Features, a.Vertices = max(1, q.geometry.Features), q.geometry.Vertices
	var b basis
	a.Basis = b.text(op[:min(len(op), 32)]).text(" of ").count(a.Features, "shape").text(", ").count(a.Vertices, "vertex").String()
	return a
}

// task prices a geoprocessing task. What it does nobody knows, and it may write:
// it is not to be run twice.
func (q *arcgisAsk) task(v *view, a answer, tail []string) (answer, bool) {
	a.Layer = decodePath(tail[0])
	var b basis
	switch op := tail[len(tail)-1]; {
	case op == "cancel" || op == "delete":
		return arcgisWrite(v, a, op), true
	case op == "execute" && len(tail) > 1:
		a.Op, a.Class, a.Replayable, a.unsure = "gp", Compute, false, true
	case op == "submitJob" && len(tail) > 1:
		a.Op, a.Class, a.Replayable, a.unsure = "gp", Async, false, true
	case len(tail) == 1 && v.read():
		a.Op, a.Features, a.Basis = "service", 1, "task"
		return a, true
	case len(tail) > 2 && tail[1] == "jobs" && v.read():
		a.Op, a.Features, a.Basis = "service", 1, "job"
		if len(tail) > 4 { // its results
			a.Class, a.Op = Read, "query"
			v.addVertices(&a, arcgisPage)
			a.Features = arcgisPage
		}
		return a, true
	default:
		a = v.owsUnknown(a)
		a.body = !v.read()
		return a, true
	}
	a.Features, a.Vertices = q.geometry.Features, q.geometry.Vertices
	a.Basis = b.text("task on ").count(a.Features, "feature").text(", ").count(a.Vertices, "vertex").String()
	return a, true
}

// geocode prices what a locator is asked.
func (q *arcgisAsk) geocode(a answer, op string) (answer, bool) {
	body, unsure, collection := a.body, a.unsure, a.Collection
	limit := q.limit
	switch op {
	case "suggest":
		a = geocode("autocomplete", Typeahead, max(5, min(limit, 15)), 1)
	case "findAddressCandidates":
		if limit <= 0 {
			limit = 20
		}
		a = geocode("geocode", Read, min(limit, 50), 1)
	case "geocodeAddresses":
		a = geocode("batch", Compute, max(1, q.records), 1)
	case "reverseGeocode":
		a = around(1, 0, 1)
	default:
		return answer{}, false
	}
	a.body, a.unsure, a.Collection = body, unsure, collection
	return a, true
}

// network prices what a network analysis service is asked.
func (q *arcgisAsk) network(v *view, a answer, op string) (answer, bool) {
	r := routing{points: max(q.values, 1)}
	collection, unsure := a.Collection, a.unsure
	switch op {
	case "solve":
		a = r.route(v)
	case "solveServiceArea":
		r.contours = 3
		a = r.isochrones(v, 15)
		a.guess.Features = a.Features
	case "solveClosestFacility", "solveODCostMatrix", "solveLocationAllocation":
		r.sources, r.targets = max(q.values, 1), max(q.records, q.values, 1)
		a = r.matrix(v)
	case "solveVRP":
		r.jobs, r.vehicles = max(q.values, 1), max(q.values, 1)
		a = r.optimisation(v)
	default:
		return answer{}, false
	}
	a.Collection, a.unsure = collection, unsure
	return a, true
}

// arcgisTile prices {level}/{row}/{column}: row before column.
func arcgisTile(v *view, a answer, seg []string, kind string) (answer, bool) {
	name, _, ext, ok := scaled(seg[2])
	t := tile{layers: 1, size: 256, layer: a.Collection, grid: gridOther, format: ext}
	var okX, okY, okZ bool
	t.zoom, okZ = small(seg[0])
	t.y, okY = small(seg[1])
	t.x, okX = small(name)
	if !ok || !okX || !okY || !okZ || !v.read() {
		return answer{}, false
	}
	if t.raster = kind != "VectorTileServer"; t.raster {
		t.format = ""
	}
	return t.price(v, a), true
}
