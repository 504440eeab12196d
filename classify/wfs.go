package classify

import (
	"bytes"
	"math"
	"strings"
)

func init() {
	register(family{name: "wfs", rank: rankKVP + 20, recognise: recogniseWFS})
}

// recogniseWFS reads WFS 1.0, 1.1 and 2.0 (OGC 02-058, 04-094, 09-025r2), as KVP
// and as XML.
func recogniseWFS(v *view) (answer, bool) {
	if !v.speaks(serviceWFS) {
		return answer{}, false
	}
	q := newWFSQuery()
	q.readKVP(v)
	if v.ows.xml != nil {
		fromURL := q
		q = newWFSQuery()
		q.old, q.new = fromURL.old, fromURL.new
		q.readXML(new(xmlScan), v.ows.xml, v.ows.xmlLength)
		// A server may believe the URL. What the body lacks then is the dearest.
		q.asks(fromURL.request, fromURL.op)
	}
	q.finish()
	a := answer{Call: Call{
		Class: Metadata, Replayable: true, Collection: q.name, Format: q.format,
		Dialect: Dialect{Service: "WFS", Version: q.dialect, Exceptions: q.exceptions},
	}, unsure: q.malformed}
	if q.dtd {
		a.Forbidden = forbiddenDTD
	}
	switch q.request {
	case owsMetadata:
		a.Op, a.Features, a.Basis = q.op, 1, q.op
	case owsFeatures:
		a = q.price(v, a)
	case owsWrite:
		a = q.write(v, a)
	case owsNone, owsUnknown, owsLegend, owsInfo, owsTile, owsMap, owsCoverage:
		a = v.owsUnknown(a)
	}
	return v.owsDone(a), true
}

// wfsRequest reads the name of an operation, in lower case.
func wfsRequest(name []byte) (owsRequest, string) {
	switch string(name) {
	case "getcapabilities":
		return owsMetadata, "getcapabilities"
	case "describefeaturetype":
		return owsMetadata, "describefeaturetype"
	case "liststoredqueries":
		return owsMetadata, "liststoredqueries"
	case "describestoredqueries":
		return owsMetadata, "describestoredqueries"
	case "getfeature":
		return owsFeatures, "getfeature"
	case "getpropertyvalue":
		return owsFeatures, "getpropertyvalue"
	case "getgmlobject":
		return owsFeatures, "getgmlobject"
	case "getfeaturewithlock":
		return owsWrite, "getfeaturewithlock"
	case "lockfeature":
		return owsWrite, "lockfeature"
	case "transaction":
		return owsWrite, "transaction"
	case "createstoredquery":
		return owsWrite, "createstoredquery"
	case "dropstoredquery":
		return owsWrite, "dropstoredquery"
	}
	return owsUnknown, opUnknown
}

// wfsQuery is what a request says, in its dearest reading.
type wfsQuery struct {
	request    owsRequest
	op         string
	old, new   bool   // a version below 2, of 2 or above was named
	first      bool   // version 1.0 was named
	dialect    string // the version of an exception report
	format     string
	file       bool // a form of answer that is a file
	exceptions Exceptions

	name  string  // the first type
	types float64 // that are read one after the other
	join  float64 // that are read against one another; 0 without a join

	asked float64 // COUNT of 2.0; -1 where nobody asked
	other float64 // MAXFEATURES of 1.x; -1 likewise
	start float64
	// Of the values of RESULTTYPE.
	hits, results bool

	ids      float64 // features that are named
	byID     bool    // by the stored query that every server has
	stored   bool    // by another stored query
	filtered bool
	scanned  bool     // rows are read that are not answered
	geometry Geometry // of filters, and of what is written
	filters  wfsFilter
	window   window
	share    float64 // of the world; -1 without a window

	changes   float64 // updates, deletes and replacements of a transaction
	all       bool    // of which some name no feature
	malformed bool
	dtd       bool
	text      []byte // room for a filter
}

func newWFSQuery() wfsQuery {
	return wfsQuery{asked: -1, other: -1, dialect: "2.0.0", filters: wfsFilter{share: -1}}
}

// finish draws the conclusions from all that was read.
func (q *wfsQuery) finish() {
	q.types = max(q.types, 1)
	q.ids += q.filters.ids
	q.share = q.window.share()
	if q.filtered {
		q.window = q.filters.window
		// A box beside a filter is an error, or one of the two is not looked at.
		if q.share >= 0 || q.filters.unbounded {
			q.share = -1
		} else {
			q.share = q.filters.share
		}
		if q.share < 0 {
			q.window = window{}
		}
	}
	// So are identifiers beside either. The stored query is one of version 2: the
	// others would read the type that is named beside it.
	if q.filtered && (q.filters.compares || q.filters.spatial || q.filters.unbounded) || q.window.some || q.stored {
		q.ids = 0
	}
	q.byID = q.byID && q.name == "" && !q.stored && !q.filtered && !q.old
	q.hits = q.hits && !q.results && !q.first // 1.0 has no RESULTTYPE
	q.scanned = q.scanned || q.filters.scanned
}

// asks takes the dearer of two operations.
func (q *wfsQuery) asks(request owsRequest, op string) {
	if request > q.request {
		q.request, q.op = request, op
	}
}

func (q *wfsQuery) readKVP(v *view) {
	var crs crs
	for k := v.kvp(); k.next(); {
		value := k.value
		if value == "" {
			continue
		}
		switch string(k.name()) {
		case "request":
			var buf lowered
			q.asks(wfsRequest(value.lower(&buf)))
		case "version":
			q.readVersion(value.text())
		case "outputformat":
			q.format = value.format()
			q.file = q.file || fileFormat(q.format)
		case "exceptions":
			q.exceptions = exceptionsOf(value)
		case "typename", "typenames":
			q.readTypes(value.text())
		case "count":
			q.asked = max(q.asked, wfsLimit(value))
		case "maxfeatures":
			q.other = max(q.other, wfsLimit(value))
		case "startindex":
			if x, ok := value.number(); !ok || x > 0 {
				q.start = max(q.start, value.amount())
			}
		case "resulttype":
			q.readResult(value.isFold("hits"))
		case "storedquery_id", "storedqueryid":
			q.readStored(value.text())
		case "featureid", "resourceid", "gmlobjectid":
			q.ids += value.items()
		case "bbox":
			q.window.widen(value)
		case "srsname":
			crs = readCRS(value)
		case "filter":
			q.readFilter(value)
		case "cql_filter":
			q.filtered = true
			g := countFilter(value)
			q.geometry = q.geometry.add(g)
			q.filters.spatial = q.filters.spatial || g.Vertices > 0
			q.filters.scanned = q.filters.scanned || g.Vertices == 0
			q.filters.unbounded = true // by numbers that we could read, for now
		case "sortby":
			q.scanned = true
		case "aliases":
			q.join = max(q.join, 2)
		case "operation": // of a KVP transaction, which can only delete
			q.changes++
			q.all = q.all || q.ids == 0
		}
	}
	if q.ids > 0 {
		q.all = false
	}
	if q.window.some && q.window.crs.code == 0 {
		// Without a name of its own a box is in the default system of the type,
		// or in what SRSNAME says: servers differ.
		q.window.crs = crs
	}
	q.window.axes = q.window.crs.axes(false)
}

// readVersion tells the versions apart as far as requests differ.
func (q *wfsQuery) readVersion(s string) {
	switch {
	case strings.HasPrefix(s, "1.0"):
		q.old, q.first, q.dialect = true, true, "1.0.0"
	case strings.HasPrefix(s, "1"):
		q.old, q.dialect = true, "1.1.0"
	default:
		q.new, q.dialect = true, "2.0.0"
	}
}

func (q *wfsQuery) readResult(hits bool) {
	q.hits, q.results = q.hits || hits, q.results || !hits
}

// readTypes reads a list of feature types: "a,b", or "(a)(b,c)", where those
// that share parentheses are joined (OGC 09-025r2, 7.9.2.3).
func (q *wfsQuery) readTypes(s string) {
	if q.name == "" {
		q.name = firstName(s)
	}
	if !strings.Contains(s, "(") {
		q.types = max(q.types, float64(1+strings.Count(s, ",")))
		return
	}
	q.types = max(q.types, float64(strings.Count(s, "(")))
	for group := range strings.SplitSeq(s, "(") {
		if n := strings.Count(strings.TrimRight(group, "),"), ","); n > 0 {
			q.join = max(q.join, float64(n+1))
		}
	}
}

// firstName cuts the first of several names off.
func firstName(s string) string {
	s = strings.TrimLeft(s, "( \t\r\n")
	if i := strings.IndexAny(s, ",() \t\r\n"); i >= 0 {
		s = s[:i]
	}
	return s
}

// readStored reads the name of a stored query. The one for a feature by its
// identifier is in every server (OGC 09-025r2, 7.9.3.6).
func (q *wfsQuery) readStored(id string) {
	if strings.HasSuffix(id, "GetFeatureById") {
		q.byID = true
	} else {
		q.stored = true
	}
}

// readFilter reads the filter of a KVP request.
func (q *wfsQuery) readFilter(value escaped) {
	q.filtered = true
	q.text = value.appendText(q.text[:0])
	var x xmlScan
	for rest, more := filterParts(q.text), true; more; {
		var part []byte
		part, rest, more = bytes.Cut(rest, []byte(filterJoint))
		q.readXML(&x, part, float64(len(part)))
	}
	q.dtd = q.dtd || hasDTD(q.text)
}

// wfsLimit reads a limit. To some servers none is no limit.
func wfsLimit(value escaped) float64 {
	if n := value.amount(); n > 0 {
		return n
	}
	return maxInput
}

// limit is how many features are asked for of each type, infinite where nobody
// limits them. A limit by another version's name is not believed, for some
// servers read both and some do not.
func (q *wfsQuery) limit() float64 {
	limit := max(q.asked, q.other)
	if limit < 0 || q.new && q.asked < 0 || q.old && q.other < 0 {
		return math.Inf(1)
	}
	return limit
}

// price prices a read of features.
func (q *wfsQuery) price(v *view, a answer) answer {
	a.Window, a.SRID = q.window.bounds()
	a.Op, a.Class = q.op, Read
	a.Vertices = q.geometry.Vertices
	limit, rows := q.limit(), v.layerRows(q.share)
	var b basis
	switch {
	case q.byID:
		a.Features = 1
		b.text("1 feature by identifier")
	case q.ids > 0:
		a.Features = q.ids
		b.count(q.ids, "feature").text(" by identifier")
	case q.hits:
		a.Op = "count"
		a.Features = min(rows*q.types, maxInput)
		if !v.sure.features {
			a.guess.Features = a.Features
		}
		a.Basis = q.words(b.text("count of ").number(a.Features).text(" rows").assumed(!v.sure.features)).String()
		return a
	default:
		if q.filtered && a.Op == "getfeature" {
			a.Op = "filter"
		}
		a.LaterPage = q.start > 0
		a.Features = (min(limit, rows) + q.start) * q.types
		if limit > rows && !v.sure.features {
			a.guess.Features = rows * q.types
		}
		if q.start > 0 {
			b.text("startIndex=").number(q.start).text(" + ")
		}
		if limit <= rows {
			b.text("count=").number(limit)
		} else {
			b.text("all of ").number(rows).text(" rows").assumed(!v.sure.features)
		}
		if limit > downloadFeatures || a.LaterPage || q.file {
			a.Class = Download
		}
	}
	sent := min(a.Features, maxInput)
	if a.Op == "getpropertyvalue" {
		sent *= 0.2 // one property of each
	}
	v.addVertices(&a, sent)
	v.timesVertices(&b)
	if q.types > 1 {
		b.text(" x ").number(q.types).text(" types")
	}
	if all := rows * q.types; q.scanned && q.ids == 0 && !q.byID && all > a.Features {
		if !v.sure.features {
			a.guess.Features += all - a.Features
		}
		a.Features = all
		b.text(", ").number(all).text(" rows scanned").assumed(!v.sure.features)
	}
	if q.join > 1 {
		a.Features = max(a.Features, math.Pow(rows, min(q.join, 4)))
		a.guess.Features = a.Features
		b.text(", joined")
	}
	if q.stored {
		a.unsure = true
		b.text(", by a stored query")
	}
	a.Basis = q.words(&b).String()
	return a
}

func (q *wfsQuery) words(b *basis) *basis {
	if q.geometry.Vertices > 0 {
		b.text(", filter of ").count(q.geometry.Vertices, "vertex")
	}
	return b
}

// write prices what changes data, or locks it. None of these is to be repeated:
// a lock that is taken twice is refused the second time, or held by nobody.
func (q *wfsQuery) write(v *view, a answer) answer {
	a.Op, a.Class, a.Replayable = q.op, Write, false
	a.Features = max(q.geometry.Features, q.changes, q.ids)
	a.Vertices = q.geometry.Vertices
	switch {
	case q.op == "transaction" && !q.all:
	case q.op == "createstoredquery", q.op == "dropstoredquery":
	case q.ids > 0 && !q.all:
	default: // by a filter, or all there is
		rows := v.layerRows(q.share) * max(1, q.types)
		if q.op == "getfeaturewithlock" {
			rows = min(rows, q.limit())
		}
		a.Features += rows
		if !v.sure.features {
			a.guess.Features = rows
		}
	}
	a.Features = max(1, a.Features)
	if q.op == "getfeaturewithlock" {
		v.addVertices(&a, a.Features)
	}
	var b basis
	a.Basis = b.text(q.op).text(" of ").count(a.Features, "feature").assumed(a.guess.Features > 0).text(", ").count(a.Vertices, "vertex").String()
	return a
}

// wholeLayer is how many rows a layer is taken to have where it may be sent or
// drawn as a whole. Neither WFS nor WMS has a limit of its own.
const wholeLayer = 50_000

// layerRows is rows for services that stop nowhere.
func (v *view) layerRows(share float64) float64 {
	few := float64(v.assume.Features)
	many := max(few, float64(v.assume.MaxLimit), wholeLayer)
	if share < 0 {
		share = 1
	}
	return math.Ceil(few + (many-few)*share)
}

// readXML reads a request, or a filter by itself. Length is that of the whole
// document, of which text is what was read.
func (q *wfsQuery) readXML(x *xmlScan, text []byte, length float64) {
	x.reset(text)
	var g gmlCount
	f := &q.filters
	filtered, changing := false, false // in the query, and in a change
	event := x.next()
	for ; event != xmlDone; event = x.next() {
		g.see(x, event)
		switch event {
		case xmlText:
			f.text(x.text)
		case xmlStart:
			if x.depth <= 3 && (xmlRoots[string(x.name)] == serviceWFS || string(x.name) == "GetCapabilities") {
				q.readRequest(x)
			}
			f.start(x)
			switch string(x.name) {
			case "Query":
				filtered = false
				q.readQuery(x)
			case "StoredQuery":
				id, _ := x.attr("id")
				q.readStored(string(id[:min(len(id), 256)]))
			case "SortBy":
				q.scanned = true
			case "Update", "Delete", "Replace":
				q.changes++
				changing, filtered = true, false
			case "Filter":
				q.filtered, filtered = true, true
				f.begin(x.depth)
			}
		case xmlEnd:
			switch string(x.name) {
			case "Filter":
				if f.depth == x.depth+1 {
					f.end()
					q.all = q.all || changing && !f.named
				}
			case "Update", "Delete", "Replace":
				q.all = q.all || !filtered
				changing = false
			case "Query": // without a filter it reads all there is
				f.unbounded = f.unbounded || !filtered
			}
		case xmlDone:
		}
	}
	q.dtd = q.dtd || x.dtd
	counted := g.total()
	if x.how != complete || float64(len(text)) < length {
		counted = counted.atBound(length)
		q.malformed, f.unbounded = true, true
	}
	q.geometry = q.geometry.add(counted)
}

// readRequest reads the attributes of the root.
func (q *wfsQuery) readRequest(x *xmlScan) {
	var buf lowered
	q.asks(wfsRequest(escaped(x.name[:min(len(x.name), maxRootName)]).lower(&buf)))
	for i := range x.n {
		value := escaped(bytes.TrimSpace(x.attrs[i].value))
		switch string(x.attrs[i].name) {
		case "version":
			q.readVersion(string(value))
		case "outputFormat":
			q.format = string(value[:min(len(value), 128)])
			q.file = q.file || fileFormat(q.format)
		case "count":
			q.asked = max(q.asked, wfsLimit(value))
		case "maxFeatures":
			q.other = max(q.other, wfsLimit(value))
		case "startIndex", "startPosition":
			if x, ok := value.number(); !ok || x > 0 {
				q.start = max(q.start, value.amount())
			}
		case "resultType":
			q.readResult(value == "hits")
		}
	}
}

// readQuery reads the attributes of a query: several types in one are joined.
func (q *wfsQuery) readQuery(x *xmlScan) {
	for i := range x.n {
		if n := string(x.attrs[i].name); n != "typeName" && n != "typeNames" {
			continue
		}
		value := x.attrs[i].value
		if q.name == "" {
			q.name = firstName(string(value[:min(len(value), 256)]))
		}
		names := 0.0
		for range bytes.FieldsSeq(bytes.ReplaceAll(value, []byte{','}, []byte{' '})) {
			names++
		}
		if names > 1 {
			q.join = max(q.join, names)
		}
	}
	q.types++
}
