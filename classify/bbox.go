package classify

import "strings"

// worldShare reads e as a bbox of 4 numbers, or of 6 with the heights left out,
// and gives the share of the world that it covers, in [0, 1]. False is what is
// no bbox.
//
// West greater than east crosses the antimeridian: two boxes (OGC API Features
// Part 1, 7.15.3; RFC 7946 5.2). South greater than north is taken the other way
// round. Numbers that are no longitudes and latitudes belong to a projection
// that we do not know: such a box may be anything, so it is the world.
func (e escaped) worldShare() (share float64, ok bool) {
	var box [6]float64
	n := 0
	for rest, more := e.text(), true; more; n++ {
		var one string
		if one, rest, more = strings.Cut(rest, ","); n == len(box) {
			return 0, false
		}
		if box[n], ok = parseNumber(one); !ok {
			return 0, false
		}
	}
	var west, south, east, north float64
	switch n {
	case 4:
		west, south, east, north = box[0], box[1], box[2], box[3]
	case 6:
		west, south, east, north = box[0], box[1], box[3], box[4]
	default:
		return 0, false
	}
	if max(-west, west, -east, east) > 180 || max(-south, south, -north, north) > 90 {
		return 1, true
	}
	width := east - west
	if width < 0 {
		width += 360
	}
	return width * max(north-south, south-north) / (360 * 180), true
}
