package classify

import (
	"bytes"
	"math"
	"strings"
)

// UnknownBodyBytes is the length taken for a body that is longer than what was
// read of it and whose length nobody said: 64 MiB, the longest body that a job
// keeps by default. Such a body is priced as if it went on like its beginning
// up to here.
const UnknownBodyBytes = 64 << 20

// The shortest that a vertex and a feature can be, in bytes: "[1]," and
// "\"type\":\"Feature\"". What cannot be read is priced as if it were full of
// them.
const (
	minVertexBytes  = 4
	minFeatureBytes = 16
)

// Geometry is what one pass over a request's geometry counts. What is counted
// for what is said by [CountGeoJSON], [CountWKT] and [CountBody].
type Geometry struct {
	// Features are the features of a collection; 1 where there is a geometry
	// but no feature; the geometry texts of a WKT.
	Features float64
	// Vertices are positions, the one that closes a ring included. A position
	// counts once, however many dimensions it has.
	Vertices float64
	// Malformed says that the input could not be read in one way. The counts of
	// CountGeoJSON and CountWKT are then what was seen before that, and the
	// caller prices the byte bound; those of CountBody are that bound.
	Malformed bool
}

// add sums two counts: of two texts in one request.
func (g Geometry) add(o Geometry) Geometry {
	return Geometry{Features: g.Features + o.Features, Vertices: g.Vertices + o.Vertices, Malformed: g.Malformed || o.Malformed}
}

// atBound is the dearest that a text of so many bytes can be, and at least what
// was seen of it.
func (g Geometry) atBound(length float64) Geometry {
	return Geometry{
		Features:  max(g.Features, 1, math.Ceil(length/minFeatureBytes)),
		Vertices:  max(g.Vertices, math.Ceil(length/minVertexBytes)),
		Malformed: true,
	}
}

// reading says how far a text could be read. Of two texts the greater one counts.
type reading uint8

const (
	complete  reading = iota // to its end
	open                     // as far as it goes: it ends inside of something
	malformed                // up to something that readers differ on, or that none accepts
)

// CountBody counts the geometry of a body from what was read of it.
//
// The first byte says what it is: JSON is counted as by [CountGeoJSON], letters
// as by [CountWKT], XML as by [CountGML]; of a form (application/x-www-form-urlencoded) each value is
// counted. Content codings (contentEncoding is the header's value, with commas)
// are undone first, up to [maxDecoded] bytes and [maxRatio] times the coded
// length.
//
// What was not read is estimated:
//
//   - A whole body is counted exactly.
//   - A longer one with a known length is taken to go on as it began, with at
//     most one vertex in 4 bytes.
//   - A longer one without is taken to be [UnknownBodyBytes] long.
//   - One that is malformed, in a form that is not read, or that does not fit
//     into the limits of decoding counts one vertex in 4 bytes and one feature
//     in 16 and is Malformed; where it is coded, it counts as if it decoded to
//     maxRatio times its length.
//
// It never fails, decodes no more than the limits, and takes time linear in the
// length of the prefix and what that decodes to.
func CountBody(body Body, contentEncoding, contentType string) Geometry {
	if body.empty() || body.Whole && len(body.Prefix) == 0 {
		return Geometry{}
	}
	read := float64(len(body.Prefix))
	length := float64(body.Length)
	whole := body.Whole || body.Length >= 0 && length <= read
	switch {
	case whole:
		length = read
	case body.Length < 0:
		length = max(read, UnknownBodyBytes)
	}
	if read == 0 {
		return Geometry{}.atBound(length)
	}

	room := borrow()
	defer giveBack(room)
	text, share, how := room.decode(body.Prefix, contentEncoding)
	if how == malformed {
		return Geometry{}.atBound(length * maxRatio)
	}
	// From here on the length is that of the decoded text: what was not decoded
	// is taken to decode as what was did.
	scale := length / (read * share)
	length = float64(len(text)) * scale

	g, counted := countText(text, contentType, nil)
	how = max(how, counted)
	if whole && how == complete {
		return g
	}
	scaled := Geometry{Features: g.Features * scale, Vertices: g.Vertices * scale}
	if whole || how == malformed {
		return scaled.atBound(length)
	}
	g.Features = max(g.Features, min(scaled.Features, math.Ceil(length/minFeatureBytes)))
	g.Vertices = max(g.Vertices, min(scaled.Vertices, math.Ceil(length/minVertexBytes)))
	return g
}

// countText counts a decoded text by what its first byte says it is.
func countText(b []byte, contentType string, box *Bounds) (Geometry, reading) {
	if isForm(contentType) {
		return countForm(b, box)
	}
	b = bytes.TrimLeft(trimBOM(b), " \t\r\n")
	if len(b) == 0 {
		return Geometry{}, complete
	}
	switch c := b[0]; {
	case c == '{' || c == '[' || c == '"' || c == recordSeparator || c == '-' || isDigit(c):
		return scanGeoJSON(b, box)
	case isLetter(c) || c == '(' || c == '\'':
		return scanWKT(b, box)
	case c == '<':
		return scanGML(b, box)
	default: // WKB, pictures: counted by no reader of this package
		return Geometry{}, malformed
	}
}

// countForm counts the values of a form, percent-decoded. Only '&' ends one here:
// what a ';' would cut off is counted as part of the value before it.
func countForm(b []byte, box *Bounds) (Geometry, reading) {
	room := borrow()
	defer giveBack(room)
	var sum Geometry
	how := complete
	for len(b) > 0 {
		pair := b
		if i := bytes.IndexByte(b, '&'); i >= 0 {
			pair, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		_, value, _ := bytes.Cut(pair, []byte{'='})
		room.out = appendUnescapedForm(room.out[:0], value)
		value = bytes.TrimLeft(room.out, " \t\r\n")
		if len(value) == 0 {
			continue
		}
		if value[0] != '{' && value[0] != '[' {
			g, r := scanWKT(value, box)
			sum, how = sum.add(g), max(how, r)
			continue
		}
		g, r := scanGeoJSON(value, box)
		sum, how = sum.add(g), max(how, r)
	}
	return sum, how
}

// appendUnescapedForm undoes the encoding of a form's value. A '%' that begins
// no escape stays, as most readers have it.
func appendUnescapedForm(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '+' {
			c = ' '
		} else if c == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi|lo < 16 {
				c = hi<<4 | lo
				i += 2
			}
		}
		dst = append(dst, c)
	}
	return dst
}

func isForm(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded")
}

// trimBOM takes a UTF-8 byte order mark off: RFC 8259 8.1 lets a reader ignore it.
func trimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }

func isDigit(c byte) bool  { return c-'0' < 10 }
func isLetter(c byte) bool { return c|0x20-'a' < 26 }

// unhex gives a hexadecimal digit's value, or 255.
func unhex(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c|0x20-'a' < 6:
		return c | 0x20 - 'a' + 10
	}
	return 255
}
