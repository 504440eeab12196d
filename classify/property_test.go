package classify_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

// grows holds that a larger input never costs less: build is called with the
// smaller and the larger of two values.
func grows[T int | float64](t *testing.T, values *rapid.Generator[T], build func(t *rapid.T) func(T) *classify.Request) {
	t.Helper()
	configs := []*classify.Classifier{
		classifier(t, classify.Config{}),
		classifier(t, classify.Config{Profile: "guide"}),
	}
	rapid.Check(t, func(t *rapid.T) {
		request := build(t)
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		small, large := request(min(a, b)), request(max(a, b))
		for _, c := range configs {
			less, more := c.Estimate(small), c.Estimate(large)
			if less.Seconds > more.Seconds {
				t.Fatalf("%v costs %v s (%s), %v costs %v s (%s)", small, less.Seconds, less.Basis, large, more.Seconds, more.Basis)
			}
		}
	})
}

// more is part of a query: what else is asked for.
func more(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "&resulttype=hits", "&sortby=name", "&filter=name='x'", "&offset=100", "&f=gpkg", "&transform=ST_Buffer,1"}).Draw(t, "more")
}

func TestLargerLimit(t *testing.T) {
	grows(t, rapid.IntRange(1, 1e9), func(t *rapid.T) func(int) *classify.Request {
		with := more(t)
		path := rapid.SampledFrom([]string{"/collections/a/items", "/functions/f/items", "/a/3/1/1.pbf"}).Draw(t, "path")
		return func(n int) *classify.Request { return get(fmt.Sprintf("%s?limit=%d%s", path, n, with)) }
	})
}

func TestLargerOffset(t *testing.T) {
	grows(t, rapid.IntRange(0, 1e9), func(t *rapid.T) func(int) *classify.Request {
		with := more(t)
		return func(n int) *classify.Request { return get(fmt.Sprintf("/collections/a/items?offset=%d%s", n, with)) }
	})
}

// A box around a box, also across the antimeridian, with and without heights.
func TestLargerBox(t *testing.T) {
	grows(t, rapid.Float64Range(0, 1), func(t *rapid.T) func(float64) *classify.Request {
		lon, lat := rapid.Float64Range(-180, 180).Draw(t, "lon"), rapid.Float64Range(-90, 90).Draw(t, "lat")
		with := more(t)
		format := rapid.SampledFrom([]string{"%f,%f,%f,%f", "%[1]f,%[2]f,0,%[3]f,%[4]f,9", "%[1]f%%2C%[2]f,%[3]f,%[4]f"}).Draw(t, "format")
		around := func(x float64) float64 {
			switch {
			case x < -180:
				return x + 360
			case x > 180:
				return x - 360
			}
			return x
		}
		return func(size float64) *classify.Request {
			box := fmt.Sprintf(format, around(lon-179*size), max(-90, lat-90*size), around(lon+179*size), min(90, lat+90*size))
			return get("/collections/a/items?bbox=" + box + with)
		}
	})
}

func TestLowerZoom(t *testing.T) {
	grows(t, rapid.IntRange(0, 32), func(t *rapid.T) func(int) *classify.Request {
		form := rapid.SampledFrom([]string{"/a/%d/0/0.pbf", "/a,b/%d/0/0@2x.png", "/a/%d/0/0", "/collections/a/tiles/WebMercatorQuad/%d/0/0", "/a/%d/0/0.pbf?limit=0&buffer=9999"}).Draw(t, "form")
		return func(n int) *classify.Request { return get(fmt.Sprintf(form, 32-n)) }
	})
}

func TestLargerTile(t *testing.T) {
	for _, key := range []string{"limit", "buffer", "tilesize"} {
		grows(t, rapid.IntRange(1, 1e9), func(t *rapid.T) func(int) *classify.Request {
			z := rapid.IntRange(0, 22).Draw(t, "z")
			ext := rapid.SampledFrom([]string{"pbf", "png"}).Draw(t, "ext")
			return func(n int) *classify.Request { return get(fmt.Sprintf("/a/%d/0/0.%s?%s=%d", z, ext, key, n)) }
		})
	}
}

func TestMoreLayers(t *testing.T) {
	grows(t, rapid.IntRange(1, 200), func(t *rapid.T) func(int) *classify.Request {
		form := rapid.SampledFrom([]string{"/%s/9/0/0.pbf", "/%s/9/0/0.png", "/tiles/WebMercatorQuad/9/0/0?collections=%s"}).Draw(t, "form")
		return func(n int) *classify.Request {
			return get(fmt.Sprintf(form, strings.TrimSuffix(strings.Repeat("layer,", n), ",")))
		}
	})
}

func TestLargerPicture(t *testing.T) {
	grows(t, rapid.IntRange(1, 100_000), func(t *rapid.T) func(int) *classify.Request {
		side := rapid.IntRange(1, 10_000).Draw(t, "side")
		scale := rapid.IntRange(1, 4).Draw(t, "scale")
		return func(n int) *classify.Request {
			return get(fmt.Sprintf("/styles/a/static/1,2,3/%dx%d@%dx.png", n, side, scale))
		}
	})
	grows(t, rapid.IntRange(1, 100), func(*rapid.T) func(int) *classify.Request {
		return func(n int) *classify.Request { return get(fmt.Sprintf("/osm/9/0/0@%dx.png", n)) }
	})
}

func TestLongerRange(t *testing.T) {
	grows(t, rapid.IntRange(1, 1e9), func(*rapid.T) func(int) *classify.Request {
		return func(n int) *classify.Request {
			r := get("/world.pmtiles")
			r.Header = map[string][]string{"Range": {fmt.Sprintf("bytes=100-%d", 99+n)}}
			return r
		}
	})
}

// More geometry: in a filter, in what is written, and in what nothing recognises.
func TestMoreGeometry(t *testing.T) {
	grows(t, rapid.IntRange(1, 3000), func(t *rapid.T) func(int) *classify.Request {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		return func(n int) *classify.Request {
			ring := strings.TrimSuffix(strings.Repeat("[1,2],", n), ",")
			geometry := `{"type":"Polygon","coordinates":[[` + ring + `]]}`
			feature := `{"type":"Feature","geometry":` + geometry + `}`
			post := func(path, body string) *classify.Request {
				return &classify.Request{Method: "POST", Path: path, Body: classify.Body{Prefix: []byte(body), Length: int64(len(body)), Whole: true}}
			}
			switch kind {
			case 0:
				return get("/collections/a/items?filter=S_WITHIN(geom,LINESTRING(" + strings.TrimSuffix(strings.Repeat("1+2,", n), ",") + "))")
			case 1:
				return get(`/collections/a/items?filter={"op":"s_within","args":[{"property":"g"},` + geometry + `]}`)
			case 2:
				return post("/collections/a/items", feature)
			case 3:
				return post("/collections/a/items", `{"op":"s_within","args":[{"property":"g"},`+geometry+`]}`)
			}
			return post("/anything", feature)
		}
	})
}

// Whatever comes first or last, and however often: the dearest reading counts.
func TestOrderOfKeys(t *testing.T) {
	c := classifier(t, classify.Config{})
	pair := rapid.SampledFrom([]string{
		"limit=10", "limit=500", "limit=", "limit=x", "limit=-1", "offset=5", "offset=700", "bbox=1,2,3,4", "bbox=170,-10,-170,10", "bbox=x",
		"filter=S_WITHIN(geom,POINT(1+2))", "sortby=a", "f=json", "datetime=2024", "name=x", "buffer=9999", "bidx=1", "%6Cimit=200", "a=1;limit=300",
	})
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.SliceOfN(pair, 0, 8).Draw(t, "pairs")
		path := rapid.SampledFrom([]string{"/collections/a/items", "/a/5/3/3.png", "/a/5/3/3.pbf", "/functions/f/items"}).Draw(t, "path")
		whole := c.Estimate(get(path + "?" + strings.Join(pairs, "&")))
		shuffled := c.Estimate(get(path + "?" + strings.Join(rapid.Permutation(pairs).Draw(t, "shuffled"), "&")))
		if whole.Inputs != shuffled.Inputs || whole.Seconds != shuffled.Seconds || whole.Class != shuffled.Class {
			t.Fatalf("another order gives %+v, not %+v", shuffled, whole)
		}
	})
}

// A key that comes twice costs what the dearer of the two costs.
func TestRepeatedKeys(t *testing.T) {
	c := classifier(t, classify.Config{})
	for _, key := range []struct{ path, name string }{
		{"/collections/a/items", "limit"},
		{"/collections/a/items", "offset"},
		{"/a/5/3/3.pbf", "limit"},
		{"/a/5/3/3.pbf", "buffer"},
		{"/a/5/3/3.png", "tilesize"},
	} {
		rapid.Check(t, func(t *rapid.T) {
			number := rapid.Custom(func(t *rapid.T) string {
				return rapid.SampledFrom([]string{"", "x", "-1", "1e3", "%31%30", "0", fmt.Sprint(rapid.IntRange(0, 1e6).Draw(t, "n"))}).Draw(t, "value")
			})
			a, b := number.Draw(t, "a"), number.Draw(t, "b")
			alone := func(v string) float64 { return c.Estimate(get(key.path + "?" + key.name + "=" + v)).Seconds }
			both := c.Estimate(get(key.path + "?" + key.name + "=" + a + "&" + key.name + "=" + b)).Seconds
			if want := max(alone(a), alone(b)); both != want {
				t.Fatalf("%s=%q and %q cost %v s, the dearer alone %v s", key.name, a, b, both, want)
			}
		})
	}
}

// What comes out is always within its bounds, whatever goes in.
func checkEstimate(tb interface {
	Helper()
	Fatalf(string, ...any)
}, r *classify.Request, e classify.Estimate,
) {
	tb.Helper()
	for _, x := range []float64{e.Features, e.Vertices, e.Cells, e.Bytes} {
		if math.IsNaN(x) || x < 0 || x > 1e9 {
			tb.Fatalf("%v: inputs %+v", r, e.Inputs)
		}
	}
	switch {
	case math.IsNaN(e.Seconds) || e.Seconds < 1e-3 || e.Seconds > 3600:
		tb.Fatalf("%v: %v s", r, e.Seconds)
	case e.Class < classify.Metadata || e.Class > classify.Write:
		tb.Fatalf("%v: class %v", r, e.Class)
	case e.Family == "" || e.Op == "" || e.Basis == "":
		tb.Fatalf("%v: nothing said: %+v", r, e)
	case len(e.Basis) > 200:
		tb.Fatalf("%v: a basis of %d bytes", r, len(e.Basis))
	case e.Op == "unknown" && !e.Low:
		tb.Fatalf("%v: sure of what it does not know", r)
	case e.Op == "unknown" && e.Seconds < 0.1:
		tb.Fatalf("%v: unknown, and only %v s", r, e.Seconds)
	case e.Class == classify.Write && e.Replayable:
		tb.Fatalf("%v: a write to be repeated", r)
	case e.Replayable && !slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodPost}, r.Method):
		tb.Fatalf("%v: %s to be repeated", r, r.Method)
	}
}

func TestGoldenBounds(t *testing.T) {
	for _, cfg := range []classify.Config{{}, {Profile: "guide"}, {Family: "xyz"}, {Family: "ogcapi"}} {
		c := classifier(t, cfg)
		for _, r := range corpus(t) {
			checkEstimate(t, &r, c.Estimate(&r))
		}
	}
}
