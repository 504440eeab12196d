package classify

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// CountGML counts the geometry of an XML document: of GML 2 and 3 (OGC 02-069,
// 07-036) in any request, and of KML and GPX. Only local names are looked at.
//
// A vertex is a pos, a coord, each srsDimension numbers of a posList (2 where it
// and its ancestors do not say; 3 and 4 are believed), and each tuple of
// coordinates; an Envelope or a Box has at least 4. A feature is what stands in
// an Insert, a member, a featureMember or featureMembers, or a KML Placemark;
// a geometry that is in none is one.
//
// Malformed says that the document does not end well, nests deeper than 100
// elements, has more than 64 attributes or 64 KiB in one, or has a document
// type. It takes one pass, time linear in the length, and no memory.
func CountGML(b []byte) Geometry {
	g, how := scanGML(b, nil)
	g.Malformed = how != complete
	return g
}

// scanGML is CountGML that tells an open end from a malformed document.
func scanGML(b []byte, box *Bounds) (Geometry, reading) {
	var x xmlScan
	return scanGMLWith(&x, b, box)
}

// scanGMLWith is scanGML for many documents, with one scanner.
func scanGMLWith(x *xmlScan, b []byte, box *Bounds) (Geometry, reading) {
	x.reset(b)
	g := gmlCount{box: box}
	for {
		event := x.next()
		if event == xmlDone {
			return g.total(), x.how
		}
		g.see(x, event)
	}
}

// gmlCount counts the geometry of a document that [xmlScan] walks.
type gmlCount struct {
	features int
	vertices int
	box      *Bounds // nil where nobody asks for it

	// The element whose text is counted: none, or the one at this depth.
	kind   gmlKind
	depth  int
	words  int  // that began
	inWord bool // the last byte was of one
	ts     byte // what separates tuples beside white space; 0 is nothing
	tuples int  // of those, how many ended
	pieces int  // of text, of which bounds need just one

	envelope      int // depth of the outermost one; 0 is none
	envelopeStart int // vertices before it

	dims  [maxXMLDepth + 1]uint8 // of positions in the element at each depth; 0 is not said
	holds [maxXMLDepth + 1]bool  // whether what is in the element at each depth is a feature
}

// gmlKind says how an element's text is counted.
type gmlKind uint8

const (
	gmlOther  gmlKind = iota
	gmlPos            // one position
	gmlList           // positions, without anything between them
	gmlTuples         // tuples
	gmlCorner         // one position of an envelope, that counts by itself
)

// total gives what was counted, of elements that are still open as well.
func (g *gmlCount) total() Geometry {
	g.close()
	features := g.features
	if features == 0 && g.vertices > 0 {
		features = 1
	}
	return Geometry{Features: float64(features), Vertices: float64(g.vertices)}
}

func (g *gmlCount) see(x *xmlScan, event xmlEvent) {
	switch event {
	case xmlText:
		if g.kind != gmlOther {
			g.read(x.text, x.literal)
		}
	case xmlStart:
		g.start(x)
	case xmlEnd:
		if g.kind != gmlOther && x.depth < g.depth {
			g.close()
		}
		if g.envelope > x.depth {
			g.vertices = max(g.vertices, g.envelopeStart+4)
			g.envelope = 0
		}
	case xmlDone:
	}
}

func (g *gmlCount) start(x *xmlScan) {
	d := x.depth
	g.dims[d] = g.dims[d-1]
	if x.n > 0 {
		if c := x.character("srsDimension"); c >= '2' && c <= '4' {
			g.dims[d] = c - '0'
		}
	}
	g.holds[d] = false
	collection := false
	kind := gmlOther
	switch string(x.name) {
	case "posList":
		kind = gmlList
	case "pos":
		kind = gmlPos
	case "coordinates":
		kind = gmlTuples
	case "lowerCorner", "upperCorner":
		if g.box == nil {
			break
		}
		kind = gmlCorner
	case "coord":
		g.vertices++
		g.unbound()
	case "trkpt", "rtept", "wpt":
		g.vertices++
		g.unbound()
	case "Envelope", "Box":
		if g.envelope == 0 {
			g.envelope, g.envelopeStart = d, g.vertices
		}
	case "Insert", "member", "featureMember", "featureMembers":
		g.holds[d] = true
		collection = true
	case "FeatureCollection":
		collection = true
	case "Placemark":
		g.features++
	}
	if g.holds[d-1] && !collection {
		g.features++
	}
	// What stands inside of an element whose text is counted is counted with it:
	// some readers take such an element's text, whatever else is in it.
	if kind == gmlOther || g.kind != gmlOther {
		return
	}
	g.kind, g.depth = kind, d
	if kind != gmlTuples {
		return
	}
	if c := x.character("ts"); c > ' ' {
		g.ts = c
	}
}

// close ends the element whose text was counted.
func (g *gmlCount) close() {
	dims := max(2, int(g.dims[g.depth]))
	switch g.kind {
	case gmlOther:
		return
	case gmlPos:
		// A position of more than four numbers is a list under another name.
		if g.words <= 4 {
			g.vertices++
			break
		}
		g.vertices += (g.words + dims - 1) / dims
	case gmlList:
		g.vertices += (g.words + dims - 1) / dims
	case gmlTuples:
		tuples := 0
		if g.words > 0 && g.ts != 0 {
			tuples = g.tuples + 1
		}
		// Some readers do not look at ts.
		g.vertices += max(tuples, g.words)
	case gmlCorner:
	}
	g.kind, g.words, g.inWord, g.ts, g.tuples, g.pieces = gmlOther, 0, false, 0, 0, 0
}

// read counts a piece of text. Comments may cut one number into two pieces.
func (g *gmlCount) read(s []byte, literal bool) {
	if g.box != nil {
		g.bound(s)
	}
	if !literal && bytes.IndexByte(s, '&') >= 0 {
		g.readReferences(s)
		return
	}
	if g.ts != 0 {
		g.tuples += bytes.Count(s, []byte{g.ts})
	}
	words, before := 0, uint64(0x80) // whether the byte before was white space
	if g.inWord {
		before = 0
	}
	for len(s) >= 8 {
		space := spaces(binary.LittleEndian.Uint64(s))
		words += bits.OnesCount64((space<<8 | before) &^ space)
		before = space >> 56
		s = s[8:]
	}
	inWord := before == 0
	for _, c := range s {
		if c > ' ' && !inWord {
			words++
		}
		inWord = c > ' '
	}
	g.words += words
	g.inWord = inWord
}

// readReferences counts a piece of text that has references in it.
func (g *gmlCount) readReferences(s []byte) {
	for i := 0; i < len(s); {
		c, n := s[i], 1
		if c == '&' {
			if c, n = reference(s[i:]); c == 0 {
				c = 'x'
			}
		}
		i += n
		if c > ' ' && !g.inWord {
			g.words++
		}
		g.inWord = c > ' '
		if g.ts != 0 && c == g.ts {
			g.tuples++
		}
	}
}

// spaces marks the bytes of a word that are white space, in their highest bit.
func spaces(w uint64) uint64 {
	return ^(((w | highs) - '!'*ones) | w) & highs
}

// bound widens the bounds by the positions of a piece of text.
func (g *gmlCount) bound(s []byte) {
	g.pieces++
	if g.pieces > 1 || bytes.IndexByte(s, '&') >= 0 || g.ts != 0 {
		g.unbound()
		return
	}
	dims := max(2, int(g.dims[g.depth]))
	if g.kind == gmlTuples {
		for s = skipWhite(s); len(s) > 0; s = skipWhite(s) {
			end := 0
			for end < len(s) && s[end] > ' ' {
				end++
			}
			*g.box = g.box.with(s[:end])
			s = s[end:]
		}
		return
	}
	for s = skipWhite(s); len(s) > 0; s = skipWhite(s) {
		position := s
		for range dims {
			for len(s) > 0 && s[0] > ' ' {
				s = s[1:]
			}
			s = skipWhite(s)
		}
		*g.box = g.box.with(position)
		if g.kind != gmlList {
			return
		}
	}
}

func skipWhite(s []byte) []byte {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	return s
}

// unbound gives up on bounds: there is a position that was not read.
func (g *gmlCount) unbound() {
	if g.box != nil {
		*g.box = everywhere
	}
}
