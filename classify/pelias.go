package classify

import "net/http"

func init() {
	register(family{name: "pelias", rank: rankPath + 60, recognise: recognisePelias})
}

const (
	peliasSize = 10 // places, where nobody says how many
	peliasMost = 40
)

// recognisePelias reads the API of Pelias: v1/{action}, or geocode/{action} as
// openrouteservice has it.
func recognisePelias(v *view) (answer, bool) {
	action, parent := v.last(0), v.last(1)
	if action == "structured" && parent == "search" {
		parent = v.last(2)
	}
	if !v.forced && parent != "v1" && parent != "geocode" {
		return answer{}, false
	}
	post := v.Method == http.MethodPost && action == "search" && v.forced
	if !v.read() && !post {
		return answer{}, false
	}
	size := -1.0
	ids, text, parts, point, radius := 0.0, post, false, false, 0.0
	take := func(n float64) { size = max(size, n) }
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("text"):
			text = true
		case key.is("address"), key.is("neighbourhood"), key.is("borough"), key.is("locality"), key.is("county"), key.is("region"), key.is("postalcode"), key.is("country"):
			parts = true
		case key.is("point.lat"):
			point = point || value.isPosition()
		case key.is("ids"):
			ids += value.items()
		case key.is("size"):
			take(value.amount())
		case key.is("boundary.circle.radius"):
			radius = max(radius, value.amount())
		}
	}
	if post {
		_ = v.readJSON(func(m jsonValue) {
			if m.is("size") {
				take(m.amount())
			}
		})
	}
	if size < 0 {
		size = peliasSize
	}
	size = min(size, peliasMost)
	var a answer
	switch {
	case action == "autocomplete" && text:
		a = geocode("autocomplete", Typeahead, size, 1)
	case action == "search" && text, action == "structured" && parts:
		a = geocode("geocode", Read, size, 1)
	case (action == "reverse" || action == "nearby") && point:
		a = around(size, min(max(radius, 1), 5), 1) // it looks no further than 5 km
	case action == "place" && ids > 0:
		a = geocode("lookup", Read, ids, 1)
	case v.forced && v.read() && (action == "status" || action == "attribution"):
		a = answer{Call: Call{Op: "status", Class: Metadata, Replayable: true, Basis: "status", Inputs: Inputs{Features: 1}}}
	default:
		return answer{}, false
	}
	a.body = post
	return a, true
}
