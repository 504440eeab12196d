package classify

import (
	"bytes"
	"math"
	"strings"
)

func init() {
	register(family{name: "wms", rank: rankKVP, recognise: recogniseWMS})
}

// recogniseWMS reads WMS 1.0 to 1.3.0 (OGC 00-028, 01-068r3, 06-042), with the
// parameters that MapServer, GeoServer and QGIS Server add.
func recogniseWMS(v *view) (answer, bool) {
	if !v.speaks(serviceWMS) {
		return answer{}, false
	}
	q := wmsQuery{layers: 1, times: 1}
	q.readKVP(v)
	if v.ows.xml != nil {
		q.readXML(v.ows.xml, v.ows.xmlLength)
	}
	q.window.axes = q.window.crs.axes(q.dialect() == wms130)
	a := answer{Call: Call{
		Class: Metadata, Replayable: true, Layer: q.layer, Format: q.format,
		Dialect: Dialect{
			Service: "WMS", Version: q.dialect(), Exceptions: q.exceptions,
			Width: pixels(q.width), Height: pixels(q.height), Transparent: q.transparent,
		},
	}, unsure: q.malformed}
	if q.dtd {
		a.Forbidden = forbiddenDTD
	}
	switch q.request {
	case owsMetadata:
		a.Op, a.Features, a.Basis = q.op, 1, q.op
	case owsLegend:
		a = q.legend(a)
	case owsInfo:
		a = q.info(v, a)
	case owsMap:
		a = q.picture(v, a)
	case owsWrite:
		a.Op, a.Class, a.Replayable, a.Features, a.Basis = q.op, Write, false, 1, q.op
	case owsNone, owsUnknown, owsTile, owsFeatures, owsCoverage:
		a = v.owsUnknown(a)
	}
	return v.owsDone(a), true
}

// wmsRequest reads the name of an operation, in lower case.
func wmsRequest(name []byte) (owsRequest, string) {
	switch string(name) {
	case "getcapabilities", "capabilities":
		return owsMetadata, "getcapabilities"
	case "describelayer":
		return owsMetadata, "describelayer"
	case "getstyles":
		return owsMetadata, "getstyles"
	case "getschemaextension":
		return owsMetadata, "getschemaextension"
	case "getlegendgraphic":
		return owsLegend, "getlegendgraphic"
	case "getfeatureinfo", "feature_info":
		return owsInfo, "getfeatureinfo"
	case "getmap", "map":
		return owsMap, "getmap"
	case "putstyles":
		return owsWrite, "putstyles"
	}
	return owsUnknown, opUnknown
}

const (
	wms111 = "1.1.1"
	wms130 = "1.3.0"
)

// wmsQuery is what a request says, in its dearest reading.
type wmsQuery struct {
	request     owsRequest
	op          string
	version     string
	named       bool // CRS=, as only 1.3.0 has it, or neither CRS= nor SRS=
	srs         bool // SRS=
	exceptions  Exceptions
	format      string
	transparent bool

	layer         string
	layers        float64
	queried       float64 // layers of GetFeatureInfo
	width, height float64 // 0 where nobody said
	document      bool    // a form of answer that is no picture of pixels
	tiled         bool
	untiled       bool // TILED= says otherwise as well
	window        window
	referred      bool    // to a reference system
	times         float64 // moments and elevations that are drawn
	timesGuessed  bool
	count         float64 // FEATURE_COUNT
	reach         float64 // pixels around the point that is asked for
	filter        Geometry
	style         float64 // bytes of a style in the request
	foreign       bool    // a style from elsewhere

	malformed bool
	dtd       bool
	text      []byte // room for a filter
}

func (q *wmsQuery) asks(request owsRequest, op string) {
	if request > q.request {
		q.request, q.op = request, op
	}
}

// dialect is the version that the request is read by. Those before 1.1.1 differ
// in nothing that is of interest here.
func (q *wmsQuery) dialect() string {
	switch {
	case strings.HasPrefix(q.version, "1.0"), strings.HasPrefix(q.version, "1.1"):
		return wms111
	case q.version == "" && q.srs && !q.named:
		return wms111
	}
	return wms130
}

func (q *wmsQuery) readKVP(v *view) {
	for k := v.kvp(); k.next(); {
		value := k.value
		if value == "" {
			continue
		}
		switch string(k.name()) {
		case "request":
			var buf lowered
			q.asks(wmsRequest(value.lower(&buf)))
		case "version", "wmtver":
			q.version = value.text()
		case "exceptions":
			q.exceptions = exceptionsOf(value)
		case "format":
			q.format = value.format()
			q.document = q.document || isDocument(q.format)
		case "transparent":
			q.transparent = value.isFold("true")
		case "layers", "layer":
			q.layers = max(q.layers, value.items())
			if q.layer == "" {
				q.layer = value.firstItem()
			}
		case "query_layers":
			q.queried = max(q.queried, value.items())
		case "width":
			sides(&q.width, value)
		case "height":
			sides(&q.height, value)
		case "tiled":
			tiled := value.isFold("true") || value.isFold("yes")
			q.tiled, q.untiled = q.tiled || tiled, q.untiled || !tiled
		case "crs":
			q.named = true
			q.readCRS(value)
		case "srs":
			q.srs = true
			q.readCRS(value)
		case "bbox":
			q.window.widen(value)
		case "time", "elevation":
			n, guessed := value.times()
			q.times = min(q.times*n, maxInput)
			q.timesGuessed = q.timesGuessed || guessed > 0
		case "feature_count":
			q.count = max(q.count, value.amount())
		case "buffer", "radius", "fi_point_tolerance", "fi_line_tolerance", "fi_polygon_tolerance":
			if value.isFold("bbox") { // MapServer: all of the window
				q.reach = maxInput
			} else {
				q.reach = max(q.reach, value.amount())
			}
		case "filter":
			q.readFilter(value)
		case "cql_filter":
			q.filter = q.filter.add(countFilter(value))
		case "sld_body":
			q.style += float64(len(value))
			q.readFilter(value)
		case "sld":
			q.foreign = true
		}
	}
}

// readCRS reads a reference system. Of two that differ either may be meant:
// then the window may be anything.
func (q *wmsQuery) readCRS(value escaped) {
	c := readCRS(value)
	if q.referred && c != q.window.crs {
		q.window.bad = true
	}
	q.referred, q.window.crs = true, c
}

// readFilter counts the geometry in XML in a value.
func (q *wmsQuery) readFilter(value escaped) {
	q.text = value.appendText(q.text[:0])
	var x xmlScan
	g, how := Geometry{}, complete
	for rest, more := filterParts(q.text), true; more; {
		var part []byte
		part, rest, more = bytes.Cut(rest, []byte(filterJoint))
		one, read := scanGMLWith(&x, part, nil)
		g, how = g.add(one), max(how, read)
	}
	if how != complete {
		g = g.atBound(float64(len(q.text)))
	}
	q.dtd = q.dtd || hasDTD(q.text)
	q.filter = q.filter.add(g)
}

// firstItem gives the first item of a comma-joined list.
func (e escaped) firstItem() string {
	for i := 0; i < len(e); {
		c, next := e.at(i)
		if c == ',' {
			return e[:i].text()
		}
		i = next
	}
	return e.text()
}

// readXML reads a GetMap that was posted (OGC 02-070, and GeoServer), or the
// style that goes with a query.
func (q *wmsQuery) readXML(text []byte, length float64) {
	var x xmlScan
	x.reset(text)
	var g gmlCount
	var element string
	layers := 0.0
	event := x.next()
	for ; event != xmlDone; event = x.next() {
		g.see(&x, event)
		switch event {
		case xmlStart:
			element = ""
			if x.depth <= 3 && xmlRoots[string(x.name)] == serviceWMS || string(x.name) == "GetCapabilities" {
				var buf lowered
				q.asks(wmsRequest(escaped(x.name[:min(len(x.name), maxRootName)]).lower(&buf)))
				if version, ok := x.attr("version"); ok {
					q.version = string(version[:min(len(version), 16)])
				}
				// What else these two say is not read.
				q.malformed = q.malformed || q.request == owsInfo || q.request == owsLegend
			}
			switch string(x.name) {
			case "NamedLayer", "UserLayer":
				layers++
			case "Width":
				element = "width"
			case "Height":
				element = "height"
			case "Format":
				element = "format"
			}
		case xmlText:
			value := escaped(bytes.TrimSpace(x.text[:min(len(x.text), 128)]))
			switch element {
			case "width":
				sides(&q.width, value)
			case "height":
				sides(&q.height, value)
			case "format":
				q.format = string(value)
				q.document = q.document || isDocument(q.format)
			}
			element = ""
		case xmlEnd, xmlDone:
		}
	}
	q.layers = max(q.layers, layers)
	q.style += length
	q.dtd = q.dtd || x.dtd
	counted := g.total()
	if x.how != complete || float64(len(text)) < length {
		counted = counted.atBound(length)
		q.malformed = true
	}
	q.filter = q.filter.add(counted)
}

// assumedSide is what is taken for a picture's width or height where the request
// has none. Most servers answer that with an error; one may have a default.
const assumedSide = 1024

// picture prices a GetMap: its pixels, for each layer and each moment, and the
// rows of each layer in its window.
func (q *wmsQuery) picture(v *view, a answer) answer {
	a.Op, a.Class = q.op, Map
	a.Window, a.SRID = q.window.bounds()
	width, height := q.width, q.height
	if width == 0 {
		width = assumedSide
	}
	if height == 0 {
		height = assumedSide
	}
	drawn := q.layers * q.times
	a.Cells = min(width*height, maxInput) * drawn
	if q.width == 0 || q.height == 0 || q.timesGuessed {
		a.guess.Cells = a.Cells
	}
	rows := v.layerRows(q.window.share())
	a.Features = rows * drawn
	if !v.sure.features {
		a.guess.Features = a.Features
	}
	v.addVertices(&a, min(a.Features, maxInput))
	a.Vertices += q.filter.Vertices
	a.Bytes = q.style
	a.unsure = a.unsure || q.foreign
	if !q.document && q.times == 1 && (width <= 512 && height <= 512 || q.tiled && !q.untiled && width <= 1024 && height <= 1024) {
		a.Class = Tile
	}
	var b basis
	b.number(width).text(" x ").number(height).text(" px").assumed(q.width == 0 || q.height == 0)
	if q.layers > 1 {
		b.text(" x ").number(q.layers).text(" layers")
	}
	if q.times > 1 {
		b.text(" x ").number(q.times).text(" times").assumed(q.timesGuessed)
	}
	b.text(", ").number(rows).text(" rows each").assumed(!v.sure.features)
	if q.filter.Vertices > 0 {
		b.text(", filter of ").count(q.filter.Vertices, "vertex")
	}
	a.Basis = b.String()
	return a
}

// isDocument reports whether a format is no picture of pixels: it holds every
// feature.
func isDocument(format string) bool {
	switch format {
	case "image/png", "image/jpeg", "image/webp", "image/png8":
		return false
	}
	for _, kind := range [...]string{"pdf", "kml", "kmz", "svg", "geo", "rss", "atom", "json", "utfgrid"} {
		if containsFold(format, kind) {
			return true
		}
	}
	return false
}

// info prices a GetFeatureInfo: so many features of each layer at a point, and
// where it reaches further, the rows in reach.
func (q *wmsQuery) info(v *view, a answer) answer {
	a.Op, a.Class = q.op, Map
	a.Window, a.SRID = q.window.bounds()
	layers := max(q.queried, 1)
	count := max(q.count, 1)
	rows := v.layerRows(q.window.share())
	found := min(count, rows)
	a.Features = found * layers
	v.addVertices(&a, a.Features)
	var b basis
	b.count(found, "feature").text(" of ").count(layers, "layer")
	if q.reach > 0 {
		share := 1.0
		if pixels := q.width * q.height; pixels > 0 {
			share = min(1, (2*q.reach+1)*(2*q.reach+1)/pixels)
		}
		if within := math.Ceil(rows*share) * layers; within > a.Features {
			if !v.sure.features {
				a.guess.Features = within - a.Features
			}
			a.Features = within
			b.text(", ").number(within).text(" rows in reach").assumed(!v.sure.features)
		}
	}
	a.Vertices += q.filter.Vertices
	a.Basis = b.String()
	return a
}

// legend prices a GetLegendGraphic: a small picture of no data, unless somebody
// asks for a large one.
func (q *wmsQuery) legend(a answer) answer {
	a.Op = q.op
	width, height := max(q.width, 20), max(q.height, 20)
	a.Cells = min(width*height, maxInput) * q.layers
	a.Bytes = q.style
	a.Vertices = q.filter.Vertices
	if width > 512 || height > 512 {
		a.Class = Map
	}
	var b basis
	a.Basis = b.text("legend of ").number(width).text(" x ").number(height).text(" px").String()
	return a
}
