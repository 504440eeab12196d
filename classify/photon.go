package classify

func init() {
	// Before nominatim, whose reverse has no radius and no limit.
	register(family{name: "photon", rank: rankPath + 61, recognise: recognisePhoton})
}

const (
	photonLimit = 15 // places, where nobody says how many
	photonMost  = 50
)

// recognisePhoton reads the API of Photon. Its search has the path of any API:
// where the config does not name the family, what only Photon has must go with it.
func recognisePhoton(v *view) (answer, bool) {
	if !v.read() || v.n < 1 {
		return answer{}, false
	}
	limit, radius, vertices := -1.0, -1.0, 1.0
	words, parts, lat, lon, only := false, false, false, false, v.forced
	for p := readQuery(v.Query); p.next(); {
		switch key, value := p.key, p.value; {
		case value == "":
		case key.is("q"):
			words = true
		case key.is("city"), key.is("street"), key.is("housenumber"), key.is("postcode"), key.is("countrycode"), key.is("district"), key.is("state"), key.is("county"):
			parts = true
		case key.is("lat"):
			lat = lat || value.isPosition()
		case key.is("lon"):
			lon = lon || value.isPosition()
		case key.is("osm_tag"), key.is("location_bias_scale"), key.is("layer"), key.is("query_string_filter"), key.is("distance_sort"):
			only = true
		case key.is("limit"):
			limit = max(limit, value.amount())
		case key.is("radius"):
			radius = max(radius, value.amount())
		case key.is("geometry"):
			if !value.is("false") {
				vertices = placeVertices
			}
		}
	}
	asked := limit
	if limit < 0 {
		limit = photonLimit
	}
	limit = max(1, min(limit, photonMost))
	switch v.last(0) {
	case "api":
		if !words && !v.forced || !only && (!lat || !lon) {
			return answer{}, false
		}
		return geocode("geocode", Read, limit, vertices), true
	case "structured":
		if !parts {
			return answer{}, false
		}
		return geocode("geocode", Read, limit, vertices), true
	case "reverse":
		if !lat || !lon || !only && asked < 0 && radius < 0 {
			return answer{}, false
		}
		return around(limit, max(1, radius), vertices), true
	case "status":
		if v.forced {
			return answer{Call: Call{Op: "status", Class: Metadata, Replayable: true, Basis: "status", Inputs: Inputs{Features: 1}}}, true
		}
	}
	return answer{}, false
}
