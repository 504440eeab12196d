package classify_test

import (
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

func classifier(tb testing.TB, cfg classify.Config) *classify.Classifier {
	tb.Helper()
	c, err := classify.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func get(target string) *classify.Request {
	path, query, _ := strings.Cut(target, "?")
	return &classify.Request{Method: "GET", Host: "maps.example", Path: path, Query: query}
}

func TestTooLong(t *testing.T) {
	for _, c := range []struct {
		name, query string
		want        bool
	}{
		{"nothing", "", false},
		{"256 keys", strings.Repeat("a=1&", 255) + "a=1", false},
		{"257 keys", strings.Repeat("a=1&", 256) + "a=1", true},
		{"64 KiB", strings.Repeat("a", 64<<10), false},
		{"a byte more", strings.Repeat("a", 64<<10+1), true},
	} {
		if got := classify.TooLong(c.query); got != c.want {
			t.Errorf("%s: TooLong = %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFamilies(t *testing.T) {
	if got, want := classify.Families(), []string{
		"wms", "wmts", "wfs", "wcs", "arcgis", "ogcapi", "sensorthings", "osrm", "valhalla", "ors", "graphhopper", "stac", "pelias", "photon", "nominatim", "overpass", "postgrest", "titiler", "xyz",
	}; !slices.Equal(got, want) {
		t.Errorf("Families = %v, want %v: the more specific before the less", got, want)
	}
}

// A route that names its family asks no other, and believes shapes that others
// have too.
func TestFamilyNamed(t *testing.T) {
	for _, c := range []struct{ family, target, want string }{
		{"ogcapi", "/public.roads/14/8412/5384.pbf", "http unknown"},
		{"ogcapi", "/?service=anything", "ogcapi landing"},
		{"ogcapi", "/tiles", "ogcapi tileset"},
		{"xyz", "/collections/roads/items", "http unknown"},
		{"xyz", "/reports/yearly.json", "xyz tilejson"},
		{"xyz", "/news/2024/11/30", "xyz tile"},
		{"http", "/collections/roads/items", "http unknown"},
		{"auto", "/collections/roads/items", "ogcapi items"},
		{"", "/collections/roads/items", "ogcapi items"},
	} {
		e := classifier(t, classify.Config{Family: c.family}).Estimate(get(c.target))
		if got := e.Family + " " + e.Op; got != c.want {
			t.Errorf("family %q, %s: %s, want %s", c.family, c.target, got, c.want)
		}
	}
}

// The price is the rates times the inputs.
func TestPrice(t *testing.T) {
	for _, c := range []struct {
		name   string
		cfg    classify.Config
		target string
		want   float64
		low    bool
	}{
		{"fitted", classify.Config{}, "/collections/a/items?limit=1000", 3.8e-4 + 1000*1.9e-6 + 52000*2.2e-7, true},
		{"guide", classify.Config{Profile: "guide"}, "/collections/a/items?limit=1000", 1e-3 + 1000*1e-3 + 52000*5e-6, false},
		{"never nothing", classify.Config{}, "/collections/a/items?limit=1", 1e-3, false},
		{"never more than an hour", classify.Config{Profile: "guide"}, "/collections/a/items?offset=1e9", 3600, false},
		{"what is stated is not assumed", classify.Config{Assume: classify.Assume{Vertices: 200}}, "/collections/a/items?limit=1000", 3.8e-4 + 1000*1.9e-6 + 200000*2.2e-7, false},
		{"the default limit", classify.Config{Assume: classify.Assume{Limit: 500, Vertices: 10}}, "/collections/a/items", 3.8e-4 + 500*1.9e-6 + 5000*2.2e-7, false},
		{"the highest limit", classify.Config{Assume: classify.Assume{MaxLimit: 50000, Vertices: 10}}, "/collections/a/items?limit=60000", 3.8e-4 + 50000*1.9e-6 + 500000*2.2e-7, false},
		{"own rates", classify.Config{Costs: map[string]classify.Cost{"items": {PerFeature: 200 * time.Microsecond, PerVertex: time.Microsecond}}}, "/collections/a/items?limit=1000", 3.8e-4 + 0.2 + 0.052, false},
		{"unknown", classify.Config{}, "/anything", 0.1, true},
		{"unknown, with a default", classify.Config{DefaultCost: time.Second}, "/anything", 1, true},
		{"unknown, in the guide", classify.Config{Profile: "guide"}, "/anything", 0.1, true},
	} {
		e := classifier(t, c.cfg).Estimate(get(c.target))
		if math.Abs(e.Seconds-c.want) > 1e-9 || e.Low != c.low {
			t.Errorf("%s: %v s, low %v, want %v s, low %v (%s)", c.name, e.Seconds, e.Low, c.want, c.low, e.Basis)
		}
	}
}

func TestNeedsBody(t *testing.T) {
	body := classify.Body{Length: 1000}
	aware := classify.Config{Rules: []classify.Rule{{Op: "big", When: "body.bytes > 100", Seconds: "1"}}}
	blind := classify.Config{Rules: []classify.Rule{{Op: "any", When: `request.method == "POST"`, Seconds: "1"}}}
	for _, c := range []struct {
		name         string
		cfg          classify.Config
		method, path string
		header       http.Header
		body         classify.Body
		want         bool
	}{
		{"create", classify.Config{}, "POST", "/collections/a/items", nil, body, true},
		{"create of unknown length", classify.Config{}, "POST", "/collections/a/items", nil, classify.Body{Length: -1}, true},
		{"nothing to read", classify.Config{}, "POST", "/collections/a/items", nil, classify.Body{}, false},
		{"a GET with a body", classify.Config{}, "GET", "/collections/a/items", nil, body, false},
		{"static map", classify.Config{}, "POST", "/style/a/static/1,2,3/10x10", nil, body, true},
		{"GeoJSON to anything", classify.Config{}, "PUT", "/x", http.Header{"Content-Type": {"application/geo+json"}}, body, true},
		{"no type", classify.Config{}, "POST", "/x", nil, body, true},
		{"a picture", classify.Config{}, "POST", "/x", http.Header{"Content-Type": {"image/png"}}, body, false},
		{"files", classify.Config{}, "POST", "/x", http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}, body, false},
		{"gRPC", aware, "POST", "/x", http.Header{"Content-Type": {"application/grpc+proto"}}, classify.Body{Length: -1}, false},
		{"upgrade", aware, "GET", "/x", http.Header{"Upgrade": {"websocket"}}, classify.Body{Length: -1}, false},
		{"rule that reads it", aware, "GET", "/x", nil, body, true},
		{"rule that does not", blind, "POST", "/x", http.Header{"Content-Type": {"image/png"}}, body, false},
	} {
		r := &classify.Request{Method: c.method, Path: c.path, Header: c.header, Body: c.body}
		if got := classifier(t, c.cfg).NeedsBody(r); got != c.want {
			t.Errorf("%s: NeedsBody = %v, want %v", c.name, got, c.want)
		}
	}
}

// What is not read of a body is priced as the dearest that it could be.
func TestUnreadBody(t *testing.T) {
	c := classifier(t, classify.Config{})
	read := &classify.Request{Method: "POST", Path: "/collections/a/items", Body: classify.Body{Prefix: []byte(`{"type":"Feature"}`), Length: 18, Whole: true}}
	unread := &classify.Request{Method: "POST", Path: "/collections/a/items", Body: classify.Body{Length: 10 << 20}}
	if a, b := c.Estimate(read), c.Estimate(unread); b.Seconds < 100*a.Seconds || a.Low || !b.Low {
		t.Errorf("10 MiB unread cost %v s, low %v; 18 bytes %v s, low %v", b.Seconds, b.Low, a.Seconds, a.Low)
	}
}

// A classifier keeps nothing of one request for the next, from many callers at once.
func TestEstimateConcurrently(t *testing.T) {
	c := classifier(t, classify.Config{})
	requests := corpus(t)
	want := make([]classify.Estimate, len(requests))
	for i := range requests {
		want[i] = c.Estimate(&requests[i])
	}
	done := make(chan string)
	for range 8 {
		go func() {
			for i := range requests {
				if got := c.Estimate(&requests[i]); got != want[i] {
					done <- requests[i].Path
					return
				}
			}
			done <- ""
		}()
	}
	for range 8 {
		if path := <-done; path != "" {
			t.Error("another estimate for", path)
		}
	}
}

// Nothing changes the request.
func TestEstimateReadsOnly(t *testing.T) {
	c := classifier(t, classify.Config{})
	for _, r := range corpus(t) {
		before := r
		prefix := slices.Clone(r.Body.Prefix)
		c.Estimate(&r)
		if r.Method != before.Method || r.Path != before.Path || r.Query != before.Query || !slices.Equal(r.Body.Prefix, prefix) {
			t.Errorf("%s was changed", before.Path)
		}
	}
}
