package classify

import (
	"bytes"
	"net/http"
	"strings"
)

// services are those of OGC that are told apart by SERVICE=, as a set: an
// upstream may take any of several values.
type services uint8

const (
	serviceWMS services = 1 << iota
	serviceWMTS
	serviceWFS
	serviceWCS
	serviceOther // one that no family reads
)

// owsRequest is what REQUEST= names, the dearer after the cheaper: where several
// are named the last of them counts.
type owsRequest uint8

const (
	owsNone     owsRequest = iota
	owsMetadata            // capabilities, descriptions
	owsLegend
	owsUnknown
	owsInfo // GetFeatureInfo
	owsTile
	owsMap
	owsFeatures
	owsCoverage
	owsWrite
)

// ows is what the families of OGC web services share: whether a request is of
// one of them, and of which. A view reads it once.
type ows struct {
	read     bool
	services services
	asked    bool   // there is a REQUEST=
	form     string // the body of a POST that is a form, to be read with the query
	cut      bool   // the form goes on behind what was read
	opaque   bool   // a POST with a body that is neither a form nor XML

	xml       []byte  // the body of a POST that is XML, as far as it was read, its content codings undone
	xmlLength float64 // of all of it
	root      xmlRequest
}

// readOWS gives what the families share.
func (v *view) readOWS() *ows {
	o := &v.ows
	if o.read {
		return o
	}
	o.read = true
	if !v.read() {
		v.readPost()
	}
	named, implied := services(0), services(0)
	for k := v.kvp(); k.next(); {
		switch {
		case k.value == "":
		case k.key.isFold("service"):
			named |= serviceOf(k.value)
		case k.key.isFold("request"):
			o.asked = true
			implied |= serviceOfRequest(k.value)
		}
	}
	switch {
	case named != 0:
		o.services |= named
	case implied != 0:
		o.services |= implied
	case o.asked && o.services == 0:
		o.services |= serviceOfPath(v.last(0))
	}
	return o
}

// speaks reports whether a request is of a service. Where the config names the
// family, a REQUEST= is enough.
func (v *view) speaks(s services) bool {
	o := v.readOWS()
	return o.services&s != 0 || v.forced && o.services == 0 && o.asked
}

// serviceOf reads the value of SERVICE=.
func serviceOf(value escaped) services {
	switch {
	case value.isFold("wms"):
		return serviceWMS
	case value.isFold("wfs"):
		return serviceWFS
	case value.isFold("wmts"):
		return serviceWMTS
	case value.isFold("wcs"):
		return serviceWCS
	}
	return serviceOther
}

// serviceOfRequest gives the service of a request that names none: WMS did not
// ask for it before 1.1.1, and servers are lenient.
func serviceOfRequest(value escaped) services {
	var buf lowered
	switch string(value.lower(&buf)) {
	case "getmap", "map", "getlegendgraphic", "getfeatureinfo", "feature_info", "capabilities":
		return serviceWMS
	case "gettile":
		return serviceWMTS
	case "getfeature", "describefeaturetype", "getpropertyvalue", "getfeaturewithlock", "lockfeature", "transaction",
		"liststoredqueries", "describestoredqueries", "createstoredquery", "dropstoredquery":
		return serviceWFS
	case "getcoverage", "describecoverage":
		return serviceWCS
	}
	return 0
}

// serviceOfPath gives the service that the end of a path is called after, as
// GeoServer's are.
func serviceOfPath(segment string) services {
	name, _, _ := strings.Cut(segment, ";") // servlets have parameters there
	if s := serviceOf(escaped(name)); s != serviceOther {
		return s
	}
	return 0
}

// lowered holds the text of a key, or of a value with few possible ones, in
// lower case.
type lowered [24]byte

// lower undoes e's escapes and its case. What is longer than any name that we
// know is empty.
func (e escaped) lower(buf *lowered) []byte {
	n := 0
	for i := 0; i < len(e); n++ {
		if n == len(buf) {
			return nil
		}
		c := e[i]
		if c == '%' || c == '+' {
			c, i = e.at(i)
		} else {
			i++
		}
		if c-'A' < 26 {
			c |= 0x20
		}
		buf[n] = c
	}
	return buf[:n]
}

// kvp walks the pairs of the query and of the form behind it. Keys of OGC's KVP
// know no case (OGC 06-121r9, 11.5.2).
type kvp struct {
	params
	form string
	buf  lowered
}

func (v *view) kvp() kvp { return kvp{params: readQuery(v.Query), form: v.ows.form} }

func (k *kvp) next() bool {
	for !k.params.next() {
		if k.form == "" {
			return false
		}
		k.params, k.form = readQuery(k.form), ""
	}
	return true
}

// name gives the current key in lower case, empty where it is none that we know.
func (k *kvp) name() []byte { return k.key.lower(&k.buf) }

// readPost finds out what the body of a POST is. Its media type says little:
// clients send XML as text/xml, application/xml, text/plain and as a form. The
// first byte does.
func (v *view) readPost() {
	o := &v.ows
	if v.Body.empty() {
		return
	}
	text, how := v.bodyText()
	first := bytes.TrimLeft(trimBOM(text), " \t\r\n")
	switch {
	case len(first) == 0 || how == malformed:
		o.opaque = !v.Body.Whole || how == malformed
	case first[0] == '<':
		o.xml, o.xmlLength = text, v.decodedLength(text, how)
		o.root = readRoot(text)
		o.services |= o.root.services
		// A style goes with a GetMap in the query. Any other document is a request
		// by itself, and one that we do not know.
		o.opaque = o.root.services == 0 && o.root.name != "StyledLayerDescriptor"
	case isForm(v.Header.Get("Content-Type")) && first[0] != '{' && first[0] != '[':
		o.form, o.cut = string(text), how != complete || !v.wholeBody()
	default:
		o.opaque = true
		// XML of two bytes to a character is not read, but what it may hide is looked for.
		if wide := narrow(text); hasDTD(wide) {
			o.root.dtd = true
			o.services |= servicesIn(wide)
		}
	}
}

// wholeBody reports whether all of the body was read.
func (r *Request) wholeBody() bool {
	return r.Body.Whole || r.Body.Length >= 0 && r.Body.Length <= int64(len(r.Body.Prefix))
}

// bodyText gives the body with its content codings undone, as far as it was
// read. The text is not to be kept longer than the request.
func (r *Request) bodyText() ([]byte, reading) {
	coding := r.Header.Get("Content-Encoding")
	if coding == "" {
		return r.Body.Prefix, complete
	}
	room := borrow()
	defer giveBack(room)
	text, _, how := room.decode(r.Body.Prefix, coding)
	return bytes.Clone(text), how
}

// decodedLength is how long the whole body is taken to be, decoded.
func (r *Request) decodedLength(text []byte, how reading) float64 {
	read := float64(len(text))
	switch {
	case r.wholeBody():
		if how == complete {
			return read
		}
		return max(read, maxRatio*float64(len(r.Body.Prefix)))
	case r.Body.Length < 0:
		return max(read, UnknownBodyBytes)
	}
	return read * max(1, float64(r.Body.Length)/float64(max(1, len(r.Body.Prefix))))
}

// forbiddenDTD is why a request with a document type must not be forwarded: an
// entity that is declared in it may be expanded by the upstream, to gigabytes or
// to the text of a file there. No request of OGC has one.
const forbiddenDTD = "XML with a document type or an entity declaration"

// owsUnknown is the answer for a request of a service whose operation is not known:
// it may compute anything, and what is not sent by GET may change anything.
func (v *view) owsUnknown(a answer) answer {
	a.Op, a.Class, a.Replayable, a.unsure = opUnknown, Compute, false, true
	a.Basis = "operation not recognised: default cost"
	if !v.read() {
		a.Class = Write
	}
	if !v.Body.empty() {
		g := v.count()
		a.Features, a.Vertices = max(a.Features, g.Features), max(a.Vertices, g.Vertices)
	}
	return a
}

// owsDone finishes an answer: what holds for every service.
func (v *view) owsDone(a answer) answer {
	o := &v.ows
	a.Native = NativeOWS
	if v.Method != "" && !v.read() {
		a.body = !v.Body.empty()
		// What is neither read nor understood may be anything. So may what is
		// sent by a method that the services do not have.
		if a.Class != Write && (o.opaque || v.Method != http.MethodPost) {
			a = v.owsUnknown(a)
		}
	}
	if o.cut {
		// Another REQUEST= may stand in the rest of the form, and any geometry.
		rest := v.decodedLength([]byte(o.form), complete) / minVertexBytes
		a.Vertices += rest
		a.guess.Vertices += rest
		a.Replayable, a.unsure = false, true
	}
	if o.root.dtd || a.Forbidden != "" {
		a.Forbidden, a.Replayable, a.unsure = forbiddenDTD, false, true
		a.Features, a.Vertices = maxInput, maxInput
	}
	return a
}

// format gives the text of a format, without memory of its own for the usual
// ones.
func (e escaped) format() string {
	for _, f := range [...]string{"image/png", "image/jpeg", "image/webp", "image/gif", "image/tiff", "image/png8", "text/xml", "application/json"} {
		if e.is(f) {
			return f
		}
	}
	return e.text()
}

// filterParts gives the documents of a FILTER, joined by ")(": of several each
// is in parentheses (OGC 04-094, 13.3.3).
func filterParts(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if len(text) > 1 && text[0] == '(' && text[len(text)-1] == ')' {
		text = text[1 : len(text)-1]
	}
	return text
}

// filterJoint stands between the documents of a FILTER.
const filterJoint = ")("

// sides reads a number of pixels: the largest where it comes several times.
func sides(at *float64, value escaped) {
	if value != "" {
		*at = max(*at, value.amount())
	}
}

// exceptionsOf reads the value of EXCEPTIONS=, whose forms differ between
// versions: INIMAGE, application/vnd.ogc.se_inimage.
func exceptionsOf(value escaped) Exceptions {
	switch s := string(value); {
	case containsFold(s, "inimage"):
		return ExceptionsInImage
	case containsFold(s, "blank"):
		return ExceptionsBlank
	case containsFold(s, "json"):
		return ExceptionsJSON
	}
	return ExceptionsXML
}

// pixels keeps the side of a picture that a refusal may be drawn on.
func pixels(x float64) int { return int(max(0, min(x, 4096))) }
