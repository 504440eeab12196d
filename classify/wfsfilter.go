package classify

import "bytes"

// wfsFilter reads Filter Encoding 1.0, 1.1 and 2.0 (OGC 02-059, 04-095, 09-026r2)
// as far as it says how much is read: what is named, and what a window or a
// geometry bounds.
type wfsFilter struct {
	// Of every filter that was read.
	ids       float64 // features that are named
	spatial   bool    // a geometry bounds one
	compares  bool    // one looks at other properties
	scanned   bool    // one does nothing else, which no spatial index helps
	unbounded bool    // one is bounded by no window and names no features
	share     float64 // the largest of their windows, of the world
	window    window
	named     bool // the last one does nothing but name features

	// Of the one that is being read.
	depth   int  // of the Filter; 0 outside of one
	loose   bool // what it names is not all of what it finds: an or, a not
	negated bool
	bounds  bool
	differs bool
	here    float64
	element bool // whose text is a corner
	inBBOX  int  // depth of the BBOX; 0 outside
	numbers [4]float64
	n       int
	crs     crs
}

func (f *wfsFilter) begin(depth int) {
	f.depth, f.inBBOX, f.n, f.here = depth, 0, 0, 0
	f.loose, f.negated, f.bounds, f.differs, f.element = false, false, false, false, false
	f.crs = crs{}
}

// end closes the filter: a window bounds it where nothing in it says otherwise.
func (f *wfsFilter) end() {
	f.depth = 0
	f.spatial = f.spatial || f.bounds
	f.compares = f.compares || f.differs
	f.scanned = f.scanned || f.differs && !f.bounds
	f.named = f.here > 0 && !f.bounds && !f.differs && !f.negated
	f.ids += f.here
	if f.n == 0 || f.loose {
		f.unbounded = f.unbounded || !f.named
		return
	}
	w := window{some: true, bad: f.n != 4, box: f.numbers, crs: f.crs, axes: f.crs.axes(false)}
	if share := w.share(); share > f.share {
		f.share, f.window = share, w
	}
}

func (f *wfsFilter) start(x *xmlScan) {
	f.element = false
	if f.depth == 0 {
		return
	}
	if f.inBBOX >= x.depth {
		f.inBBOX = 0
	}
	switch string(x.name) {
	case "FeatureId", "GmlObjectId", "ResourceId":
		f.here++
	case "Or":
		f.loose = true
	case "Not":
		f.loose, f.negated = true, true
	case "Disjoint", "Beyond":
		f.loose, f.bounds = true, true
	case "BBOX":
		f.bounds = true
		f.inBBOX = x.depth
		if f.n > 0 { // of two boxes the greater one would do; we do not look
			f.loose = true
		}
	case "Envelope", "Box":
		if name, ok := x.attr("srsName"); ok && f.inBBOX > 0 {
			f.crs = parseCRS(bytes.TrimSpace(name))
		}
	case "lowerCorner", "upperCorner", "coordinates":
		f.element = f.inBBOX > 0
	case "Intersects", "Within", "Contains", "Overlaps", "Touches", "Crosses", "Equals", "DWithin":
		f.bounds = true
	default:
		name := x.name
		if bytes.HasPrefix(name, []byte("PropertyIs")) || string(name) == "During" || string(name) == "Function" {
			f.differs = true
		}
	}
}

// text reads the corners of a BBOX.
func (f *wfsFilter) text(s []byte) {
	if !f.element {
		return
	}
	for s = skipSeparators(s); len(s) > 0 && f.n < 4; s = skipSeparators(s) {
		end := 0
		for end < len(s) && s[end] > ' ' && s[end] != ',' {
			end++
		}
		x, ok := 0.0, false
		if end <= maxNumber {
			x, ok = parseNumber(string(s[:end]))
		}
		if !ok {
			f.loose = true
			return
		}
		f.numbers[f.n] = x
		f.n++
		s = s[end:]
	}
	f.element = false
}

func skipSeparators(s []byte) []byte {
	for len(s) > 0 && (s[0] <= ' ' || s[0] == ',') {
		s = s[1:]
	}
	return s
}
