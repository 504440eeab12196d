package classify

import (
	"math"
	"net/http"
	"strings"
)

func init() {
	register(family{name: "sensorthings", rank: rankPath + 5, recognise: recogniseSensorThings})
}

const (
	sensorTop      = 100 // entities of a page, where nobody says how many
	sensorExpanded = 10  // entities that are assumed to belong to one
)

// sensorSets are the collections of entities of the SensorThings API (OGC 18-088,
// 8.2) and of its tasking part (OGC 17-079r1), and whether no other API has one of
// that name. An entity by itself is named in the singular.
var sensorSets = map[string]bool{
	"Things": true, "HistoricalLocations": true, "Datastreams": true, "MultiDatastreams": true, "ObservedProperties": true,
	"Observations": true, "FeaturesOfInterest": true, "TaskingCapabilities": true, "CreateObservations": true,
	"Locations": false, "Sensors": false, "Tasks": false, "Actuators": false, "$batch": false,
}

// recogniseSensorThings reads the OGC SensorThings API: v1.1/{Entities}(id)/...,
// with the options of OData. Where the config does not name the family, the first
// collection has to be one that only it has.
func recogniseSensorThings(v *view) (answer, bool) {
	at := -1
	for i := range max(0, v.n-1) {
		if seg := v.seg[i]; seg == "v1.0" || seg == "v1.1" || seg == "v2.0" {
			set, _ := entity(v.seg[i+1])
			if only, known := sensorSets[set]; only || known && v.forced {
				at = i + 1
			}
		}
	}
	if at < 0 {
		if v.forced && v.read() && v.n > 0 && strings.HasPrefix(v.last(0), "v") {
			return answer{Call: Call{Op: "landing", Class: Metadata, Replayable: true, Basis: "landing", Inputs: Inputs{Features: 1}}}, true
		}
		return answer{}, false
	}
	set, one := "", false
	for _, seg := range v.seg[at:v.n] {
		name, id := entity(seg)
		switch _, known := sensorSets[name]; {
		case known:
			set, one = name, id
		case strings.HasPrefix(name, "$"): // $value, $ref, $count
		default: // a property, or an entity in the singular
			one = true
		}
	}
	if !v.read() {
		return sensorWrite(v, set, one), true
	}
	return sensorRead(v, set, one), true
}

// entity cuts the id off "Things(1)". Ids may be texts in quotes.
func entity(segment string) (set string, id bool) {
	segment = decodePath(segment)
	if i := strings.IndexByte(segment, '('); i > 0 && strings.HasSuffix(segment, ")") {
		return segment[:i], i+2 < len(segment)
	}
	return segment, false
}

// sensorRead prices a page of entities, with those that are sent along, and the
// entities that a filter or an order has to look at.
func sensorRead(v *view, set string, one bool) answer {
	a := answer{Call: Call{Op: "entities", Class: Read, Replayable: true, Collection: set}}
	top, skip, expanded, nested := -1.0, 0.0, 1.0, 1.0
	scanned := false
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("$top"):
			top = max(top, value.amount())
		case key.is("$skip"):
			if x, ok := value.number(); !ok || x > 0 {
				skip = max(skip, value.amount())
			}
		case key.is("$expand"):
			times, within := sensorExpand(value)
			expanded, nested = max(expanded, times), max(nested, within)
		case key.is("$filter"):
			scanned = true
			a.Vertices += countFilter(value).Vertices
		case key.is("$orderby"):
			scanned = scanned || !value.is("id") && !value.is("@iot.id")
		case key.is("$count"):
			scanned = scanned || !value.is("false")
		case key.is("$skiptoken"), key.is("$skipFilter"):
			a.LaterPage = true
		}
	}
	asked := top
	if top < 0 {
		asked = sensorTop
	}
	limit := min(asked, float64(v.assume.MaxLimit))
	var b basis
	if one {
		limit, skip = 1, 0
		b.text("1 entity")
	} else {
		if skip > 0 {
			b.text("$skip=").number(skip).text(" + ")
			a.LaterPage = true
		}
		b.text("$top=").number(limit)
		if asked > limit {
			b.text(" (the most)")
		}
		if top < 0 {
			b.text(" (default)")
			a.guess.Features = limit
		}
	}
	a.Features = min(skip+limit*expanded*nested, maxInput)
	if expanded*nested > 1 {
		a.guess.Features = a.Features
		b.text(", ").number(min(expanded*nested, maxInput)).text(" with each").assumed(true)
	}
	if rows := v.layerRows(-1); scanned && !one && rows > a.Features {
		if !v.sure.features {
			a.guess.Features += rows - a.Features
		}
		a.Features = rows
		b.text(", ").number(rows).text(" looked at").assumed(!v.sure.features)
	}
	if set == "Locations" || set == "FeaturesOfInterest" { // the others have no geometry
		v.addVertices(&a, min(limit, maxInput))
	}
	if !one && (a.LaterPage || asked > downloadFeatures) {
		a.Class = Download
	}
	a.Basis = b.String()
	return a
}

// sensorExpand reads $expand: "A/B,C($expand=D;$top=5)". It gives how many
// entities go along with each, an upper bound of the sum over its branches, and
// as a factor of its own what a $top in it may raise that to.
func sensorExpand(value escaped) (times, within float64) {
	within = 1
	branches, depth := 1.0, 1.0
	text := value.text()
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ',':
			branches++
		case '/':
			depth++
		case '$':
			rest := text[i:]
			if strings.HasPrefix(rest, "$expand") {
				depth++
			}
			if n, ok := strings.CutPrefix(rest, "$top="); ok {
				n = n[:digits(n)]
				within = max(within, escaped(n).amount()/sensorExpanded)
			}
		}
	}
	return min(branches*math.Pow(sensorExpanded, min(depth, 9)), maxInput), min(within, maxInput)
}

// sensorWrite prices a change, by what is in its body: entities may be created
// with others in them, and observations in bulk.
func sensorWrite(v *view, set string, one bool) answer {
	a := answer{Call: Call{Op: "write", Class: Write, Collection: set}, body: true}
	g := v.count()
	entities := 1.0
	d := v.readJSON(func(m jsonValue) {
		switch {
		case m.is("dataArray"), m.is("requests"):
			entities += countJSON(m.text)
		case m.isObject(): // of a bulk, which is a list
			_, _ = eachJSON(m.text, func(inner jsonValue) {
				if inner.is("dataArray") {
					entities += countJSON(inner.text)
				}
			})
		case m.isList():
			entities += countJSON(m.text)
		}
	})
	a.Features = max(1, g.Features, d.count(entities, minFeatureBytes))
	a.Vertices = g.Vertices
	if v.Method == http.MethodDelete && !one {
		a.Features = max(a.Features, v.layerRows(-1))
		a.guess.Features = a.Features
	}
	var b basis
	a.Basis = b.text("write of ").count(a.Features, "row").text(", ").count(a.Vertices, "vertex").String()
	return a
}
