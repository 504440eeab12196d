package classify

import "math"

// routing is what a request asks of a routing engine. The engines name much the
// same things in much the same words, so that one reading of a body serves all.
type routing struct {
	points           float64 // of the way, or of the trace
	sources, targets float64 // of a matrix; 0 where nobody says: all of the points
	everySource      bool    // somebody says that they are all of the points
	everyTarget      bool
	contours         float64 // of an isochrone
	reach            float64 // the longest reach, in the engine's own unit
	interval         float64 // between the contours; 0 where they are listed
	far              bool    // the reach is a distance
	long             bool    // in kilometres or miles
	alternatives     float64
	number           float64  // of results for each point
	jobs, vehicles   float64  // of an optimisation
	geometry         Geometry // of areas to avoid, and of what else is in the request
	flexible         bool     // the search cannot use what was prepared for it
	doc              document
}

// The shortest that the things in a body can be, in bytes: "[1,2]," and "0,".
const (
	minPointBytes = 6
	minIndexBytes = 2
)

// read takes in a member of a body, whichever engine it is of.
func (q *routing) read(v jsonValue) {
	switch {
	case v.is("locations"), v.is("coordinates"), v.is("points"), v.is("shape"), v.is("trace"), v.is("encoded_polyline"):
		q.points = max(q.points, positions(v))
	case v.is("sources"), v.is("from_points"):
		n, all := indexList(v)
		q.sources, q.everySource = max(q.sources, n), q.everySource || all
	case v.is("targets"), v.is("destinations"), v.is("to_points"):
		n, all := indexList(v)
		q.targets, q.everyTarget = max(q.targets, n), q.everyTarget || all
	case v.is("contours"), v.is("range"), v.is("ranges"):
		if !v.isList() {
			q.contours, q.reach = max(q.contours, 1), max(q.reach, v.amount())
			return
		}
		n, _ := eachJSON(v.text, func(c jsonValue) {
			if !c.isObject() {
				q.reach = max(q.reach, c.amount())
				return
			}
			_, _ = eachJSON(c.text, func(m jsonValue) {
				if m.is("time") || m.is("distance") {
					q.reach = max(q.reach, m.amount())
				}
			})
		})
		q.contours = max(q.contours, float64(n))
	case v.is("interval"):
		if x := v.amount(); x > 0 && (q.interval == 0 || x < q.interval) {
			q.interval = x
		}
	case v.is("range_type"):
		q.far = string(v.str()) == "distance"
	case v.is("units"):
		q.long = q.long || string(v.str()) != "m"
	case v.is("alternatives"), v.is("alternates"), v.is("alternative_route.max_paths"):
		q.alternatives = max(q.alternatives, howMany(v))
	case v.is("alternative_routes"):
		_, _ = eachJSON(v.text, func(m jsonValue) {
			if m.is("target_count") {
				q.alternatives = max(q.alternatives, m.amount())
			}
		})
	case v.is("number"):
		q.number = max(q.number, v.amount())
	case v.is("jobs"):
		q.jobs += countJSON(v.text)
	case v.is("shipments"), v.is("services"): // a pick-up and a delivery each
		q.jobs += 2 * countJSON(v.text)
	case v.is("vehicles"):
		q.vehicles += countJSON(v.text)
	case v.is("ch.disable"), v.is("lm.disable"), v.is("custom_model"):
		q.flexible = q.flexible || v.isTrue()
		q.areas(v)
	case v.is("options"):
		q.flexible = q.flexible || countJSON(v.text) > 0
		q.areas(v)
	case v.is("exclude_polygons"), v.is("avoid_polygons"), v.is("exclude_locations"), v.is("avoid_locations"):
		q.areas(v)
	}
}

// indexList counts the items of a list. A word, as the list or in it, is all there are.
func indexList(v jsonValue) (n float64, all bool) {
	if !v.isList() {
		return 0, true
	}
	count, _ := eachJSON(v.text, func(item jsonValue) { all = all || item.str() != nil })
	return float64(count), all
}

// howMany reads a number of alternatives, which may be said with true.
func howMany(v jsonValue) float64 {
	switch string(v.text) {
	case "true":
		return 1
	case "false":
		return 0
	}
	return v.amount()
}

// areas counts the positions of areas to avoid: GeoJSON, or rings without any
// names (Valhalla).
func (q *routing) areas(v jsonValue) {
	g, how := scanGeoJSON(v.text, nil)
	g.Vertices += bareRings(v.text)
	if how == malformed {
		g = g.atBound(float64(len(v.text)))
	}
	q.geometry = q.geometry.add(g)
}

// bareRings counts the positions of a list of rings.
func bareRings(b []byte) (n float64) {
	if len(b) == 0 || b[0] != '[' {
		return 0
	}
	_, _ = eachJSON(b, func(ring jsonValue) {
		if ring.isList() {
			n += countJSON(ring.text)
		} else {
			n++
		}
	})
	return n
}

// positions counts the points of a list, or of an encoded polyline.
func positions(v jsonValue) float64 {
	if v.isList() {
		return countJSON(v.text)
	}
	return polylinePoints(v.str(), true)
}

// body reads the body of a POST.
func (q *routing) body(v *view) { q.doc = v.readJSON(q.read) }

// whole makes what was counted what it is in the whole body.
func (q *routing) whole() {
	d := q.doc
	if d.whole() {
		return
	}
	most := max(q.points, q.sources, q.targets, q.jobs, q.vehicles)
	q.points = d.count(most, minPointBytes)
	q.sources, q.targets = d.count(q.sources, minIndexBytes), d.count(q.targets, minIndexBytes)
	q.jobs, q.vehicles = d.count(q.jobs, minPointBytes), d.count(q.vehicles, minPointBytes)
	q.geometry.Vertices = d.count(q.geometry.Vertices, minVertexBytes)
	q.sources, q.targets = max(q.sources, q.points), max(q.targets, q.points)
	q.contours, q.alternatives = d.count(q.contours, minIndexBytes), max(q.alternatives, 1)
	q.flexible = true
}

// flexibly is how much longer a search takes that cannot use what was prepared.
const flexibly = 10

func (q *routing) answer(v *view, op string, class Class, searches float64, b *basis) answer {
	if q.flexible {
		searches *= flexibly
		b.text(", nothing prepared")
	}
	a := answer{Call: Call{Op: op, Class: class, Replayable: true}, body: !v.read()}
	a.Features = min(searches, maxInput)
	a.Vertices = q.points + q.geometry.Vertices
	if q.geometry.Vertices > 0 {
		b.text(", areas of ").count(q.geometry.Vertices, "vertex")
	}
	if !q.doc.whole() {
		a.guess = a.Inputs
		b.text(", body not read whole")
	}
	a.Basis = b.String()
	return a
}

// route prices the way through some points: a search for each leg, and for each
// alternative.
func (q *routing) route(v *view) answer {
	q.whole()
	var b basis
	b.text("route of ").count(max(q.points, 2), "point")
	if q.alternatives > 0 {
		b.text(", ").count(q.alternatives, "alternative")
	}
	return q.answer(v, "route", Read, max(1, q.points-1)*(1+q.alternatives), &b)
}

// matrix prices the ways between each of some points and each of others.
func (q *routing) matrix(v *view) answer {
	sources, targets := q.sources, q.targets
	if sources == 0 || q.everySource {
		sources = max(sources, q.points, 1)
	}
	if targets == 0 || q.everyTarget {
		targets = max(targets, q.points, 1)
	}
	q.sources, q.targets = sources, targets
	q.whole()
	if q.points == 0 {
		q.points = q.sources + q.targets
	}
	var b basis
	b.text("matrix of ").number(q.sources).text(" x ").number(q.targets)
	return q.answer(v, "matrix", Compute, q.sources*q.targets, &b)
}

// isochrones prices how far one gets from each of some points within so many
// minutes (or kilometres, which are taken for as many): the area searched grows
// with the square of that, and each contour is drawn by itself.
func (q *routing) isochrones(v *view, minutes float64) answer {
	q.whole()
	contours := max(1, q.contours)
	from := max(1, q.points)
	var b basis
	b.text("isochrones from ").count(from, "point").text(", ").count(contours, "contour").text(" to ").number(math.Ceil(minutes)).text(" min")
	return q.answer(v, "isochrone", Compute, from*(contours+minutes*minutes/100), &b)
}

// match prices the fitting of a trace to the roads.
func (q *routing) match(v *view) answer {
	q.whole()
	var b basis
	b.text("trace of ").count(max(1, q.points), "point")
	return q.answer(v, "match", Compute, max(1, q.points), &b)
}

// trip prices a round trip: a matrix of the points, and the search for the best
// order of them.
func (q *routing) trip(v *view) answer {
	q.whole()
	var b basis
	n := max(1, q.points)
	b.text("trip of ").count(n, "point")
	return q.answer(v, "trip", Compute, n*n+10*n, &b)
}

// nearest prices the search for the roads by some points.
func (q *routing) nearest(v *view) answer {
	q.whole()
	n := max(1, q.points) * max(1, q.number)
	var b basis
	return q.answer(v, "snap", Read, n, b.text("nearest of ").count(max(1, q.points), "point"))
}

// optimisation prices the distribution of jobs to vehicles: a matrix of all
// their places, and the search over who does what.
func (q *routing) optimisation(v *view) answer {
	q.whole()
	jobs, vehicles := max(1, q.jobs), max(1, q.vehicles)
	places := jobs + 2*vehicles
	var b basis
	b.count(jobs, "job").text(" x ").count(vehicles, "vehicle")
	return q.answer(v, "optimization", Compute, places*places+10*jobs*vehicles, &b)
}
