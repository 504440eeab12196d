package classify

import (
	"bytes"
	"math"
	"strings"
)

func init() {
	register(family{name: "wcs", rank: rankKVP + 30, recognise: recogniseWCS})
}

// recogniseWCS reads WCS 1.0, 1.1 and 2.0 (OGC 03-065r6, 07-067r5, 09-110r4 with
// the extensions for scaling 12-039 and range subsetting 12-040).
func recogniseWCS(v *view) (answer, bool) {
	if !v.speaks(serviceWCS) {
		return answer{}, false
	}
	q := newWCSQuery()
	q.readKVP(v)
	if v.ows.xml != nil {
		fromURL := q
		q = newWCSQuery()
		q.dialect = fromURL.dialect
		q.readXML(v.ows.xml, v.ows.xmlLength)
		q.asks(fromURL.request, fromURL.op)
	}
	a := answer{Call: Call{
		Class: Metadata, Replayable: true, Collection: q.coverage, Format: q.format,
		Dialect: Dialect{Service: "WCS", Version: q.dialect, Exceptions: q.exceptions},
	}, unsure: q.malformed}
	if q.dtd {
		a.Forbidden = forbiddenDTD
	}
	switch q.request {
	case owsMetadata:
		a.Op, a.Features, a.Basis = q.op, 1, q.op
	case owsCoverage:
		a = q.price(a)
	case owsWrite:
		a.Op, a.Class, a.Replayable = q.op, Write, false
		a.Features, a.Cells, a.guess.Cells, a.Basis = 1, wholeAxis*wholeAxis, wholeAxis*wholeAxis, q.op
	case owsNone, owsUnknown, owsLegend, owsInfo, owsTile, owsMap, owsFeatures:
		a = v.owsUnknown(a)
	}
	return v.owsDone(a), true
}

// wcsRequest reads the name of an operation, in lower case.
func wcsRequest(name []byte) (owsRequest, string) {
	switch string(name) {
	case "getcapabilities":
		return owsMetadata, "getcapabilities"
	case "describecoverage":
		return owsMetadata, "describecoverage"
	case "describeeocoverageset":
		return owsMetadata, "describeeocoverageset"
	case "getcoverage":
		return owsCoverage, "getcoverage"
	case "transaction", "insertcoverage", "updatecoverage", "deletecoverage":
		return owsWrite, "wcs-transaction"
	}
	return owsUnknown, opUnknown
}

const (
	// wholeAxis is how many cells an axis of a coverage is taken to have: the
	// request does not say, and a scene of Sentinel-2 has 10,980.
	wholeAxis = 1e4
	// cellDegrees and cellMetres are how large a cell is taken to be: 10 m.
	cellDegrees = 1e-4
	cellMetres  = 10
	// wholeTimes is how many moments or levels are taken for an axis that is
	// cut, between bounds that say nothing.
	wholeTimes = 10
	// overview is how many cells are read for one that is sent, at most, of a
	// coverage that is scaled down: files keep coarser copies of themselves.
	overview = 16
)

// axis is one of a coverage, cut.
type axis struct {
	name  string
	cells float64
}

// maxAxes is how many axes of one request are told apart. No coverage has more.
const maxAxes = 8

// wcsQuery is what a request says, in its dearest reading.
type wcsQuery struct {
	request    owsRequest
	op         string
	dialect    string
	coverage   string
	format     string
	exceptions Exceptions

	cuts          [maxAxes]axis
	n             int
	resolution    float64 // finest that was asked for; 0 where nobody did
	window        window  // of 1.0 and 1.1
	width, height float64 // of the grid that is sent; 0 where nobody said
	scale         float64 // of each axis; 0 likewise
	scaled        float64 // cells that are sent; 0 likewise
	times         float64
	bands         float64

	unclear   bool // something that could not be read
	malformed bool
	dtd       bool
}

func newWCSQuery() wcsQuery { return wcsQuery{times: 1, bands: 1, dialect: "2.0.1"} }

func (q *wcsQuery) asks(request owsRequest, op string) {
	if request > q.request {
		q.request, q.op = request, op
	}
}

func (q *wcsQuery) readKVP(v *view) {
	var crs crs
	for k := v.kvp(); k.next(); {
		value := k.value
		if value == "" {
			continue
		}
		switch string(k.name()) {
		case "request":
			var buf lowered
			q.asks(wcsRequest(value.lower(&buf)))
		case "version":
			q.readVersion(value.text())
		case "exceptions":
			q.exceptions = exceptionsOf(value)
		case "format":
			q.format = value.format()
		case "coverage", "coverageid", "identifier":
			if q.coverage == "" {
				q.coverage = value.firstItem()
			}
			q.times *= value.items() // several coverages
		case "subset":
			q.readSubset(value)
		case "bbox", "boundingbox":
			q.window.widen(value)
		case "crs":
			crs = readCRS(value)
		case "width":
			sides(&q.width, value)
		case "height":
			sides(&q.height, value)
		case "resx", "resy":
			q.finer(value)
		case "gridoffsets":
			for s, more := value.text(), true; more; {
				var one string
				one, s, more = strings.Cut(s, ",")
				q.finer(escaped(strings.TrimPrefix(one, "-")))
			}
		case "resolution":
			for _, one := range axesOf(value.text()) {
				q.finer(escaped(one))
			}
		case "scalefactor":
			q.scale = max(q.scale, value.amount())
		case "scaleaxes":
			for _, one := range axesOf(value.text()) {
				q.scale = max(q.scale, escaped(one).amount())
			}
		case "scalesize":
			q.scaled = max(q.scaled, product(value.text()))
		case "scaleextent":
			q.scaled = max(q.scaled, extents(value.text()))
		case "time":
			n, _ := value.times()
			q.times *= n
		case "rangesubset":
			q.bands = max(q.bands, bandsOf(value))
		case "filter", "cql_filter": // of mosaics
			q.unclear = true
		}
	}
	if q.window.some && q.window.crs.code == 0 {
		q.window.crs = crs
	}
	q.window.axes = q.window.crs.axes(false)
}

func (q *wcsQuery) readVersion(s string) {
	switch {
	case strings.HasPrefix(s, "1.0"):
		q.dialect = "1.0.0"
	case strings.HasPrefix(s, "1"):
		q.dialect = "1.1.0"
	default:
		q.dialect = "2.0.1"
	}
}

// finer keeps the finest resolution that is asked for.
func (q *wcsQuery) finer(value escaped) {
	x, ok := value.number()
	if !ok || x < 0 {
		x = 0
	}
	x = max(x, 1e-9)
	if q.resolution == 0 || x < q.resolution {
		q.resolution = x
	}
}

// readSubset reads SUBSET=Lat(40,50), Long(10), ansi("2020-01","2020-12"), the
// axis perhaps followed by its reference system: Long,EPSG:4326(10,20). An axis
// that is cut twice is as long as its longer part.
func (q *wcsQuery) readSubset(value escaped) {
	name, rest, ok := strings.Cut(value.text(), "(")
	inner, closed := strings.CutSuffix(strings.TrimSpace(rest), ")")
	if !ok || !closed {
		q.unclear = true
		return
	}
	name, _, _ = strings.Cut(name, ",")
	q.cut(name, inner)
}

// cut cuts an axis between two bounds, or to one value.
func (q *wcsQuery) cut(name, bounds string) {
	name = strings.ToLower(strings.TrimSpace(name))
	if i := strings.LastIndexAny(name, "/:#"); i >= 0 { // axes may be named by URLs
		name = name[i+1:]
	}
	cells := cutCells(name, bounds)
	for i := range q.n {
		if q.cuts[i].name == name {
			q.cuts[i].cells = max(q.cuts[i].cells, cells)
			return
		}
	}
	if q.n < maxAxes {
		q.cuts[q.n] = axis{name, cells}
		q.n++
	}
}

// cutCells is how many cells are between two bounds, at most those of a whole
// axis.
func cutCells(name, bounds string) float64 {
	from, to, isRange := strings.Cut(bounds, ",")
	if !isRange {
		return 1
	}
	low, okLow := parseNumber(from)
	high, okHigh := parseNumber(to)
	if !okLow || !okHigh {
		if horizontal(name) { // '*' is open
			return wholeAxis
		}
		return wholeTimes
	}
	width := math.Abs(high - low)
	switch {
	case isDegrees(name):
		width /= cellDegrees
	case isMetres(name):
		width /= cellMetres
	}
	return max(1, min(math.Ceil(width), wholeAxis))
}

// isDegrees and isMetres know the labels of axes that servers use.
func isDegrees(name string) bool {
	return strings.HasPrefix(name, "lat") || strings.HasPrefix(name, "lon")
}

func isMetres(name string) bool {
	switch name {
	case "x", "y", "e", "n", "easting", "northing":
		return true
	}
	return false
}

// horizontal reports whether an axis is of the two that every coverage has.
func horizontal(name string) bool {
	return isDegrees(name) || isMetres(name) || name == "i" || name == "j"
}

// axesOf gives what is in each pair of parentheses of "i(2),j(2)".
func axesOf(s string) (inner []string) {
	for part := range strings.SplitSeq(s, ")") {
		if _, value, ok := strings.Cut(part, "("); ok && len(inner) < maxAxes {
			inner = append(inner, value)
		}
	}
	return inner
}

// product multiplies the sizes of "i(200),j(100)".
func product(s string) float64 {
	n := 1.0
	for _, one := range axesOf(s) {
		n = min(n*max(1, escaped(one).amount()), maxInput)
	}
	return n
}

// extents multiplies the widths of "i(10,20),j(0:100)".
func extents(s string) float64 {
	n := 1.0
	for _, one := range axesOf(s) {
		at := strings.IndexAny(one, ",:")
		if at < 0 {
			continue
		}
		low, okLow := parseNumber(one[:at])
		high, okHigh := parseNumber(one[at+1:])
		if !okLow || !okHigh {
			return maxInput
		}
		n = min(n*max(1, math.Abs(high-low)+1), maxInput)
	}
	return n
}

// bandsOf counts the bands of "b1,b3:b5". How many an interval has is in the
// coverage's description only.
func bandsOf(value escaped) (n float64) {
	text := value.text()
	return float64(1 + strings.Count(text, ",") + wholeTimes*strings.Count(text, ":"))
}

// price prices a GetCoverage by its cells: the greater of those that are sent
// and a share of those that are read for them.
func (q *wcsQuery) price(a answer) answer {
	a.Op, a.Class = q.op, Download
	a.Window, a.SRID = q.window.bounds()
	source, assumed := q.source()
	sent := source
	switch {
	case q.scaled > 0:
		sent = q.scaled
	case q.width > 0 || q.height > 0:
		sent = q.width * q.height
		if q.width == 0 || q.height == 0 { // the other follows from the window
			sent = max(q.width, q.height) * max(q.width, q.height)
		}
	case q.scale > 0:
		sent = source * q.scale * q.scale
	}
	if q.scaled > 0 && q.scale > 0 { // one of them is not looked at, or both are
		sent = max(sent, source*q.scale*q.scale)
	}
	read := source / overview
	cells := max(sent, read)
	a.Cells = min(cells, maxInput) * q.times * q.bands
	if assumed && (sent == source || read >= sent || q.scale > 0) {
		a.guess.Cells = a.Cells
	}
	a.unsure = a.unsure || q.unclear
	var b basis
	switch {
	case assumed && q.n == 0 && !q.window.some:
		b.text("whole coverage of ").number(source).text(" cells")
	default:
		b.text("window of ").number(source).text(" cells")
	}
	b.assumed(assumed)
	if sent != source {
		b.text(", scaled to ").number(min(math.Ceil(sent), maxInput))
	}
	if q.times > 1 {
		b.text(" x ").number(q.times).text(" times")
	}
	if q.bands > 1 {
		b.text(" x ").number(q.bands).text(" bands")
	}
	a.Basis = b.String()
	return a
}

// source is how many cells of the coverage the request is about. They are
// assumed: how large a cell is stands in the coverage's description only.
func (q *wcsQuery) source() (cells float64, assumed bool) {
	if q.window.bad {
		return wholeAxis * wholeAxis, true
	}
	if q.window.some {
		cell := q.resolution
		if cell == 0 {
			cell = cellDegrees
			if e := q.window.crs.extent(); e == extentMercator || e == extentMetres {
				cell = cellMetres
			}
		}
		dx := math.Abs(q.window.box[2]-q.window.box[0]) / cell
		dy := math.Abs(q.window.box[3]-q.window.box[1]) / cell
		if q.resolution == 0 {
			dx, dy = min(dx, wholeAxis), min(dy, wholeAxis)
		}
		return max(1, math.Ceil(dx)) * max(1, math.Ceil(dy)), q.resolution == 0
	}
	cells, plane := 1.0, 0
	for i := range q.n {
		cells = min(cells*q.cuts[i].cells, maxInput)
		if horizontal(q.cuts[i].name) {
			plane++
		}
	}
	for ; plane < 2; plane++ { // what is not cut is whole
		cells = min(cells*wholeAxis, maxInput)
	}
	if q.resolution > 0 { // against the cell that was taken
		finer := max(1, cellDegrees/q.resolution)
		cells = min(cells*finer*finer, maxInput)
	}
	return cells, true
}

// readXML reads a GetCoverage that was posted: its trims, slices and scaling.
func (q *wcsQuery) readXML(text []byte, length float64) {
	var x xmlScan
	x.reset(text)
	var leaf, dimension, low, high string
	event := x.next()
	for ; event != xmlDone; event = x.next() {
		switch event {
		case xmlStart:
			leaf = ""
			if x.depth <= 3 && (xmlRoots[string(x.name)] == serviceWCS || string(x.name) == "GetCapabilities") {
				var buf lowered
				q.asks(wcsRequest(escaped(x.name[:min(len(x.name), maxRootName)]).lower(&buf)))
				if version, ok := x.attr("version"); ok {
					q.readVersion(string(version[:min(len(version), 16)]))
				}
				continue
			}
			switch string(x.name) {
			case "DimensionTrim", "DimensionSlice":
				dimension, low, high = "", "*", "*"
			case "CoverageId", "sourceCoverage", "Identifier", "Dimension", "TrimLow", "TrimHigh", "SlicePoint",
				"ScaleFactor", "scaleFactor", "TargetSize", "targetSize", "format", "Format":
				leaf = string(x.name)
			}
		case xmlText:
			value := string(bytes.TrimSpace(x.text[:min(len(x.text), 256)]))
			switch leaf {
			case "CoverageId", "sourceCoverage", "Identifier":
				if q.coverage == "" {
					q.coverage = value
				}
			case "Dimension":
				dimension = value
			case "TrimLow":
				low = value
			case "TrimHigh":
				high = value
			case "SlicePoint":
				q.cut(dimension, value)
			case "ScaleFactor", "scaleFactor":
				q.scale = max(q.scale, escaped(value).amount())
			case "TargetSize", "targetSize":
				q.scaled = min(max(1, q.scaled)*escaped(value).amount(), maxInput)
			case "format", "Format":
				q.format = value
			}
			leaf = ""
		case xmlEnd:
			if string(x.name) == "DimensionTrim" {
				q.cut(dimension, low+","+high)
			}
		case xmlDone:
		}
	}
	q.dtd = x.dtd
	q.malformed = x.how != complete || float64(len(text)) < length
	if q.malformed { // the rest may ask for more, or scale it up
		q.scale = maxInput
	}
}
