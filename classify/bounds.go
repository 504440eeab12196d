package classify

import (
	"bytes"
	"math"
	"strconv"
)

// Bounds is the bounding box of positions, in whatever unit and order of axes
// they have: X is each position's first number. The zero value is empty.
type Bounds struct {
	MinX, MinY, MaxX, MaxY float64
	some                   bool // not empty
}

// Empty reports whether the bounds are of nothing.
func (b Bounds) Empty() bool { return !b.some }

// everywhere are the bounds of a position that cannot be read: the dearest.
var everywhere = Bounds{math.Inf(-1), math.Inf(-1), math.Inf(1), math.Inf(1), true}

// BoundsGeoJSON gives the bounding box of the positions that [CountGeoJSON]
// counts. A position whose numbers cannot be read makes it infinite. Reading
// numbers takes about ten times as long as counting, so it is a pass of its own
// for those who need it.
func BoundsGeoJSON(b []byte) Bounds {
	var box Bounds
	scanGeoJSON(b, &box)
	return box
}

// BoundsWKT is [BoundsGeoJSON] for the vertices that [CountWKT] counts.
func BoundsWKT(s []byte) Bounds {
	var box Bounds
	scanWKT(s, &box)
	return box
}

// BoundsBody is [BoundsGeoJSON] for what [CountBody] counts in what was read of
// a body. It is infinite where nothing can be read of it.
func BoundsBody(body Body, contentEncoding, contentType string) Bounds {
	if body.empty() || body.Whole && len(body.Prefix) == 0 {
		return Bounds{}
	}
	room := borrow()
	defer giveBack(room)
	text, _, how := room.decode(body.Prefix, contentEncoding)
	if how == malformed {
		return everywhere
	}
	var box Bounds
	if _, how := countText(text, contentType, &box); how == malformed {
		return everywhere
	}
	return box
}

// with gives the bounds widened by a position's first two numbers, which stand
// at the beginning of s, a comma or white space between them.
func (b Bounds) with(s []byte) Bounds {
	x, s, okX := cutNumber(s)
	y, _, okY := cutNumber(s)
	if !okX || !okY {
		return everywhere
	}
	if !b.some {
		return Bounds{x, y, x, y, true}
	}
	return Bounds{min(b.MinX, x), min(b.MinY, y), max(b.MaxX, x), max(b.MaxY, y), true}
}

// cutNumber reads the number at the beginning of s. It must be finite, at most
// 32 bytes long, and made of digits, signs, a point and an exponent: strconv
// alone would take "0x1p-2", "1_0" and "NaN" as well.
func cutNumber(s []byte) (value float64, rest []byte, ok bool) {
	s = bytes.TrimLeft(s, ", \t\r\n")
	end := 0
	for end < len(s) && (isNumeric(s[end]) && s[end] != ',' || s[end]|0x20 == 'e') {
		end++
	}
	if end == 0 || end > 32 {
		return 0, s, false
	}
	value, err := strconv.ParseFloat(string(s[:end]), 64)
	return value, s[end:], err == nil
}
