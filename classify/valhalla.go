package classify

import "net/http"

func init() {
	register(family{name: "valhalla", rank: rankPath + 20, recognise: recogniseValhalla})
}

// valhallaAction is what the last segment of a path asks of Valhalla.
type valhallaAction uint8

const (
	valhallaNone valhallaAction = iota
	valhallaStatus
	valhallaRoute
	valhallaTrip
	valhallaMatrix
	valhallaIsochrone
	valhallaMatch
	valhallaLocate
	valhallaHeight
	valhallaCentroid
)

// valhallaActionOf reads an action, and whether its name is Valhalla's alone.
func valhallaActionOf(name string) (action valhallaAction, only bool) {
	switch name {
	case "route":
		return valhallaRoute, false
	case "optimized_route":
		return valhallaTrip, true
	case "sources_to_targets":
		return valhallaMatrix, true
	case "isochrone", "expansion":
		return valhallaIsochrone, false
	case "trace_route", "trace_attributes":
		return valhallaMatch, true
	case "locate":
		return valhallaLocate, false
	case "height":
		return valhallaHeight, false
	case "centroid":
		return valhallaCentroid, false
	case "status":
		return valhallaStatus, false
	}
	return valhallaNone, false
}

// recogniseValhalla reads the actions of Valhalla, whose request is JSON: in the
// body of a POST, whatever its type, or in the query as json=.
//
// Others have a "route" and an "isochrone" too. Where the config does not name
// the family, such a request has to be of Valhalla's form: json= in the query, or
// a body with a costing and its locations or shape.
func recogniseValhalla(v *view) (answer, bool) {
	action, only := valhallaActionOf(v.last(0))
	post := v.Method == http.MethodPost
	if action == valhallaNone || !v.read() && !post {
		return answer{}, false
	}
	sure := only || v.forced
	if action == valhallaStatus {
		if !sure || post {
			return answer{}, false
		}
		return answer{Call: Call{Op: "status", Class: Metadata, Replayable: true, Basis: "status", Inputs: Inputs{Features: 1}}}, true
	}
	var q routing
	costing, places := false, false
	member := func(m jsonValue) {
		switch {
		case m.is("costing"):
			costing = true
			switch string(m.str()) {
			case "multimodal", "transit", "bikeshare":
				q.flexible = true
			}
		case m.is("locations"), m.is("shape"):
			_, _ = eachJSON(m.text, func(place jsonValue) { places = places || place.isObject() })
		case m.is("encoded_polyline"):
			places = true
		}
		q.read(m)
	}
	asked, points := false, 0.0
	for p := readQuery(v.Query); p.next(); {
		switch {
		case p.key.is("point"):
			points++
		case p.key.is("ch.disable"), p.key.is("custom_model"):
			q.flexible = true
		case p.key.is("json"):
			asked = true
			// Of two the dearer counts: both are taken in.
			text := p.value.appendText(make([]byte, 0, len(p.value)))
			how := readJSONText(text, member)
			if length := float64(len(text)); q.doc.how < how || q.doc.length < length {
				q.doc = document{how: max(how, q.doc.how), length: length, scale: 1}
			}
		}
	}
	q.points = max(q.points, points) // it may be GraphHopper that is asked, with json= to look cheap
	if post {
		asked = true
		d := v.readJSON(member)
		d.how = max(d.how, q.doc.how)
		q.doc = d
	}
	if !sure && (!asked || !places || post && !costing) {
		return answer{}, false
	}
	switch action {
	case valhallaRoute:
		return q.route(v), true
	case valhallaTrip:
		return q.trip(v), true
	case valhallaMatrix:
		return q.matrix(v), true
	case valhallaIsochrone:
		minutes := q.reach
		if minutes == 0 || !q.doc.whole() {
			minutes = max(minutes, valhallaMinutes) // as far as it goes by default
		}
		return q.isochrones(v, minutes), true
	case valhallaMatch:
		return q.match(v), true
	case valhallaCentroid: // a search from each, until all have met
		q.sources, q.targets = q.points, q.points
		return q.matrix(v), true
	case valhallaHeight:
		q.whole()
		var b basis
		return q.answer(v, "height", Read, max(1, q.points), b.text("height of ").count(max(1, q.points), "point")), true
	case valhallaNone, valhallaStatus, valhallaLocate:
	}
	return q.nearest(v), true
}

// valhallaMinutes is the longest that Valhalla searches by default.
const valhallaMinutes = 120
