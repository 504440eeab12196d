package classify

import (
	"bytes"
	"math"
	"net/http"
	"strings"
	"time"
)

func init() {
	register(family{name: "overpass", rank: rankPath + 70, recognise: recogniseOverpass})
}

const (
	overpassTimeout = 180  // seconds, where a query names none
	overpassObjects = 2e10 // of the planet, as dense everywhere as where people live
	overpassTagged  = 0.1  // of them match a filter by tags
	overpassArea    = 1e-3 // of the world is in an area that is only named: a country
	overpassBelow   = 10   // objects that one is made of, or is part of
)

// recogniseOverpass reads queries to Overpass: {prefix}/interpreter, the query in
// data= or in the body, in QL or in XML. A query only reads, and its server ends
// it after the time that it names itself.
func recogniseOverpass(v *view) (answer, bool) {
	post := v.Method == http.MethodPost
	if v.last(0) != "interpreter" || !v.read() && !post {
		if v.forced && v.read() && (v.last(0) == "status" || v.last(0) == "timestamp") {
			return answer{Call: Call{Op: "status", Class: Metadata, Replayable: true, Basis: "status", Inputs: Inputs{Features: 1}}}, true
		}
		return answer{}, false
	}
	var q overpass
	dear := false
	asked := q.readPairs(v.Query)
	if post && !v.Body.empty() {
		text, how := v.bodyText()
		inForm := false
		if isForm(v.Header.Get("Content-Type")) || bytes.HasPrefix(text, []byte("data=")) {
			inForm = q.readPairs(string(text))
		}
		asked = asked || inForm
		if !inForm && len(text) > 0 {
			asked = true
			q.read(escaped(text).rawText(isForm(v.Header.Get("Content-Type"))))
		}
		if dear = how != complete || !v.wholeBody(); dear {
			asked = true
			q.features = maxInput // there may be anything in the rest
		}
	}
	if !asked {
		return answer{}, false
	}
	a := answer{Call: Call{Op: "overpass", Class: Compute, Replayable: true}, body: post}
	a.Timeout = time.Duration(min(max(q.timeout, 1), maxSeconds) * float64(time.Second))
	a.Features = min(math.Ceil(q.features), maxInput)
	a.Vertices = min(math.Ceil(q.vertices), maxInput) + q.given
	a.guess.Features, a.guess.Vertices = a.Features, a.Vertices-q.given
	if q.ids == q.features && !dear {
		a.guess = Inputs{}
	}
	var b basis
	b.count(q.statements, "statement").text(", ").count(a.Features, "object").assumed(a.guess.Features > 0)
	b.text(", timeout ").number(q.timeout).text(" s")
	a.Basis = b.String()
	return a, true
}

// readPairs reads each data= of a query or a form, and reports whether there is
// one. Its server ends pairs at '&' alone, for a query is full of ';'.
func (q *overpass) readPairs(raw string) (asked bool) {
	for pair := range strings.SplitSeq(raw, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if value != "" && escaped(key).is("data") {
			asked = true
			q.read(escaped(value).appendText(make([]byte, 0, len(value))))
		}
	}
	return asked
}

// rawText gives a body as it is, or with the escapes of a form undone.
func (e escaped) rawText(form bool) []byte {
	if form && !e.plain() {
		return e.appendText(make([]byte, 0, len(e)))
	}
	return []byte(e)
}

// overpass is what queries ask for.
type overpass struct {
	timeout    float64 // seconds; the longest of several
	features   float64
	vertices   float64
	given      float64 // vertices in the query
	ids        float64 // objects that are named
	statements float64
	sought     float64 // objects of the statements so far, but for those below others
	share      float64 // of the world, in the query's own box; -1 without one
	times      float64 // how often all of it is done
}

// read takes in one query.
func (q *overpass) read(text []byte) {
	text = bytes.TrimLeft(trimBOM(text), " \t\r\n")
	before, statements := q.features, q.statements
	q.sought, q.share, q.times = 0, -1, 1
	var timeout float64
	if len(text) > 0 && text[0] == '<' {
		timeout = q.xml(text)
	} else {
		s := overpassText{b: text}
		timeout = q.settings(&s)
		q.script(&s)
	}
	if timeout < 1 {
		timeout = overpassTimeout
	}
	q.timeout = max(q.timeout, timeout)
	if q.statements == statements { // it seeks nothing, or in words that are not known
		q.found(inside(overpassArea, true), 0)
	}
	q.features = before + (q.features-before)*q.times
}

// found adds the objects of a statement.
func (q *overpass) found(n, vertices float64) {
	n = min(n, maxInput)
	q.statements++
	q.features += n
	q.vertices += vertices
	q.sought += n
}

// inside is how many objects are in a share of the world.
func inside(share float64, tagged bool) float64 {
	n := overpassObjects * share
	if tagged {
		n *= overpassTagged
	}
	return max(1, n)
}

// overpassText is a walk over a query in QL. Comments are passed over.
type overpassText struct {
	b []byte
	i int
}

// next gives the next character that is neither white space nor in a comment,
// without moving past it, and 0 at the end.
func (s *overpassText) next() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c <= ' ':
			s.i++
		case c == '/' && s.i+1 < len(s.b) && s.b[s.i+1] == '/':
			if n := bytes.IndexByte(s.b[s.i:], '\n'); n >= 0 {
				s.i += n + 1
			} else {
				s.i = len(s.b)
			}
		case c == '/' && s.i+1 < len(s.b) && s.b[s.i+1] == '*':
			if n := bytes.Index(s.b[s.i+2:], []byte("*/")); n >= 0 {
				s.i += n + 4
			} else {
				s.i = len(s.b)
			}
		default:
			return c
		}
	}
	return 0
}

// group passes over what stands between brackets, strings in it included, and
// gives it.
func (s *overpassText) group() []byte {
	start, depth := s.i+1, 0
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case '"', '\'':
			s.quoted(c)
			continue
		case '[', '(':
			depth++
		case ']', ')':
			if depth--; depth == 0 {
				s.i++
				return s.b[start : s.i-1]
			}
		}
		s.i++
	}
	return s.b[min(start, len(s.b)):]
}

// quoted passes over a string.
func (s *overpassText) quoted(quote byte) {
	for s.i++; s.i < len(s.b) && s.b[s.i] != quote; s.i++ {
		if s.b[s.i] == '\\' {
			s.i++
		}
	}
	s.i = min(s.i+1, len(s.b))
}

// word passes over a word and gives it.
func (s *overpassText) word() []byte {
	start := s.i
	for s.i < len(s.b) && (isLetter(s.b[s.i]) || isDigit(s.b[s.i]) || s.b[s.i] == '_') {
		s.i++
	}
	return s.b[start:s.i]
}

// settings reads "[timeout:25][bbox:s,w,n,e]...;", with which a query may begin,
// and gives the timeout, -1 without one.
func (q *overpass) settings(s *overpassText) (timeout float64) {
	timeout = -1
	for s.next() == '[' {
		name, value, _ := bytes.Cut(s.group(), []byte{':'})
		value = bytes.TrimSpace(value)
		switch string(bytes.TrimSpace(name)) {
		case "timeout":
			timeout = max(timeout, escaped(value).amount())
		case "bbox":
			q.share = max(q.share, boxShare(value))
		case "diff", "adiff":
			q.times *= 5
		}
	}
	return timeout
}

// boxShare reads "south,west,north,east" and gives its share of the world: all of
// it where it cannot be read.
func boxShare(text []byte) float64 {
	var n [4]float64
	for i := range n {
		one, rest, _ := bytes.Cut(text, []byte{','})
		x, ok := parseNumber(string(one))
		if !ok {
			return 1
		}
		n[i], text = x, rest
	}
	width, height := n[3]-n[1], math.Abs(n[2]-n[0])
	if width < 0 {
		width += 360
	}
	return min(1, max(0, width*height/(360*180)))
}

// script reads the statements.
func (q *overpass) script(s *overpassText) {
	for c := s.next(); c != 0; c = s.next() {
		switch {
		case c == '"' || c == '\'':
			s.quoted(c)
		case c == '>' || c == '<':
			if s.i > 0 && s.b[s.i-1] == '-' { // "->.a"
				s.i++
				continue
			}
			for s.i < len(s.b) && s.b[s.i] == c {
				s.i++
			}
			q.below()
		case c == '.' || c == '[': // a set's name; what belongs to no statement
			s.i++
			if c == '.' {
				s.word()
			}
		case isLetter(c):
			q.statement(s, s.word())
		default:
			s.i++
		}
	}
}

// below adds what objects are made of, or are part of: any of those that were
// sought before, for sets have names.
func (q *overpass) below() {
	n := min(max(q.sought, 1)*overpassBelow, maxInput)
	sought := q.sought
	q.found(n, n)
	q.sought = sought
}

// statement reads a statement that begins with a word.
func (q *overpass) statement(s *overpassText, word []byte) {
	switch string(word) {
	case "node", "way", "rel", "relation", "nwr", "nw", "wr", "nr", "derived":
	case "area":
		if c := s.next(); c != '[' && c != '(' {
			return
		}
		for c := s.next(); c == '[' || c == '('; c = s.next() {
			s.group()
		}
		q.found(1000, 0)
		return
	case "is_in", "map_to_area":
		q.below()
		return
	case "foreach", "complete", "for", "timeline", "retro", "compare":
		q.times = min(q.times*5, maxInput)
		return
	case "geom": // "out geom"
		q.vertices += min(q.sought*overpassBelow, maxInput)
		return
	default:
		return
	}
	share, ids, named, related, tagged := -1.0, 0.0, false, false, false
	narrow := func(x float64) { // the smallest of what it must all be in
		if share < 0 || x < share {
			share = x
		}
	}
	for {
		switch s.next() {
		case '.':
			s.i++
			s.word()
			related = true
			continue
		case '[':
			// A pattern of keys has to be tried on every object.
			tagged = tagged || !bytes.HasPrefix(bytes.TrimSpace(s.group()), []byte{'~'})
			continue
		case '(':
			kind, rest, colon := bytes.Cut(s.group(), []byte{':'})
			kind = bytes.TrimSpace(kind)
			at := kind
			if dot := bytes.IndexByte(kind, '.'); dot > 0 {
				at = kind[:dot]
			}
			switch name := string(at); {
			case name == "around":
				q.given += float64(bytes.Count(rest, []byte{','})) / 2
				narrow(aroundShare(rest))
				related = related || bytes.IndexByte(rest, ',') < 0
			case name == "poly":
				n, x := polyShare(rest)
				q.given += n
				narrow(x)
			case name == "area" || name == "pivot":
				narrow(overpassArea)
			case name == "id":
				named = true
				ids += float64(1 + bytes.Count(rest, []byte{','}))
			case colon || len(kind) == 0: // newer, user, changed, if: of what else there is
			case bytes.IndexByte(kind, ',') >= 0:
				narrow(boxShare(kind))
			case digits(string(kind)) == len(kind):
				named = true
				ids++
			default: // bn, w, r, bw, br
				related = true
			}
			continue
		}
		break
	}
	switch {
	case named:
		q.ids += ids
		q.found(ids, ids)
	case related && share < 0:
		q.below()
	default:
		if share < 0 {
			if share = q.share; share < 0 {
				share = 1 // nothing says where: the planet
			}
		}
		n := inside(share, tagged)
		if related {
			n += q.sought
		}
		q.found(n, n)
	}
}

// aroundShare reads "radius[,lat,lon...]", the radius in metres, and gives the
// share of the world within it of each point, or of one.
func aroundShare(text []byte) float64 {
	const earth = 5.1e14 // square metres
	radius, points, _ := bytes.Cut(text, []byte{','})
	r := escaped(bytes.TrimSpace(radius)).amount()
	n := max(1, float64(bytes.Count(points, []byte{','})+1)/2)
	return min(1, n*4*r*r/earth)
}

// polyShare reads "lat lon lat lon ..." in quotes, counts its points, and gives
// the share of the world of their box.
func polyShare(text []byte) (points, share float64) {
	text = bytes.Trim(text, " \t\r\n\"'")
	box, rest := Bounds{}, text
	for len(rest) > 0 {
		y, after, okY := cutNumber(rest)
		x, after, okX := cutNumber(after)
		if !okX || !okY {
			return math.Ceil(float64(len(text)) / minVertexBytes), 1
		}
		if points++; !box.some {
			box = Bounds{x, y, x, y, true}
		}
		box = Bounds{min(box.MinX, x), min(box.MinY, y), max(box.MaxX, x), max(box.MaxY, y), true}
		rest = bytes.TrimLeft(after, " \t\r\n")
	}
	return points, min(1, (box.MaxX-box.MinX)*(box.MaxY-box.MinY)/(360*180))
}

// xml reads the older form of a query, and gives its timeout, -1 without one.
func (q *overpass) xml(text []byte) (timeout float64) {
	timeout = -1
	var x xmlScan
	x.reset(text)
	share, tagged, ids, query := -1.0, false, 0.0, false
	for event := x.next(); event != xmlDone; event = x.next() {
		switch event {
		case xmlStart:
			switch string(x.name) {
			case "osm-script":
				if value, ok := x.attr("timeout"); ok {
					timeout = max(timeout, escaped(value).amount())
				}
				if value, ok := x.attr("bbox"); ok {
					q.share = boxShare(value)
				}
			case "query":
				share, tagged, ids, query = -1, false, 0, true
			case "bbox-query":
				var box [4][]byte
				for i, name := range [...]string{"s", "w", "n", "e"} {
					box[i], _ = x.attr(name)
				}
				one := boxShare(bytes.Join(box[:], []byte{','}))
				if share < 0 || one < share {
					share = one
				}
				if !query {
					q.found(inside(one, false), 0)
				}
			case "has-kv":
				tagged = true
			case "area-query", "polygon-query":
				if share < 0 || share > overpassArea {
					share = overpassArea
				}
			case "id-query":
				ids++
				if !query {
					q.ids++
					q.found(1, 1)
				}
			case "recurse", "around":
				q.below()
			case "foreach":
				q.times *= 5
			}
		case xmlEnd:
			if string(x.name) == "query" && query {
				query = false
				switch {
				case ids > 0:
					q.ids += ids
					q.found(ids, ids)
				default:
					if share < 0 {
						if share = q.share; share < 0 {
							share = 1
						}
					}
					n := inside(share, tagged)
					q.found(n, n)
				}
			}
		case xmlText, xmlDone:
		}
	}
	if x.how != complete {
		q.found(maxInput, 0)
	}
	return timeout
}
