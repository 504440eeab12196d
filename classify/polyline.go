package classify

import "bytes"

// polylinePoints counts the points of an encoded polyline: each number ends
// with a byte below 63+32, and a point has two numbers. The precision does not
// matter. In a JSON string (quoted) a backslash, which ends a number, stands as
// two. What is no polyline counts as the longest that it could be, and one with
// heights as half as long again as it is.
func polylinePoints(s []byte, quoted bool) float64 {
	ends := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 63 || c > 126 {
			return float64(len(s)/2 + 1)
		}
		if c < 63+32 {
			ends++
			if quoted && c == '\\' && i+1 < len(s) && s[i+1] == '\\' {
				i++
			}
		}
	}
	return float64((ends + 1) / 2)
}

// pathPoints counts the points in the path of a request to OSRM:
// "4.9,52.4;4.5,51.9", or "polyline(...)" with its escapes.
func pathPoints(segment string) float64 {
	var room [256]byte
	text := room[:0]
	for i := 0; i < len(segment); {
		var c byte
		if c = segment[i]; c == '+' { // a space in queries only
			i++
		} else {
			c, i = escaped(segment).at(i)
		}
		text = append(text, c)
	}
	for _, prefix := range [...]string{"polyline(", "polyline6("} {
		if len(text) < len(prefix) || string(text[:len(prefix)]) != prefix {
			continue
		}
		inside := text[len(prefix):]
		if i := bytes.LastIndexByte(inside, ')'); i >= 0 { // perhaps before ".json"
			inside = inside[:i]
		}
		return polylinePoints(inside, false)
	}
	n := 1
	for _, c := range text {
		if c == ';' {
			n++
		}
	}
	return float64(n)
}
