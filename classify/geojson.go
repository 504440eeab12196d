package classify

import (
	"encoding/binary"
	"math/bits"
)

// maxBrackets is how deep brackets may nest. The deepest GeoJSON has about a dozen
// levels; 64 of them fit into one word, a bit each.
const maxBrackets = 64

// maxTexts is how many levels of text inside of text are read: a JSON document
// in a string of a JSON document in a string.
const maxTexts = 2

// minText is the shortest string that can hold a vertex: "TIN(1 2)".
const minText = 8

const recordSeparator = 0x1e

// CountGeoJSON counts the geometry of a JSON text: a document, several in a row
// (lines of NDJSON, or a text sequence of RFC 8142), or the beginning of one. A
// byte order mark is passed over.
//
// What counts:
//
//   - A vertex is an array whose first element is a number, anywhere inside of
//     an array that is the value of a member "coordinates". RFC 7946 calls it a
//     position; [1,2,3] is one, [[1,2],[3,4]] are two, bbox is none.
//   - A feature is a member "type" whose value is the string "Feature".
//   - Where there is none, an array-valued member "coordinates" makes one
//     feature of the whole text.
//   - A string value of 8 bytes or more is a text of its own: JSON where it
//     begins with '{' or '[' (a geometry in a string, as tool calls and
//     PostgREST's arguments have it), else WKT anywhere in it (a CQL2 filter).
//     Features and vertices of texts are added. A text that cannot be read
//     counts at least one feature, and one vertex in 4 bytes, if it names
//     coordinates or a geometry type; it does not make the whole Malformed, for
//     prose has brackets too.
//
// Names are compared after their escapes are undone and without regard to case,
// and every occurrence of a repeated one counts: parsers differ in which they
// take. A property that is called "coordinates" or "type" counts too, as does
// a number-leading array inside of an object inside of coordinates. All of it
// errs to the dear side.
//
// Malformed says that the text is no JSON, nests deeper than 64 brackets, or
// ends inside of something. Numbers are not held to their grammar ("1,,2" and
// "01" pass), for no spelling of a number hides a vertex; everything else is,
// for what one parser takes for a string or a comment and another does not can.
// The count ends where the text stops being JSON.
//
// It takes one pass, time linear in the length, and no memory but for escaped
// texts in strings, whose buffer is pooled.
func CountGeoJSON(b []byte) Geometry {
	g, how := scanGeoJSON(b, nil)
	g.Malformed = how != complete
	return g
}

// scanGeoJSON is CountGeoJSON that tells an open end from a malformed text.
func scanGeoJSON(b []byte, box *Bounds) (Geometry, reading) {
	s := geoJSON{b: trimBOM(b), box: box}
	how := s.scan()
	return s.geometry(), how
}

// geoJSON is the state of a scan.
type geoJSON struct {
	b          []byte
	features   int
	vertices   int
	geometries int      // members "coordinates" that are arrays
	texts      Geometry // of string values
	level      int      // of text inside of text
	box        *Bounds  // nil where nobody asks for it
}

// geometry sums up what was counted.
func (s *geoJSON) geometry() Geometry {
	g := Geometry{Features: float64(s.features), Vertices: float64(s.vertices)}
	if s.features == 0 && s.geometries > 0 {
		g.Features = 1
	}
	return g.add(s.texts)
}

// What the scanner looks for next. From wantFirst on it may be a closing bracket.
const (
	wantValue  = iota // a value; outside of brackets the next one, or the end
	wantMember        // a name
	wantFirst         // a value, or ']'
	wantName          // a name, or '}'
	wantNext          // ',', or the closing bracket
)

// scan reads values until the text ends or stops being JSON.
//
// It is one loop over tokens, without recursion. The kinds of the open brackets
// stand in the bits of a word. Arrays of numbers are read many at a time.
func (s *geoJSON) scan() reading {
	var (
		b      = s.b
		i      int
		want   = wantValue
		kinds  uint64     // of the open brackets, the innermost lowest: 1 for an object
		depth  int        // open brackets
		coords int        // depth inside of the outermost coordinates array that i is in; 0 outside of any
		name   memberName // of the value that comes next
	)
	for {
		if i < len(b) && b[i] <= ' ' {
			i = skipSpace(b, i)
		}
		if i >= len(b) {
			if depth > 0 {
				return open
			}
			return complete
		}
		c := b[i]

		if want >= wantFirst && c == "]}"[kinds&1] {
			i++
			kinds >>= 1
			depth--
			if depth < coords {
				coords = 0
			}
			want = wantNext
			if depth == 0 {
				want = wantValue
			}
			continue
		}

		switch want {
		case wantNext:
			if c != ',' {
				return malformed
			}
			i++
			want = wantValue
			if kinds&1 == 1 {
				want = wantMember
			}
			continue

		case wantMember, wantName:
			if c != '"' {
				return malformed
			}
			end, escaped, how := stringEnd(b, i+1)
			if how != complete {
				return how
			}
			name = nameOf(b[i+1:end], escaped)
			i = end + 1
			if i < len(b) && b[i] <= ' ' {
				i = skipSpace(b, i)
			}
			if i >= len(b) {
				return open
			}
			if b[i] != ':' {
				return malformed
			}
			i++
			want = wantValue
			continue
		}

		// A value.
		member := name
		name = nameOther
		want = wantNext
		if depth == 0 {
			want = wantValue
		}
		switch c {
		case '"':
			end, escaped, how := stringEnd(b, i+1)
			if how != complete {
				return how
			}
			value := b[i+1 : end]
			i = end + 1
			if member == nameType && isFeature(value, escaped) {
				s.features++
			}
			if len(value) >= minText {
				s.text(value, escaped)
			}

		case '[':
			if member == nameCoordinates {
				s.geometries++
				if coords == 0 {
					coords = depth + 1
				}
			}
			// A bracket that opens an array of numbers is pushed only where the
			// array turns out to hold something else as well.
			n, next, inside := 0, i+1, true
			then := wantFirst
			if first := skipSpace(b, i+1); first < len(b) && (b[first] == '-' || isDigit(b[first])) {
				box := s.box
				if coords == 0 {
					box = nil
				}
				n, next, then = numberArrays(b, i, depth > 0 && kinds&1 == 0, box)
				inside = then != wantClosed
			}
			i = next
			if coords > 0 {
				s.vertices += n
			}
			if !inside {
				if depth < coords {
					coords = 0
				}
				continue
			}
			if depth == maxBrackets {
				return malformed
			}
			depth++
			kinds <<= 1
			want = then

		case '{':
			if depth == maxBrackets {
				return malformed
			}
			depth++
			kinds = kinds<<1 | 1
			i++
			want = wantName

		case 't', 'f', 'n':
			end, how := literalEnd(b, i)
			if how != complete {
				return how
			}
			i = end

		case recordSeparator:
			if depth > 0 {
				return malformed
			}
			i++

		default:
			if c != '-' && !isDigit(c) {
				return malformed
			}
			i = numberEnd(b, i)
		}
	}
}

// wantClosed is what numberArrays says where no bracket stays open.
const wantClosed = -1

// numberArrays reads arrays of numbers, "[1,2],[3,4]", from the bracket of the
// first at b[i]; the arrays after it only in a list, which is itself an array.
// It gives how many it read, where it stopped, and what is wanted there:
// wantClosed after a whole array, or else what the array that it stopped in
// wants. Most bytes of a GeoJSON pass through here.
func numberArrays(b []byte, i int, list bool, box *Bounds) (n, next, want int) {
	for {
		n++
		start := i + 1
		i = start
		last := byte('[') // the last byte that was not white space
		for {
			from := i
			for i+24 <= len(b) {
				run := numericBytes(b[i : i+24])
				i += run
				if run < 24 {
					break
				}
			}
			for i < len(b) && (isNumeric(b[i]) || b[i] == ' ') { // the text's last bytes
				i++
			}
			for end := i; end > from; end-- {
				if b[end-1] != ' ' {
					last = b[end-1]
					break
				}
			}
			if i >= len(b) {
				return n, i, wantNext
			}
			if b[i] == ']' {
				break
			}
			if b[i] <= ' ' {
				from, i = i, skipSpace(b, i)
				if i > from {
					continue
				}
			} else if b[i]|0x20 == 'e' && isDigit(last) {
				i++
				continue
			}
			if last == ',' {
				return n, i, wantValue
			}
			return n, i, wantNext
		}
		if last == ',' { // a comma before the bracket: no JSON
			return n, i, wantValue
		}
		if box != nil {
			*box = box.with(b[start:i])
		}
		i++
		if !list || i >= len(b) || b[i] != ',' {
			return n, i, wantClosed
		}
		bracket := i + 1
		if bracket < len(b) && b[bracket] <= ' ' {
			bracket = skipSpace(b, bracket)
		}
		if bracket >= len(b) || b[bracket] != '[' {
			return n, i, wantClosed
		}
		first := bracket + 1
		if first < len(b) && b[first] <= ' ' {
			first = skipSpace(b, first)
		}
		if first >= len(b) || b[first] != '-' && !isDigit(b[first]) {
			return n, i, wantClosed
		}
		i = bracket
	}
}

// stringEnd gives the index of the quote that ends the string whose first byte
// is at i. It holds the string to the grammar of RFC 8259 7, so that all parsers
// see it end there: no control characters, no unknown escapes.
func stringEnd(b []byte, i int) (end int, escaped bool, how reading) {
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			quote, back := w^'"'*ones, w^'\\'*ones
			stop := ((quote-ones)&^quote | (back-ones)&^back | (w-' '*ones)&^w) & highs
			if stop != 0 {
				i += bits.TrailingZeros64(stop) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return i, escaped, open
		}
		switch c := b[i]; {
		case c == '"':
			return i, escaped, complete
		case c == '\\':
			escaped = true
			if i+1 >= len(b) {
				return i, true, open
			}
			switch b[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i += 2
			case 'u':
				if i+6 > len(b) {
					return i, true, open
				}
				if unhex(b[i+2])|unhex(b[i+3])|unhex(b[i+4])|unhex(b[i+5]) > 15 {
					return i, true, malformed
				}
				i += 6
			default:
				return i, true, malformed
			}
		case c < ' ':
			return i, escaped, malformed
		default: // one of the text's last bytes
			i++
		}
	}
}

// literalEnd gives the index after the true, false or null at i.
func literalEnd(b []byte, i int) (int, reading) {
	literal := "true"
	switch b[i] {
	case 'f':
		literal = "false"
	case 'n':
		literal = "null"
	}
	got := b[i:min(i+len(literal), len(b))]
	switch {
	case string(got) != literal[:len(got)]:
		return i, malformed
	case len(got) < len(literal):
		return i, open
	}
	return i + len(literal), complete
}

// numberEnd gives the index after the number at i.
func numberEnd(b []byte, i int) int {
	for i < len(b) && (isNumeric(b[i]) && b[i] != ',' || b[i]|0x20 == 'e') {
		i++
	}
	return i
}
