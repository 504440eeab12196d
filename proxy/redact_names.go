package proxy

import "strings"

// plainName is a parameter's or header's name with its escapes undone, in
// lower case, without what is neither letter nor digit: "X-Amz-Signature",
// "x_amz_signature" and "X%2DAmz%2DSignature" are one name.
func plainName(name string) string {
	name, _ = decoded(name)
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c > 0x7f:
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return -1
	}, name)
}

// isSecret reports whether a plain name is one that keys, tokens, signatures
// or passwords go by: those of AWS, Google, Azure SAS, CloudFront, OAuth,
// ArcGIS and Mapbox among them.
func isSecret(plain string) bool {
	switch plain {
	case "sig", "auth", "pwd", "pass", "hmac", "jwt", "sid", "sas", "code", "keyid", "policy":
		return true
	}
	if strings.HasSuffix(plain, "key") || strings.HasPrefix(plain, "xamz") || strings.HasPrefix(plain, "xgoog") {
		return true
	}
	for _, part := range [...]string{
		"apikey", "token", "secret", "passw", "passphrase", "signature", "credential", "accesskey", "session",
		"keypairid", "accessid", "bearer", "authorization", "authcode",
	} {
		if strings.Contains(plain, part) {
			return true
		}
	}
	return false
}

// secretHeaders are those whose names do not say so themselves.
var secretHeaders = map[string]bool{"cookie": true, "setcookie": true, "xforwardedclientcert": true, "xauth": true}

// isTyped reports whether a plain name is one under which geocoders and
// routers are asked for places: Nominatim, Photon, Pelias, ArcGIS, OSRM,
// Valhalla, GraphHopper, openrouteservice and Overpass.
func isTyped(plain string) bool {
	switch plain {
	case "q", "query", "text", "input", "search", "searchtext", "singleline", "singlelineinput", "address", "addr", "street", "streetname", "housenumber",
		"city", "town", "village", "county", "district", "borough", "neighbourhood", "postcode", "postalcode", "postal", "zip", "place", "placename",
		"point", "points", "coordinates", "coords", "location", "locations", "loc", "latlng", "latlon", "lonlat", "latitude", "longitude",
		"origin", "origins", "destination", "destinations", "start", "end", "from", "to", "via", "waypoint", "waypoints", "stops",
		"near", "proximity", "around", "viewbox", "userlocation", "json", "data":
		return true
	}
	return strings.HasSuffix(plain, "lat") || strings.HasSuffix(plain, "lon") || strings.HasSuffix(plain, "lng") ||
		strings.HasPrefix(plain, "address")
}

// geocoderWords are the last segments of geocoders' paths that name an
// operation and not a place.
var geocoderWords = map[string]bool{
	"": true, "search": true, "reverse": true, "autocomplete": true, "suggest": true, "structured": true, "place": true,
	"v1": true, "v2": true, "v5": true, "v6": true, "json": true, "geocodeserver": true, "findaddresscandidates": true,
	"reversegeocode": true, "geocodeaddresses": true, "geocode": true,
}

// isCoordinates reports whether a path's segment is a list of coordinates or a
// polyline, as in the paths of OSRM. It has a comma, or hides them.
func isCoordinates(text string) bool {
	if strings.HasPrefix(text, "polyline") {
		return true
	}
	digit, comma := false, false
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digit = true
		case c == ',':
			comma = true
		case !strings.ContainsRune(".;+- e", c):
			return strings.HasSuffix(text, ".json") && isCoordinates(strings.TrimSuffix(text, ".json"))
		}
	}
	return digit && comma
}
