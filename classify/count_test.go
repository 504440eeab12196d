package classify_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

// encode applies content codings, in the order of the header.
func encode(tb testing.TB, b []byte, codings string) []byte {
	tb.Helper()
	for coding := range strings.SplitSeq(codings, ",") {
		var out bytes.Buffer
		var w io.WriteCloser
		var err error
		switch strings.TrimSpace(coding) {
		case "gzip":
			w = gzip.NewWriter(&out)
		case "deflate":
			w = zlib.NewWriter(&out)
		case "raw deflate":
			w, err = flate.NewWriter(&out, 6)
		case "br":
			w = brotli.NewWriter(&out)
		case "zstd":
			w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		default:
			continue
		}
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
		b = out.Bytes()
	}
	return b
}

func whole(b []byte) classify.Body {
	return classify.Body{Prefix: b, Length: int64(len(b)), Whole: true}
}

func TestCountBodyExactly(t *testing.T) {
	collection := polygons(3, 50)
	form := url.Values{"where": {"1=1"}, "geometry": {collection}, "filter": {"S_WITHIN(g,POINT(1 2))"}}.Encode()
	for _, c := range []struct {
		name, text, contentType string
		features, vertices      float64
	}{
		{"JSON", collection, "application/geo+json", 3, 150},
		{"JSON after space and a byte order mark", "\xef\xbb\xbf\r\n " + collection, "", 3, 150},
		{"text sequence", "\x1e" + collection, "application/geo+json-seq", 3, 150},
		{"array", "[" + collection + "]", "application/json", 3, 150},
		{"JSON string", `"POINT(1 2)"`, "application/json", 1, 1},
		{"WKT", "polygon((0 0,1 0,1 1,0 0))", "text/plain", 1, 4},
		{"text", "hello", "text/plain", 0, 0},
		{"form", form, "application/x-www-form-urlencoded; charset=utf-8", 4, 151},
		{"space", " \n", "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := classify.Geometry{Features: c.features, Vertices: c.vertices}
			for _, coding := range []string{"", "identity", "gzip", "deflate", "br", "zstd", "gzip, br", "zstd,identity , deflate", "gzip,gzip,gzip,gzip"} {
				if got := classify.CountBody(whole(encode(t, []byte(c.text), coding)), strings.ToUpper(coding), c.contentType); got != want {
					t.Errorf("%q: counted %+v, want %+v", coding, got, want)
				}
			}
			if got := classify.CountBody(whole(encode(t, []byte(c.text), "raw deflate")), "deflate", c.contentType); got != want {
				t.Errorf("deflate without zlib: counted %+v, want %+v", got, want)
			}
		})
	}
}

func TestCountBodyOfNothing(t *testing.T) {
	for _, body := range []classify.Body{{}, {Length: -1, Whole: true}} {
		if got := classify.CountBody(body, "gzip", "application/json"); got != (classify.Geometry{}) {
			t.Errorf("counted %+v", got)
		}
	}
}

// near reports whether a and b differ by at most a fiftieth.
func near(a, b float64) bool { return math.Abs(a-b) <= 0.02*max(a, b) }

func TestCountBodyFromItsBeginning(t *testing.T) {
	text := []byte(polygons(400, 100))
	for _, coding := range []string{"", "gzip", "br", "zstd", "deflate"} {
		coded := encode(t, text, coding)
		cut := classify.Body{Prefix: coded[:len(coded)/3], Length: int64(len(coded))}
		got := classify.CountBody(cut, coding, "")
		if !near(got.Features, 400) && coding == "" || got.Malformed || math.Abs(got.Vertices-40000) > 4000 {
			t.Errorf("%q: counted %+v, want about 400 features of 100 vertices", coding, got)
		}
		cut.Length = -1
		unknown := classify.CountBody(cut, coding, "")
		scale := float64(classify.UnknownBodyBytes) / float64(len(coded))
		if !near(unknown.Vertices, got.Vertices*scale) || !near(unknown.Features, got.Features*scale) {
			t.Errorf("%q: counted %+v without a length, want %.1f times %+v", coding, unknown, scale, got)
		}
	}

	// The bound: a vertex in four bytes, however dense the beginning is.
	dense := []byte("LINESTRING(" + strings.Repeat(",1", 1000))
	got := classify.CountBody(classify.Body{Prefix: dense, Length: 1e6}, "", "")
	if got.Vertices != 250000 || got.Malformed {
		t.Errorf("counted %+v, want 250,000 vertices in a million bytes", got)
	}
}

func TestCountBodyAtTheBound(t *testing.T) {
	collection := []byte(polygons(3, 50))
	gz := encode(t, collection, "gzip")
	zeros := make([]byte, 8<<20)
	damaged := slices.Clone(gz)
	damaged[len(damaged)/2] ^= 0xff
	const mebi = 1 << 20
	for _, c := range []struct {
		name      string
		body      classify.Body
		coding    string
		leastPerB float64 // vertices a byte of the body
	}{
		{"malformed", whole([]byte(`{"coordinates":[[1,2],oops]}`)), "", 0.25},
		{"ends early", whole(collection[:200]), "", 0.25},
		{"malformed beginning", classify.Body{Prefix: []byte(`{]`), Length: mebi}, "", 0.25},
		{"nothing was read", classify.Body{Length: mebi}, "", 0.25},
		{"XML with a document type", whole([]byte("<!DOCTYPE a><wfs:Transaction/>")), "", 0.25},
		{"binary", whole([]byte("\x01\x02\x00\x00\x00\xff\xff\xff\xff")), "", 0.25},
		{"UTF-16", whole([]byte("\xff\xfe{\x00")), "", 0.25},
		{"unknown coding", whole(collection), "compress", 50},
		{"five codings", whole(collection), "gzip,gzip,gzip,gzip,gzip", 50},
		{"not what the header says", whole(collection), "gzip", 50},
		{"damaged", whole(damaged), "gzip", 0.25},
		{"coded, ends early", whole(gz[:len(gz)-20]), "gzip", 0.25},
		{"bomb", whole(encode(t, zeros, "gzip")), "gzip", 50},
		{"bomb of brotli", whole(encode(t, zeros, "br")), "br", 50},
		{"bomb of zstd", whole(encode(t, zeros, "zstd")), "zstd", 50},
		{"bomb in a bomb", whole(encode(t, zeros, "gzip,gzip")), "gzip,gzip", 50},
		{"small bomb", whole(encode(t, zeros[:mebi/2], "gzip")), "gzip", 50},
		{"two streams, the second a bomb", whole(slices.Concat(gz, encode(t, zeros, "gzip"))), "gzip", 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := classify.CountBody(c.body, c.coding, "")
			bytes := float64(max(c.body.Length, int64(len(c.body.Prefix))))
			if !got.Malformed || got.Features < 1 || got.Vertices < bytes*c.leastPerB {
				t.Errorf("counted %+v, want malformed and at least %v vertices", got, bytes*c.leastPerB)
			}
		})
	}
}

func TestLongerBodiesNeverCountLess(t *testing.T) {
	text := []byte(polygons(20, 30))
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(1, len(text)-1).Draw(t, "cut")
		length := rapid.Int64Range(int64(len(text)), 1<<26).Draw(t, "length")
		body := classify.Body{Prefix: text[:cut], Length: length}
		got := classify.CountBody(body, "", "")
		body.Length += rapid.Int64Range(0, 1<<20).Draw(t, "more")
		if more := classify.CountBody(body, "", ""); more.Vertices < got.Vertices || more.Features < got.Features {
			t.Fatalf("%+v, of a longer body %+v", got, more)
		}
		body.Length = -1
		if unknown := classify.CountBody(body, "", ""); length <= classify.UnknownBodyBytes && unknown.Vertices < got.Vertices {
			t.Fatalf("%+v, of a body of unknown length %+v", got, unknown)
		}
	})
}

func TestBounds(t *testing.T) {
	collection := `{"bbox":[0,0,0,0],"coordinates":[[[13.5,52.25,7],[-1e1, 60]],[ -3 ,
		-4.5 ]],"g":"POINT(200 1)"}`
	want := [4]float64{-10, -4.5, 200, 60}
	for name, b := range map[string]classify.Bounds{
		"GeoJSON": classify.BoundsGeoJSON([]byte(collection)),
		"body":    classify.BoundsBody(whole(encode(t, []byte(collection), "gzip")), "gzip", ""),
		"WKT":     classify.BoundsWKT([]byte("a IN (1000,1000) OR LINESTRING Z (13.5 52.25 7, -10\t60,-3 -4.5) OR POINT(200 1)")),
	} {
		if got := [4]float64{b.MinX, b.MinY, b.MaxX, b.MaxY}; got != want || b.Empty() {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if b := classify.BoundsGeoJSON([]byte(`{"coordinates":[]}`)); !b.Empty() {
		t.Errorf("the bounds of nothing are %+v", b)
	}
	for _, text := range []string{"POINT(1e400 0)", "POINT(NaN 0)", "POINT(1)", "POINT(" + strings.Repeat("1", 40) + " 0)"} {
		if b := classify.BoundsWKT([]byte(text)); !math.IsInf(b.MinX, -1) || !math.IsInf(b.MaxY, 1) {
			t.Errorf("%s: %+v, want everywhere", text, b)
		}
	}
}

func FuzzCountBody(f *testing.F) {
	collection := []byte(polygons(2, 5))
	for _, coding := range []string{"", "gzip", "deflate", "raw deflate", "br", "zstd", "gzip,br"} {
		f.Add(encode(f, collection, coding), strings.TrimPrefix(coding, "raw "), "application/json", int64(-1), true)
	}
	f.Add([]byte("g=POINT(1+2)&h=%7B%22coordinates%22:[1,2]}"), "", "application/x-www-form-urlencoded", int64(1000), false)
	f.Fuzz(func(t *testing.T, prefix []byte, coding, contentType string, length int64, all bool) {
		body := classify.Body{Prefix: prefix, Length: length, Whole: all}
		g := classify.CountBody(body, coding, contentType)
		if !(g.Features >= 0 && g.Vertices >= 0) || math.IsInf(g.Features+g.Vertices, 0) {
			t.Fatalf("counted %+v", g)
		}
		longest := float64(max(length, classify.UnknownBodyBytes, int64(len(prefix))))
		if g.Vertices > longest*200/2+1 || g.Features > longest*200/4+1 {
			t.Fatalf("counted %+v in %v bytes", g, longest)
		}
		if g.Malformed && g.Vertices == 0 {
			t.Fatalf("malformed and cheap: %+v", g)
		}
		classify.BoundsBody(body, coding, contentType)
	})
}
