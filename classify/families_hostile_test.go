package classify_test

import (
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// What the families read of a body takes time in proportion to its length,
// whatever is in it.
func TestHostileRequestsTakeLinearTime(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	c := classifier(t, classify.Config{})
	for _, h := range []struct {
		name, target, contentType string
		text                      func(n int) string
	}{
		{"locations", "/sources_to_targets", "application/json", repeated("{},", `{"sources":[`, "{}]}")},
		{"contours", "/isochrone", "application/json", repeated(`{"time":1},`, `{"costing":"a","locations":[{}],"contours":[`, "{}]}")},
		{"the same member", "/v2/matrix/driving-car", "application/json", repeated(`"locations":[[1,2]],`, "{", `"a":0}`)},
		{"escaped names", "/v2/matrix/driving-car", "application/json", repeated(`"\u006cocations":[[1,2]],`, "{", `"a":0}`)},
		{"areas", "/route", "application/json", repeated("[[1,2]],", `{"costing":"a","locations":[{}],"exclude_polygons":[`, "[]]}")},
		{"open brackets", "/v2/matrix/driving-car", "application/json", repeated("[", `{"locations":`, "")},
		{"items", "/search", "application/json", repeated(`"ids":["a"],`, "{", `"a":0}`)},
		{"tracks", "/match", "application/gpx+xml", repeated("<trkpt/>", "<gpx>", "</gpx>")},
		{"observations", "/v1.1/CreateObservations", "application/json", repeated(`{"dataArray":[[1]]},`, "[", "{}]")},
		{"statements", "/api/interpreter", "text/plain", repeated("node[a](1);>;", "", "")},
		{"open groups", "/api/interpreter", "text/plain", repeated("node(", "", "")},
		{"open strings", "/api/interpreter", "text/plain", repeated(`node["`, "", "")},
		{"open comments", "/api/interpreter", "text/plain", repeated("/*", "", "")},
		{"comments", "/api/interpreter", "text/plain", repeated("//", "", "")},
		{"settings", "/api/interpreter", "text/plain", repeated("[a:1]", "", ";")},
		{"a polygon", "/api/interpreter", "text/plain", repeated("1 2 ", `node(poly:"`, `");`)},
		{"queries in XML", "/api/interpreter", "text/xml", repeated(`<query><bbox-query s="1"/></query>`, "<osm-script>", "</osm-script>")},
		{"rings", "/rest/services/A/GeometryServer/union", form, repeated("[1,2],", `geometries={"rings":[[`, "[1,2]]]}")},
		{"points", "/rest/services/A/GeometryServer/union", form, repeated(`{"x":1},`, `geometries={"geometries":[`, "{}]}")},
		{"pairs", "/rest/services/A/FeatureServer/0/query", form, repeated("geometry={&", "", "")},
		{"semicolons", "/rest/services/A/NAServer/solve", form, repeated("1;", "stops=", "1")},
		{"addresses", "/rest/services/A/GeocodeServer/geocodeAddresses", form, repeated("{},", `addresses={"records":[`, "{}]}")},
	} {
		requests := [2]*classify.Request{post(h.target, h.contentType, h.text(64<<10)), post(h.target, h.contentType, h.text(512<<10))}
		if e := c.Estimate(requests[0]); e.Family == "http" {
			t.Errorf("%s: %s is not recognised", h.name, h.target)
		}
		few, many := leastCPU(t, 3, func() { c.Estimate(requests[0]) }), leastCPU(t, 3, func() { c.Estimate(requests[1]) })
		if many > 32*few+time.Millisecond {
			t.Errorf("%s: %v for 64 KiB, %v for 512 KiB", h.name, few, many)
		}
		t.Logf("%s: %.1f ns a byte", h.name, float64(many)/float64(512<<10))
	}
}
