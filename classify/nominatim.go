package classify

import "strings"

func init() {
	register(family{name: "nominatim", rank: rankPath + 62, recognise: recogniseNominatim})
}

const (
	nominatimLimit = 10 // places, where nobody says how many
	nominatimMost  = 50 // places, or ids of a look-up
)

// recogniseNominatim reads the API of Nominatim, with and without the ".php" of
// its older paths.
//
// A search by words may be that of any web site. It costs at least what is not
// recognised does, so that taking it for a geocoder's makes nothing cheaper.
func recogniseNominatim(v *view) (answer, bool) {
	if !v.read() || v.n < 1 {
		return answer{}, false
	}
	action, php := strings.CutSuffix(v.last(0), ".php")
	sure := php || v.forced
	q := nominatimQuery(v, sure)
	switch action {
	case "search":
		if !q.words && !q.parts && !sure {
			return answer{}, false
		}
		limit := q.limit
		if limit < 0 {
			limit = nominatimLimit
		}
		// What may be STAC's search for items by words is as dear as both.
		most := float64(nominatimMost)
		if q.items && !v.forced {
			most = float64(v.assume.MaxLimit)
		}
		limit = min(limit, most)
		// It reads more than it sends, to leave out what is there twice.
		return geocode("geocode", Read, limit+min(limit, 10), q.vertices), true
	case "reverse":
		if !q.lat || !q.lon {
			return answer{}, false
		}
		return around(1, 0, q.vertices), true
	case "lookup":
		if q.ids == 0 {
			return answer{}, false
		}
		return geocode("lookup", Read, min(q.ids, nominatimMost), q.vertices), true
	case "details":
		if !q.place {
			return answer{}, false
		}
		return geocode("lookup", Read, 1, q.vertices), true
	case "status":
		if !sure {
			return answer{}, false
		}
		return answer{Call: Call{Op: "status", Class: Metadata, Replayable: true, Basis: "status", Inputs: Inputs{Features: 1}}}, true
	}
	return answer{}, false
}

// nominatimAsk is what a query says, in its dearest reading.
type nominatimAsk struct {
	words, parts, lat, lon, place bool
	items                         bool    // something is asked for that only STAC has
	limit                         float64 // -1 where nobody says
	ids, vertices                 float64
}

func nominatimQuery(v *view, sure bool) nominatimAsk {
	q := nominatimAsk{limit: -1, vertices: 1}
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("q"):
			q.words = true
		case key.is("street"), key.is("city"), key.is("county"), key.is("state"), key.is("country"), key.is("postalcode"), key.is("amenity"):
			q.parts = true
		case key.is("lat"):
			q.lat = q.lat || value.isPosition()
		case key.is("lon"):
			q.lon = q.lon || value.isPosition()
		case key.is("osm_ids"):
			q.ids = max(q.ids, value.items())
		case key.is("osmid"), key.is("place_id") && sure:
			q.place = true
		case key.is("collections"), key.is("datetime"), key.is("bbox"), key.is("intersects"), key.is("ids"):
			q.items = true
		case key.is("limit"):
			q.limit = max(q.limit, value.amount())
		case key.is("polygon_geojson"), key.is("polygon_kml"), key.is("polygon_svg"), key.is("polygon_text"):
			if !value.is("0") && !value.is("false") {
				q.vertices = placeVertices
			}
		}
	}
	return q
}
