package demo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/peterstace/simplefeatures/geom"

	"github.com/geoproxy/geoproxy/cmd/geoproxy/demo"
)

func start(t *testing.T) (*demo.Service, *httptest.Server) {
	t.Helper()
	service := demo.NewService()
	server := httptest.NewServer(service)
	t.Cleanup(func() {
		service.Close()
		server.Close()
	})
	return service, server
}

// got is an answer that was read to its end.
type got struct {
	status int
	header http.Header
}

func do(t *testing.T, method, address, body string) (got, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got{res.StatusCode, res.Header}, text
}

type featureCollection struct {
	Features []struct {
		ID         string
		Geometry   json.RawMessage
		Properties map[string]any
	}
	NumberMatched, NumberReturned int
	Links                         []struct{ Href, Rel string }
}

func (fc featureCollection) next() string {
	for _, l := range fc.Links {
		if l.Rel == "next" {
			return l.Href
		}
	}
	return ""
}

func getItems(t *testing.T, address string) featureCollection {
	t.Helper()
	res, body := do(t, http.MethodGet, address, "")
	var fc featureCollection
	if err := json.Unmarshal(body, &fc); err != nil || res.status != http.StatusOK {
		t.Fatalf("GET %s: %d %v %.200s", address, res.status, err, body)
	}
	return fc
}

func names(fc featureCollection) string {
	var all []string
	for _, f := range fc.Features {
		all = append(all, fmt.Sprint(f.Properties["name"]))
	}
	return strings.Join(all, ", ")
}

func TestItemsAreThoseThatTheQuerySelects(t *testing.T) {
	_, server := start(t)
	for _, test := range []struct {
		query   string
		matched int
		names   string // of the page; empty: not looked at
	}{
		{"countries/items?limit=1", 241, ""},
		{"states/items?limit=1", 100, ""},
		{"rivers/items?limit=1", 461, ""},
		{"lakes/items?limit=1", 275, ""},
		{"cities/items?limit=1", 243, ""},
		{"countries/items?bbox=-25,63,-13,67", 1, "Iceland"},
		{"cities/items?bbox=-25,63,-13,67", 1, "Reykjavík"},
		{"countries/items?bbox=8,46.5,9,48", 2, "Switzerland, Germany"},
		{"countries/items?bbox=-9.2,38,-7.5,42.5", 2, "Spain, Portugal"},
		{"countries/items?bbox=179,-20,-179,-16", 1, "Fiji"}, // across the antimeridian
		{"countries/items?name=chile", 1, "Chile"},
		{"states/items?country=BRA&limit=1", 27, ""},
		{"states/items?country=USA&limit=1", 51, ""},
		{"countries/items?filter-lang=cql2-text&filter=" + url.QueryEscape("S_INTERSECTS(geometry, POINT(2.35 48.85))"), 1, "France"},
		// The bounding box of this triangle, above, meets Galicia; the triangle does not.
		{"countries/items?filter=" + url.QueryEscape("S_INTERSECTS(geometry, POLYGON((-9.2 38,-7.5 38,-9.2 42.5,-9.2 38)))"), 1, "Portugal"},
	} {
		fc := getItems(t, server.URL+"/collections/"+test.query)
		if fc.NumberMatched != test.matched || test.names != "" && names(fc) != test.names {
			t.Errorf("%s: %d matched: %.100s; want %d: %s", test.query, fc.NumberMatched, names(fc), test.matched, test.names)
		}
	}
}

func TestNextLinksReachEveryItemOnce(t *testing.T) {
	_, server := start(t)
	seen := make(map[string]bool)
	address, pages := server.URL+"/collections/cities/items?limit=100", 0
	for address != "" {
		fc := getItems(t, address)
		for _, f := range fc.Features {
			if seen[f.ID] {
				t.Fatalf("%s came twice", f.ID)
			}
			seen[f.ID] = true
		}
		address = fc.next()
		pages++
	}
	if len(seen) != 243 || pages != 3 {
		t.Fatalf("%d items in %d pages, want 243 in 3", len(seen), pages)
	}
}

func TestLinksNameTheProxyInFront(t *testing.T) {
	_, server := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/tiles/world.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-Host", "maps.example")
	req.Header.Set("X-Forwarded-Proto", "https")
	w := httptest.NewRecorder()
	service := demo.NewService()
	defer service.Close()
	service.ServeHTTP(w, req)
	if want := `"https://maps.example/tiles/world/{z}/{x}/{y}.mvt"`; !strings.Contains(w.Body.String(), want) {
		t.Fatalf("%s does not hold %s", w.Body, want)
	}
}

func TestWhatCannotBeReadIsRefusedWithoutAConnection(t *testing.T) {
	service, server := start(t)
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/collections/atlantis/items", "", 404},
		{"GET", "/collections/countries/items?limit=0", "", 400},
		{"GET", "/collections/countries/items?offset=-1", "", 400},
		{"GET", "/collections/countries/items?bbox=1,2,3", "", 400},
		{"GET", "/collections/countries/items?bbox=1,2,3,NaN", "", 400},
		{"GET", "/collections/countries/items?bbox=1,3,3,2", "", 400},
		{"GET", "/collections/countries/items?filter=name%3D1", "", 400},
		{"GET", "/collections/countries/items?filter=S_INTERSECTS(geometry,POLYGON((0%200))", "", 400},
		{"GET", "/collections/countries/items?a=%zz", "", 400},
		{"GET", "/collections/countries/items/atlantis", "", 404},
		{"GET", "/tiles/world/0/1/0.mvt", "", 404},
		{"GET", "/tiles/world/0/0/0.jpg", "", 404},
		{"GET", "/tiles/world/a/0/0.mvt", "", 400},
		{"GET", "/tiles/atlantis.json", "", 404},
		{"POST", "/processes/sink/execution", "{}", 404},
		{"POST", "/processes/buffer/execution", "{", 400},
		{"POST", "/processes/buffer/execution", `{"inputs":{}}`, 400},
		{"POST", "/processes/union/execution", `{"inputs":{"features":{"collection":"atlantis"}}}`, 400},
	} {
		res, body := do(t, test.method, server.URL+test.path, test.body)
		if res.status != test.status || res.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %s %s; want a problem with %d", test.method, test.path, res.status, res.header.Get("Content-Type"), body, test.status)
		}
	}
	if stats := service.Pool(); stats.Served != 0 {
		t.Errorf("%d connections were taken", stats.Served)
	}
}

func result(t *testing.T, server *httptest.Server, process, body string) []geom.GeoJSONFeature {
	t.Helper()
	res, text := do(t, http.MethodPost, server.URL+"/processes/"+process+"/execution", body)
	var fc geom.GeoJSONFeatureCollection
	if err := json.Unmarshal(text, &fc); err != nil || res.status != http.StatusOK {
		t.Fatalf("%s: %d %v %.200s", process, res.status, err, text)
	}
	return fc
}

func TestProcessesGiveKnownAnswers(t *testing.T) {
	_, server := start(t)
	const square = `{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1],[0,0]]]}`
	circle := 0.5 * 32 * math.Sin(2*math.Pi/32) // a regular polygon of 32 corners on the unit circle
	for _, test := range []struct {
		name, process, body string
		area                float64
	}{
		{"a point's buffer", "buffer", `{"inputs":{"features":{"type":"Point","coordinates":[5,5]},"distance":1}}`, circle},
		{"a line's buffer", "buffer", `{"inputs":{"features":{"type":"LineString","coordinates":[[0,0],[3,0]]},"distance":1}}`, circle + 3*2},
		{"a square's buffer", "buffer", `{"inputs":{"features":` + square + `,"distance":0.5}}`, 1 + 4*0.5 + circle/4},
		{
			"two squares that share a half", "union",
			`{"inputs":{"features":{"type":"GeometryCollection","geometries":[` + square + `,{"type":"Polygon","coordinates":[[[0.5,0],[1.5,0],[1.5,1],[0.5,1],[0.5,0]]]}]}}}`, 1.5,
		},
		{"a square inside another", "overlay", `{"inputs":{"features":` + square + `,"area":{"type":"Polygon","coordinates":[[[0.5,0.5],[2,0.5],[2,2],[0.5,2],[0.5,0.5]]]}}}`, 0.25},
	} {
		fc := result(t, server, test.process, test.body)
		if len(fc) != 1 || math.Abs(fc[0].Geometry.Area()-test.area) > 1e-9 {
			t.Errorf("%s: %d features, area %v; want 1, %v", test.name, len(fc), fc[0].Geometry.Area(), test.area)
		}
	}
}

func TestABodyMayBeGeoJSONItself(t *testing.T) {
	_, server := start(t)
	_, iceland := do(t, http.MethodGet, server.URL+"/collections/countries/items/352", "")
	res, body := do(t, http.MethodPost, server.URL+"/processes/buffer/execution?distance=0.5", string(iceland))
	if res.status != http.StatusOK {
		t.Fatalf("%d %s", res.status, body)
	}
	var before geom.GeoJSONFeature
	var after geom.GeoJSONFeatureCollection
	if err := json.Unmarshal(iceland, &before); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &after); err != nil {
		t.Fatal(err)
	}
	inside, err := geom.Covers(after[0].Geometry, before.Geometry)
	if err != nil || !inside {
		t.Fatalf("the buffer does not cover what it is of: %v", err)
	}
}

func TestUnionDissolvesByAProperty(t *testing.T) {
	_, server := start(t)
	const where = `{"inputs":{"features":{"collection":"countries","where":"continent=South America"},"by":"continent"}}`
	fc := result(t, server, "union", where)
	if len(fc) != 1 || fc[0].Properties["members"] != 13.0 {
		t.Fatalf("%d groups, %v", len(fc), fc[0].Properties)
	}
	var apart float64
	rows := getItems(t, server.URL+"/collections/countries/items?limit=100&continent=South+America")
	for _, f := range rows.Features {
		g, err := geom.UnmarshalGeoJSON(f.Geometry)
		if err != nil {
			t.Fatal(err)
		}
		apart += g.Area()
	}
	if got := fc[0].Geometry.Area(); math.Abs(got-apart) > 0.01 {
		t.Errorf("area %v together, %v apart: borders overlap or leave gaps", got, apart)
	}
}

func TestTheProcessesAreDescribed(t *testing.T) {
	_, server := start(t)
	for _, path := range []string{"/", "/conformance", "/collections", "/collections/countries", "/processes", "/processes/union", "/style.json", "/tiles/world.json"} {
		res, body := do(t, http.MethodGet, server.URL+path, "")
		if res.status != http.StatusOK || !json.Valid(body) {
			t.Errorf("%s: %d %.100s", path, res.status, body)
		}
	}
}

func TestRasterTilesArePictures(t *testing.T) {
	_, server := start(t)
	_, body := do(t, http.MethodGet, server.URL+"/tiles/world/0/0/0.png", "")
	picture, err := png.Decode(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != 256 || size.Y != 256 {
		t.Fatalf("%v", size)
	}
	land, sea := picture.At(146, 110), picture.At(100, 128) // Chad, the Atlantic
	if land == sea {
		t.Errorf("land and sea are both %v", land)
	}
}

// A crowd never makes the pool work on more than its connections, and is
// answered in full: the line has no bound.
func TestThePoolIsNeverAboveItsSize(t *testing.T) {
	service, server := start(t)
	var wg sync.WaitGroup
	failed := make(chan string, 60)
	for i := range cap(failed) {
		wg.Go(func() {
			res, err := http.Get(fmt.Sprintf("%s/collections/rivers/items?limit=50&offset=%d", server.URL, i))
			if err != nil {
				failed <- err.Error()
				return
			}
			defer res.Body.Close()
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
				failed <- res.Status
			}
		})
	}
	wg.Wait()
	http.DefaultClient.CloseIdleConnections()
	close(failed)
	for f := range failed {
		t.Error(f)
	}
	stats := service.Pool()
	if stats.PeakBusy != 8 || stats.PeakWaiting < 8 || stats.Served != 60 || stats.Busy != 0 || stats.Waiting != 0 {
		t.Errorf("%+v", stats)
	}
}
