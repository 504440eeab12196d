package classify

import "math"

// What geocoders share: an answer has so many places, found by words (which an
// index of text is asked for), by a position, or by their names in the data.

// placeVertices is how many vertices the outline of a place has, where it is
// asked for: places are towns and countries more often than houses.
const placeVertices = 500

// geocode prices a search by words. What was guessed at is read as well: limit is
// how many are read, not how many are sent.
func geocode(op string, class Class, limit, vertices float64) answer {
	a := answer{Call: Call{Op: op, Class: class, Replayable: true}}
	a.Features = min(limit, maxInput)
	a.Vertices = a.Features * max(1, vertices)
	var b basis
	a.Basis = b.text(op).text(" of ").count(limit, "place").String()
	if vertices > 1 {
		b.text(" with outlines")
		a.Basis, a.guess.Vertices = b.String(), a.Vertices
	}
	return a
}

// around prices the search for the places by a position: of so many within a
// radius in kilometres, as many as ten to a square kilometre are looked at.
func around(limit, radius, vertices float64) answer {
	const density = 10
	a := geocode("reverse", Read, max(1, limit), vertices)
	if looked := min(math.Ceil(density*radius*radius), maxInput); looked > a.Features {
		a.Features = looked
		var b basis
		a.Basis = b.text(a.Basis).text(", ").number(looked).text(" looked at").assumed(true).String()
	}
	return a
}

// isPosition reports whether a value is a number, as one of a position is.
func (e escaped) isPosition() bool {
	_, ok := e.number()
	return ok
}
