package classify

import (
	"bytes"
	"net/http"
)

func init() {
	register(family{name: "graphhopper", rank: rankPath + 40, recognise: recogniseGraphHopper})
}

// recogniseGraphHopper reads the API of GraphHopper: points are repeated keys of
// the query, latitude first, or a list in a JSON body, longitude first.
//
// Others have a "route" and a "match" too. Where the config does not name the
// family, such a request has to be of GraphHopper's form: point= with two
// numbers and a profile, a body with both, or a GPX.
func recogniseGraphHopper(v *view) (answer, bool) {
	post := v.Method == http.MethodPost
	action := v.last(0)
	switch action {
	case "route", "isochrone", "spt", "nearest", "matrix", "match":
	default:
		return answer{}, false
	}
	if !v.read() && (!post || action == "isochrone" || action == "spt" || action == "nearest") {
		return answer{}, false
	}
	q, sure := graphHopperQuery(v)
	seconds, metres := q.interval, q.reach
	if post {
		if action == "match" {
			n, gpx := v.countGPX(&q.doc)
			q.points, sure = max(q.points, n), gpx
		} else {
			points, profile := false, false
			q.doc = v.readJSON(func(m jsonValue) {
				switch {
				case m.is("points"), m.is("from_points"), m.is("to_points"):
					_, _ = eachJSON(m.text, func(point jsonValue) { points = points || point.isList() })
				case m.is("profile"), m.is("vehicle"):
					profile = true
				case m.is("algorithm"):
					if string(m.str()) == "alternative_route" {
						q.alternatives = max(q.alternatives, 2)
					}
				}
				q.read(m)
			})
			sure = points && profile
		}
	}
	if !sure && !v.forced {
		return answer{}, false
	}
	switch action {
	case "route":
		return q.route(v), true
	case "matrix":
		return q.matrix(v), true
	case "match":
		return q.match(v), true
	case "nearest":
		return q.nearest(v), true
	}
	if seconds < 0 {
		seconds = 600
	}
	return q.isochrones(v, max(seconds/60, metres/1000)), true
}

// graphHopperQuery reads a query, and reports whether it is of GraphHopper. The
// interval is the time limit in seconds, -1 without one, and the reach the
// distance limit in metres.
func graphHopperQuery(v *view) (q routing, sure bool) {
	q.interval = -1
	point, profile := false, false
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case key.is("point"):
			q.points++
			point = point || value.isPair()
		case key.is("from_point"):
			q.sources++
			point = point || value.isPair()
		case key.is("to_point"):
			q.targets++
			point = point || value.isPair()
		case value == "":
		case key.is("profile"), key.is("vehicle"):
			profile = true
		case key.is("time_limit"):
			q.interval = max(q.interval, value.amount())
		case key.is("distance_limit"):
			if x, ok := value.number(); !ok || x > 0 {
				q.reach = max(q.reach, value.amount())
			}
		case key.is("buckets"):
			q.contours = max(q.contours, value.amount())
		case key.is("algorithm"):
			if value.is("alternative_route") {
				q.alternatives = max(q.alternatives, 2)
			}
		case key.is("alternative_route.max_paths"):
			q.alternatives = max(q.alternatives, value.amount())
		case key.is("ch.disable"), key.is("lm.disable"), key.is("custom_model"):
			q.flexible = q.flexible || !value.is("false")
		}
	}
	return q, point && profile
}

// isPair reports whether a value is two numbers with a comma between them.
func (e escaped) isPair() bool {
	var room [2*maxNumber + 1]byte
	if len(e) > 3*len(room) {
		return false
	}
	text := e.appendText(room[:0])
	a, b, ok := bytes.Cut(text, []byte{','})
	if !ok {
		return false
	}
	_, okA := parseNumber(string(a))
	_, okB := parseNumber(string(b))
	return okA && okB
}

// countGPX counts the points of a GPX body, and reports whether it is one.
func (r *Request) countGPX(d *document) (points float64, gpx bool) {
	room := borrow()
	defer giveBack(room)
	text, _, how := room.decode(r.Body.Prefix, r.Header.Get("Content-Encoding"))
	*d = document{how: how, length: r.decodedLength(text, how), scale: 1}
	if r.unread() {
		d.how, d.length = malformed, float64(max(r.Body.Length, 0))
		if r.Body.Length < 0 {
			d.length = UnknownBodyBytes
		}
		return 0, containsFold(r.Header.Get("Content-Type"), "gpx")
	}
	d.scale = max(1, d.length/float64(max(1, len(text))))
	var x xmlScan
	x.reset(text)
	for event := x.next(); event != xmlDone; event = x.next() {
		if event != xmlStart {
			continue
		}
		switch string(x.name) {
		case "gpx":
			gpx = gpx || x.depth == 1
		case "trkpt", "rtept", "wpt":
			points++
		}
	}
	d.how = max(d.how, x.how)
	switch {
	case !r.wholeBody():
		d.how = max(d.how, open)
	case d.how == open:
		d.how = malformed
	}
	return points, gpx
}
