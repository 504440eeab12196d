package classify

import (
	"math"
	"net/http"
	"strings"
)

func init() {
	register(family{name: "ors", rank: rankPath + 30, recognise: recogniseORS})
}

// recogniseORS reads the API of openrouteservice, version 2:
// v2/{service}/{profile}[/{format}], and its optimization, which is vroom's.
func recogniseORS(v *view) (answer, bool) {
	post := v.Method == http.MethodPost
	if !v.read() && !post {
		return answer{}, false
	}
	if v.last(0) == "optimization" && post {
		return orsOptimization(v)
	}
	if v.read() && v.forced && (v.last(0) == "status" || v.last(0) == "health") {
		return answer{Call: Call{Op: "status", Class: Metadata, Replayable: true, Basis: "status", Inputs: Inputs{Features: 1}}}, true
	}
	service := ""
	for i := range max(0, v.n-2) {
		if v.seg[i] == "v2" && isORS(v.seg[i+1]) && (v.forced || isORSProfile(v.seg[i+2])) && i+4 >= v.n {
			service = v.seg[i+1]
		}
	}
	if service == "" || v.read() && service != "directions" {
		return answer{}, false
	}
	var q routing
	if v.read() {
		q.points = 2 // start and end
		return q.route(v), true
	}
	q.body(v)
	switch service {
	case "directions":
		return q.route(v), true
	case "matrix":
		return q.matrix(v), true
	case "isochrones":
		minutes := q.reach / 60
		if q.far {
			if minutes = q.reach / 1000; q.long {
				minutes = q.reach * 1.61
			}
		}
		if q.interval > 0 {
			q.contours = max(q.contours, math.Ceil(q.reach/q.interval))
		}
		if q.reach == 0 || !q.doc.whole() {
			minutes = max(minutes, orsMinutes)
		}
		return q.isochrones(v, min(minutes, maxInput)), true
	case "snap":
		return q.nearest(v), true
	case "match":
		q.points = max(q.points, v.count().Vertices)
		return q.match(v), true
	}
	// The graph in a box, whose size is not known.
	q.whole()
	var b basis
	a := q.answer(v, "graph", Compute, v.rows(-1), b.text("graph of a box"))
	a.guess.Features, a.unsure = a.Features, true
	return a, true
}

// orsMinutes is the longest range of an isochrone by default: 18,000 s.
const orsMinutes = 300

func isORS(service string) bool {
	switch service {
	case "directions", "matrix", "isochrones", "snap", "match", "export":
		return true
	}
	return false
}

func isORSProfile(s string) bool {
	return s == "wheelchair" || s == "public-transport" || strings.HasPrefix(s, "driving-") || strings.HasPrefix(s, "cycling-") || strings.HasPrefix(s, "foot-")
}

// orsOptimization reads jobs and vehicles. Where the config does not name the
// family both have to be there.
func orsOptimization(v *view) (answer, bool) {
	var q routing
	q.body(v)
	if !v.forced && (q.jobs == 0 || q.vehicles == 0) {
		return answer{}, false
	}
	return q.optimisation(v), true
}
