package classify

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// CountWKT counts the geometry of every well-known text in a text: of a WKT or
// EWKT by itself, and of each literal in a CQL2 filter or an SQL expression.
//
// A literal is the name of a geometry type (OGC 06-103r4, and PostGIS's curved
// ones), in any case, perhaps with Z, M or ZM, and a parenthesis; it ends where
// that closes. It is one feature, and a vertex is a number after a '(' or ','
// in it: POINT Z (1 2 3) has one, MULTIPOINT(1 2,3 4) and MULTIPOINT((1 2),(3 4))
// have two. What is not in a literal, such as IN (1,2,3) and BBOX(geom,1,2,3,4),
// counts nothing, nor does EMPTY. Quotes are not looked at: a literal in a
// string counts, and so none can hide in one.
//
// Malformed says that a literal does not close, nests deeper than 64
// parentheses, or holds what none can. It takes one pass, time linear in the
// length, and no memory.
func CountWKT(s []byte) Geometry {
	g, how := scanWKT(s, nil)
	g.Malformed = how != complete
	return g
}

// scanWKT is CountWKT that tells an open end from a malformed text.
func scanWKT(s []byte, box *Bounds) (Geometry, reading) {
	w := wkt{s: s, box: box}
	how := w.scan()
	return Geometry{Features: float64(w.features), Vertices: float64(w.vertices)}, how
}

// wkt is the state of a scan.
type wkt struct {
	s        []byte
	features int
	vertices int
	box      *Bounds // nil where nobody asks for it
}

// scan looks for parentheses and reads the literals that some of them open.
func (w *wkt) scan() reading {
	for i := 0; ; {
		p := bytes.IndexByte(w.s[i:], '(')
		if p < 0 {
			return complete
		}
		before := w.s[i : i+p]
		i += p + 1
		if !namesGeometry(before) {
			continue
		}
		w.features++
		var how reading
		if i, how = w.literal(i); how != complete {
			return how
		}
	}
}

// literal reads a literal from the byte after its first parenthesis to the one
// after its last.
func (w *wkt) literal(i int) (end int, how reading) {
	s := w.s
	depth := 1
	for {
		// After a '(' or ',': a number here begins a vertex.
		i = skipSpace(s, i)
		vertex := i < len(s) && beginsNumber(s[i])
		if vertex {
			w.vertices++
		}
		start := i

	element:
		for {
			for i+8 <= len(s) {
				stop := notOrdinate(binary.LittleEndian.Uint64(s[i:]))
				if stop != 0 {
					i += bits.TrailingZeros64(stop) >> 3
					break
				}
				i += 8
			}
			if i >= len(s) {
				return i, open
			}
			c := s[i]
			if vertex && w.box != nil && (c == ',' || c == ')' || c == '(') {
				*w.box = w.box.with(s[start:i])
				vertex = false
			}
			i++
			switch c {
			case ',':
				break element
			case '(':
				if depth == maxBrackets {
					return i, malformed
				}
				depth++
				break element
			case ')':
				depth--
				if depth == 0 {
					return i, complete
				}
			case ' ', '\t', '\r', '\n', '+', '-', '.':
			default:
				if !isDigit(c) && !isLetter(c) {
					return i, malformed
				}
			}
		}
	}
}

// beginsNumber reports whether a byte begins a number, NaN and Inf included,
// which PostGIS reads.
func beginsNumber(c byte) bool {
	return isDigit(c) || c == '-' || c == '.' || c == '+' || c|0x20 == 'n' || c|0x20 == 'i'
}

// namesGeometry reports whether the text before a parenthesis ends with the name
// of a geometry type: POLYGON, PolygonZM, "POLYGON ZM".
func namesGeometry(before []byte) bool {
	before, name := lastWord(before)
	if len(name) == 0 {
		return false
	}
	if isDimension(name) {
		_, name = lastWord(before)
		return isGeometryType(name)
	}
	if isGeometryType(name) {
		return true
	}
	for _, suffix := range [...]int{1, 2} {
		if n := len(name) - suffix; n > 0 && isDimension(name[n:]) && isGeometryType(name[:n]) {
			return true
		}
	}
	return false
}

// lastWord cuts the letters off the end of a text, and the white space after
// them. A word that goes on to the left with a '_' is none: st_point(
// is a function. White space is whatever is no printable ASCII, for some readers
// know that of Unicode.
func lastWord(s []byte) (rest, word []byte) {
	end := len(s)
	for end > 0 && (s[end-1] <= ' ' || s[end-1] >= 0x7f) {
		end--
	}
	start := end
	for start > 0 && isLetter(s[start-1]) {
		start--
	}
	if start > 0 && s[start-1] == '_' {
		return nil, nil
	}
	return s[:start], s[start:end]
}

func isDimension(word []byte) bool {
	switch len(word) {
	case 1:
		return word[0]|0x20 == 'z' || word[0]|0x20 == 'm'
	case 2:
		return word[0]|0x20 == 'z' && word[1]|0x20 == 'm'
	}
	return false
}

func isGeometryType(word []byte) bool {
	var upper [len("GEOMETRYCOLLECTION")]byte
	if len(word) < len("TIN") || len(word) > len(upper) {
		return false
	}
	for i, c := range word {
		upper[i] = c &^ 0x20
	}
	switch string(upper[:len(word)]) {
	case "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION",
		"CIRCULARSTRING", "COMPOUNDCURVE", "CURVEPOLYGON", "MULTICURVE", "MULTISURFACE", "POLYHEDRALSURFACE",
		"TRIANGLE", "TIN", "LINEARRING", "NURBSCURVE":
		return true
	}
	return false
}
