package classify_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

// One request of each kind that a route sees most. The goal is 1.5 us and two
// allocations: the view that the families look at, and the basis.
func BenchmarkEstimate(b *testing.B) {
	c, err := classify.New(classify.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, bm := range []struct {
		name    string
		request classify.Request
	}{
		{"items", classify.Request{Path: "/ogc/collections/roads/items", Query: "bbox=4.80,52.30,4.95,52.42&limit=50&f=json"}},
		{"deep", classify.Request{Path: "/collections/parcels/items", Query: "limit=10000&offset=90000"}},
		{"filter", classify.Request{Path: "/collections/parcels/items", Query: "filter=S_INTERSECTS(geom,POLYGON((5+52,5.2+52,5.2+52.1,5+52)))&limit=1000"}},
		{"tile", classify.Request{Path: "/public.roads/14/8412/5384.pbf"}},
		{"picture", classify.Request{Path: "/styles/basic/18/134690/86171@2x.png"}},
		{"longest query", classify.Request{Path: "/collections/parcels/items", Query: strings.Repeat(";limit=%31&filter=1", 250) + strings.Repeat(";filter=POINT(1+2)", 3300)}},
		{"longest path", classify.Request{Path: strings.Repeat("/..;a/%2e%2e/b//", 500)}},
		{"osrm", classify.Request{Path: "/route/v1/driving/4.90,52.37;4.48,51.92", Query: "overview=false&steps=true"}},
		{"graphhopper", classify.Request{Path: "/route", Query: "point=52.37,4.90&point=51.92,4.48&profile=car"}},
		{"valhalla", classify.Request{Path: "/route", Query: `json=%7B%22locations%22:[%7B%22lat%22:52.37,%22lon%22:4.9%7D,%7B%22lat%22:51.92,%22lon%22:4.48%7D],%22costing%22:%22auto%22%7D`}},
		{"nominatim", classify.Request{Path: "/search", Query: "q=unter+den+linden&format=jsonv2&limit=5"}},
		{"pelias", classify.Request{Path: "/v1/autocomplete", Query: "text=pari&size=5"}},
		{"stac", classify.Request{Path: "/search", Query: "collections=s2-l2a&bbox=4,51,5,52&limit=20"}},
		{"titiler", classify.Request{Path: "/cog/bbox/4.9,52.3,4.95,52.35/256x256.png", Query: "url=s3://b/x.tif&bidx=1,2,3"}},
		{"arcgis", classify.Request{Path: "/arcgis/rest/services/Parcels/FeatureServer/0/query", Query: "where=1%3D1&geometry=4.8,52.3,4.9,52.4&geometryType=esriGeometryEnvelope&f=pbf"}},
		{"overpass", classify.Request{Path: "/api/interpreter", Query: "data=[out:json][timeout:25];node[amenity=cafe](52.3,4.8,52.4,5.0);out;"}},
		{"unknown", classify.Request{Path: "/rpc/nearest", Query: "lon=4.9&lat=52.3&k=10"}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			r := bm.request
			r.Method, r.Header = "GET", http.Header{"Accept": {"*/*"}, "User-Agent": {"bench"}}
			b.ReportAllocs()
			for b.Loop() {
				c.Estimate(&r)
			}
		})
	}
}

// A rule costs what its expressions cost.
func BenchmarkRule(b *testing.B) {
	c, err := classify.New(classify.Config{Rules: []classify.Rule{
		{Op: "heatmap", Class: "compute", When: `request.path.startsWith("/heat")`, Cells: "int(query.w) * int(query.h)"},
	}})
	if err != nil {
		b.Fatal(err)
	}
	for name, path := range map[string]string{"matches": "/heat", "passes": "/collections/roads/items"} {
		b.Run(name, func(b *testing.B) {
			r := classify.Request{Method: "GET", Path: path, Query: "w=1000&h=1000"}
			b.ReportAllocs()
			for b.Loop() {
				c.Estimate(&r)
			}
		})
	}
}
