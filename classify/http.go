package classify

import (
	"bytes"
	"strings"
)

// The family that is detected, and that of what a rule, or nothing, recognised.
const (
	familyAuto = "auto"
	familyHTTP = "http"
	opUnknown  = "unknown"
)

// unknown is the answer for what nothing recognises: a read if its method only
// reads and it asks nothing of an OGC web service, a write otherwise, at the default cost and what the geometry in its
// body adds. It is never sure.
func unknown(r *Request) answer {
	a := answer{
		Call:   Call{Family: familyHTTP, Op: opUnknown, Class: Read, Replayable: true, Basis: "not recognised: default cost"},
		unsure: true,
	}
	if r.read() {
		if namesService(r.Query) {
			a.Class, a.Replayable = Compute, false
		}
		return a
	}
	a.Class, a.Replayable = Write, false
	if r.Body.empty() || r.streams() || !r.mayCarryGeometry() {
		return a
	}
	g := r.count()
	if g.Malformed && !r.looksJSON() && !r.looksXML() { // some other text
		return a
	}
	a.Features, a.Vertices = g.Features, g.Vertices
	if g.Vertices > 0 {
		var b basis
		a.Basis = b.text("not recognised: default cost + body of ").count(g.Vertices, "vertex").String()
	}
	return a
}

// mayCarryGeometry reports whether the body may be GeoJSON, or a request in XML
// or KVP, going by its media type: clients send these as text or without a type
// as well. A picture, an archive or a form with files is not read before the
// decision.
func (r *Request) mayCarryGeometry() bool {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	media = strings.TrimSpace(media)
	return media == "" || strings.EqualFold(media, "text/plain") || isForm(media) || containsFold(media, "json") ||
		containsFold(media, "xml") || containsFold(media, "gml")
}

// looksJSON reports whether the body is JSON, by its type or its first character.
func (r *Request) looksJSON() bool {
	b := bytes.TrimLeft(r.Body.Prefix, " \t\r\n")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[') || containsFold(r.Header.Get("Content-Type"), "json")
}

// looksXML reports whether the body is XML, by its first character.
func (r *Request) looksXML() bool {
	b := bytes.TrimLeft(trimBOM(r.Body.Prefix), " \t\r\n")
	return len(b) > 0 && b[0] == '<'
}

// namesService reports whether a query asks something of an OGC web service that
// no family reads. Some of these run processes and change catalogues by GET.
func namesService(query string) bool {
	service, request := false, false
	for p := readQuery(query); p.next(); {
		service = service || p.key.isFold("service") && p.value != ""
		request = request || p.key.isFold("request") && p.value != ""
	}
	return service && request
}

// streams reports whether the caller may wait for an answer before it has sent
// its whole body: gRPC, and upgrades.
func (r *Request) streams() bool {
	return r.Header.Get("Upgrade") != "" || containsFold(r.Header.Get("Content-Type"), "application/grpc")
}

// containsFold reports whether s contains part, which is in lower case.
func containsFold(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(part)], part) {
			return true
		}
	}
	return false
}
