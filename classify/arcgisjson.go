package classify

// scanArcGIS counts the geometry of ArcGIS JSON, in one pass and without memory:
//
//   - A vertex is an array that begins with a number, anywhere inside of an array
//     that is the value of a member "rings", "paths", "points", or their curved
//     forms; a member "x" outside of these is one too, and "xmin" is four.
//   - A feature is an object in an array that is the text, or the value of a
//     member "features" or "geometries". Where there is none, a geometry makes one.
//
// An attribute of such a name counts too, which errs to the dear side.
func scanArcGIS(b []byte) (Geometry, reading) {
	var (
		i                  = 0
		kinds              uint64 // of the open brackets, the innermost lowest: 1 for an object
		collections        uint64 // which of them are arrays of features
		depth              int
		coords             int // depth inside of the outermost array of coordinates; 0 outside of any
		features, vertices int
		name               arcgisName // of the value that comes next
		expect             bool       // a name comes next, if it is a string
	)
	b = trimBOM(b)
	result := func(how reading) (Geometry, reading) {
		g := Geometry{Features: float64(features), Vertices: float64(vertices)}
		if features == 0 && vertices > 0 {
			g.Features = 1
		}
		return g, how
	}
	for {
		if i < len(b) && b[i] <= ' ' {
			from := i
			if i = skipSpace(b, i); i == from {
				return result(malformed)
			}
		}
		if i >= len(b) {
			if depth > 0 {
				return result(open)
			}
			return result(complete)
		}
		switch c := b[i]; c {
		case '"':
			end, escaped, how := stringEnd(b, i+1)
			if how != complete {
				return result(how)
			}
			if expect {
				name = arcgisNameOf(b[i+1:end], escaped)
				expect = false
			} else {
				name = arcgisOther
			}
			i = end + 1
		case ',':
			name, expect = arcgisOther, kinds&1 == 1
			i++
		case ':':
			i++
		case '{':
			if depth == maxBrackets {
				return result(malformed)
			}
			features += int(collections & 1)
			depth++
			kinds, collections = kinds<<1|1, collections<<1
			name, expect = arcgisOther, true
			i++
		case '[':
			if depth == maxBrackets {
				return result(malformed)
			}
			if name == arcgisCoords && coords == 0 {
				coords = depth + 1
			}
			collects := uint64(0)
			if name == arcgisCollection || depth == 0 {
				collects = 1
			}
			name, expect = arcgisOther, false
			if coords > 0 {
				if first := skipSpace(b, i+1); first < len(b) && (b[first] == '-' || isDigit(b[first])) {
					n, next, then := numberArrays(b, i, depth > 0 && kinds&1 == 0, nil)
					vertices += n
					i = next
					if then == wantClosed {
						if depth < coords {
							coords = 0
						}
						continue
					}
					depth++
					kinds, collections = kinds<<1, collections<<1|collects
					continue
				}
			}
			depth++
			kinds, collections = kinds<<1, collections<<1|collects
			i++
		case '}', ']':
			if depth == 0 || c != "]}"[kinds&1] {
				return result(malformed)
			}
			depth--
			kinds, collections = kinds>>1, collections>>1
			if depth < coords {
				coords = 0
			}
			name, expect = arcgisOther, false
			i++
		case 't', 'f', 'n':
			var how reading
			if i, how = literalEnd(b, i); how != complete {
				return result(how)
			}
			name = arcgisOther
		default:
			if c != '-' && !isDigit(c) {
				return result(malformed)
			}
			if coords == 0 {
				switch name {
				case arcgisX:
					vertices++
				case arcgisXMin:
					vertices += 4
				case arcgisOther, arcgisCoords, arcgisCollection:
				}
			}
			name = arcgisOther
			i = numberEnd(b, i)
		}
	}
}

// arcgisName is a member's name, as far as it matters.
type arcgisName uint8

const (
	arcgisOther arcgisName = iota
	arcgisCoords
	arcgisCollection
	arcgisX
	arcgisXMin
)

func arcgisNameOf(s []byte, escaped bool) arcgisName {
	if escaped {
		const longest = len(`\u0063`) * len("curveRings")
		if len(s) > longest {
			return arcgisOther
		}
		var room [longest]byte
		s = appendUnescaped(room[:0], s)
	}
	switch string(s) {
	case "rings", "paths", "points", "curveRings", "curvePaths":
		return arcgisCoords
	case "features", "geometries":
		return arcgisCollection
	case "x":
		return arcgisX
	case "xmin":
		return arcgisXMin
	}
	return arcgisOther
}

// countEsri counts the geometry in a value of a request: ArcGIS JSON, GeoJSON as
// some take it, or bare numbers ("x,y" or "xmin,ymin,xmax,ymax"). What cannot be
// read is the dearest.
func countEsri(value escaped) Geometry {
	room := borrow()
	defer giveBack(room)
	room.out = value.appendText(room.out[:0])
	text := room.out
	i := skipSpace(text, 0)
	if i == len(text) {
		return Geometry{}
	}
	if text[i] != '{' && text[i] != '[' {
		n := value.items()
		return Geometry{Features: 1, Vertices: float64(int(n+1) / 2)}
	}
	g, how := scanArcGIS(text)
	if other, _ := scanGeoJSON(text, nil); other.Vertices > g.Vertices {
		g = other
	}
	if how != complete {
		g = g.atBound(float64(len(text)))
	}
	return g
}
