package classify

import (
	"bytes"
	"math"
)

// crs is a coordinate reference system, as far as a request's price needs it.
// The zero value is one that nothing is known of.
type crs struct {
	code int // EPSG's; 4326 for CRS84; 0 where it is unknown
	// order says how its axes come where the service follows the authority:
	// WMS 1.3.0, and the long names in WFS 1.1 and WCS 2.0.
	order axisOrder
	long  bool // named by a URN or a URL of OGC's, which follow the authority
}

type axisOrder uint8

const (
	axesUnknown axisOrder = iota
	axesXY
	axesYX
)

// extent says what the numbers of a reference system measure.
type extent uint8

const (
	extentUnknown extent = iota
	extentDegrees
	extentMercator
	extentMetres
)

// parseCRS reads EPSG:4326, CRS:84, OGC:CRS84, urn:ogc:def:crs:EPSG::4326,
// http://www.opengis.net/def/crs/EPSG/0/4326 and their older forms.
func parseCRS(name []byte) crs {
	end := len(name)
	start := end
	for start > 0 && isDigit(name[start-1]) {
		start--
	}
	code, ok := small(string(name[start:end]))
	if !ok {
		return crs{}
	}
	head := name[:start]
	switch {
	case hasSuffixFold(head, "crs:") || hasSuffixFold(head, "crs"):
		switch code { // CRS84 and its like with other datums
		case 84, 83, 27:
			return crs{code: 4326, order: axesXY}
		}
		return crs{}
	case hasPrefixFold(name, "epsg:"):
		c := crs{code: code, order: orderOf(code)}
		return c.renamed()
	case !containsFoldBytes(head, "epsg"):
		return crs{}
	}
	// "http://www.opengis.net/gml/srs/epsg.xml#4326" is x before y by convention.
	c := crs{code: code, order: orderOf(code), long: bytes.IndexByte(name, '#') < 0}
	return c.renamed()
}

// renamed knows the older names of web mercator.
func (c crs) renamed() crs {
	switch c.code {
	case 900913, 3785, 102100, 102113:
		c.code, c.order = 3857, axesXY
	}
	return c
}

// orderOf gives EPSG's order of axes where a range of codes has one: the
// geographic systems have the latitude first, UTM and web mercator the easting.
func orderOf(code int) axisOrder {
	switch {
	case code >= 4001 && code <= 4999 && (code < 4400 || code > 4599):
		return axesYX
	case code == 3857, code >= 32601 && code <= 32660, code >= 32701 && code <= 32760, code >= 25828 && code <= 25838:
		return axesXY
	}
	return axesUnknown
}

func (c crs) extent() extent {
	switch code := c.code; {
	case code >= 4001 && code <= 4999:
		return extentDegrees
	case code == 3857:
		return extentMercator
	// Projected systems. Those in feet cover less than their numbers say.
	case code >= 2000 && code <= 3999, code >= 20000 && code <= 32766:
		return extentMetres
	}
	return extentUnknown
}

// axes gives the order in which a box in this system is written. Short names
// mean x before y but for WMS 1.3.0 (OGC 06-042, 6.7.2), which byAuthority says.
func (c crs) axes(byAuthority bool) axisOrder {
	if c.code == 0 {
		return axesUnknown
	}
	if byAuthority || c.long {
		return c.order
	}
	return axesXY
}

// The sizes of the earth.
const (
	mercatorSide = 40075016.685578488 // metres of a side of web mercator's square
	earthArea    = 5.1e14             // square metres
)

// window is a box as a request writes it.
type window struct {
	box  [4]float64
	crs  crs
	axes axisOrder
	some bool
	bad  bool // there is one, which cannot be read
}

// bounds gives the window with x before y, and its system. They are empty where
// the order is not known.
func (w *window) bounds() (Bounds, int) {
	switch {
	case !w.some || w.bad:
		return Bounds{}, 0
	case w.axes == axesXY:
		return Bounds{w.box[0], w.box[1], w.box[2], w.box[3], true}, w.crs.code
	case w.axes == axesYX:
		return Bounds{w.box[1], w.box[0], w.box[3], w.box[2], true}, w.crs.code
	}
	return Bounds{}, 0
}

// share gives the share of the world that the window covers, in [0, 1]; -1
// where there is none. What cannot be read is the world, and so is a box of
// numbers that are no degrees in a system that is not known.
func (w *window) share() float64 {
	if !w.some && !w.bad {
		return -1
	}
	if w.bad {
		return 1
	}
	dx, dy := w.box[2]-w.box[0], w.box[3]-w.box[1]
	switch w.crs.extent() {
	case extentMercator:
		return min(1, math.Abs(dx*dy)/(mercatorSide*mercatorSide))
	case extentMetres:
		return min(1, math.Abs(dx*dy)/earthArea)
	case extentUnknown:
		for _, x := range w.box {
			if math.Abs(x) > 180 {
				return 1
			}
		}
	case extentDegrees:
	}
	// The longitude may cross the antimeridian; which of the two it is does not
	// always stand there.
	if dx < 0 && w.axes != axesYX {
		dx += 360
	}
	if dy < 0 && w.axes != axesXY {
		dy += 360
	}
	return min(1, math.Abs(dx*dy)/(360*180))
}

// readBox reads a box of 4 numbers, or of 6 with the third and the sixth left
// out, perhaps followed by the name of its reference system (WFS, WCS 1.1).
func (w *window) readBox(value escaped) {
	var buf [512]byte
	w.some = true
	if len(value) > len(buf) {
		w.bad = true
		return
	}
	text := value.appendText(buf[:0])
	var box [6]float64
	n := 0
	for len(text) > 0 {
		item, rest, _ := bytes.Cut(text, []byte{','})
		x, ok := 0.0, false
		if len(item) <= maxNumber {
			x, ok = parseNumber(string(item))
		}
		if !ok || n == len(box) {
			break
		}
		box[n] = x
		n++
		text = rest
	}
	if len(text) > 0 {
		if c := parseCRS(bytes.TrimSpace(text)); c.code != 0 || isLetter(text[0]) {
			w.crs = c
		} else {
			w.bad = true
		}
	}
	switch n {
	case 4:
		w.box = [4]float64(box[:4])
	case 6:
		w.box = [4]float64{box[0], box[1], box[3], box[4]}
	default:
		w.bad = true
	}
}

// widen reads a box, and keeps the larger where there is one already.
func (w *window) widen(value escaped) {
	other := *w
	other.readBox(value)
	if !w.some || other.bad || !w.bad && other.area() > w.area() {
		*w = other
	}
}

// area is that of the box in its own units. It compares boxes of one system.
func (w *window) area() float64 {
	return math.Abs((w.box[2] - w.box[0]) * (w.box[3] - w.box[1]))
}

// readCRS reads the name of a reference system.
func readCRS(value escaped) crs {
	var buf [128]byte
	if len(value) > len(buf) {
		return crs{}
	}
	return parseCRS(bytes.TrimSpace(value.appendText(buf[:0])))
}

func hasPrefixFold(s []byte, prefix string) bool {
	return len(s) >= len(prefix) && bytesFold(s[:len(prefix)], prefix)
}

func hasSuffixFold(s []byte, suffix string) bool {
	return len(s) >= len(suffix) && bytesFold(s[len(s)-len(suffix):], suffix)
}

// bytesFold compares with what is in lower case.
func bytesFold(s []byte, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i, c := range s {
		if c-'A' < 26 {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func containsFoldBytes(s []byte, lower string) bool {
	for i := 0; i+len(lower) <= len(s); i++ {
		if bytesFold(s[i:i+len(lower)], lower) {
			return true
		}
	}
	return false
}
