package classify_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

func TestCountWKT(t *testing.T) {
	for _, c := range []struct {
		name, text         string
		features, vertices float64
		malformed          bool
	}{
		{"nothing", "", 0, 0, false},
		{"point", "POINT(1 2)", 1, 1, false},
		{"point with space", " point  ( 1 2 ) ", 1, 1, false},
		{"EWKT", "SRID=4326;POINT(1 2)", 1, 1, false},
		{"three dimensions count once", "POINT Z (1 2 3)", 1, 1, false},
		{"measured", "LINESTRINGM(1 2 3,4 5 6)", 1, 2, false},
		{"both", "LineString\nZM\t(1 2 3 4, 4 5 6 7)", 1, 2, false},
		{"glued", "POINTZM(1 2 3 4)", 1, 1, false},
		{"empty", "POLYGON EMPTY", 0, 0, false},
		{"ring with its closing vertex and a hole", "POLYGON((0 0,9 0,9 9,0 0),(1 1,2 1,2 2,1 1))", 1, 8, false},
		{"multipoint", "MULTIPOINT(1 2,3 4)", 1, 2, false},
		{"multipoint with parentheses", "MULTIPOINT((1 2),(3 4))", 1, 2, false},
		{"multipolygon", "MULTIPOLYGON(((0 0,1 0,1 1,0 0)),((5 5,6 5,6 6,5 5)),EMPTY)", 1, 8, false},
		{"collection", "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING (1 2,3 4), POINT EMPTY)", 1, 3, false},
		{"curves", "CURVEPOLYGON(COMPOUNDCURVE(CIRCULARSTRING(0 0,2 0,2 1),(2 1,0 0)))", 1, 5, false},
		{"TIN", "TIN(((0 0,0 1,1 1,0 0)))", 1, 4, false},
		{"numbers in every spelling", "LINESTRING(-1.5e-3 +2,.5 1.,NaN 1,-inf inf,1E5 2)", 1, 5, false},
		{"every literal of a filter", "S_INTERSECTS(geom, POINT(1 2)) OR S_WITHIN(geom,POLYGON((0 0,1 0,1 1,0 0))) AND a IN (1,2,3)", 2, 5, false},
		{"a box is none", "BBOX(geom,1,2,3,4) AND ENVELOPE(1,2,3,4)", 0, 0, false},
		{"functions are none", "ST_Point(1,2) AND my_polygon (1,2)", 0, 0, false},
		{"SQL", "ST_GeomFromText('LINESTRING(1 2,3 4)',4326)", 1, 2, false},
		{"doubled quotes", "name = 'O''Hara (1,2)' AND S_INTERSECTS(g,POINT(1 2))", 1, 1, false},
		{"other space", "POINT\u00a0(1 2)", 1, 1, false},
		{"parentheses only", "((1 2),(3 4))", 0, 0, false},

		{"open", "POLYGON((0 0,1 0", 1, 2, true},
		{"open after the name", "POLYGON(", 1, 0, true},
		{"quote in a literal", "POINT(1 '2)", 1, 1, true},
		{"semicolons", "LINESTRING(1 2;3 4)", 1, 1, true},
		{"comments", "LINESTRING(1 2/*,3 4*/)", 1, 1, true},
		{"depth bomb", "POLYGON" + strings.Repeat("(", 1e6), 1, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := classify.Geometry{Features: c.features, Vertices: c.vertices, Malformed: c.malformed}
			if got := classify.CountWKT([]byte(c.text)); got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
		})
	}
}

// wktTokens counts a single geometry text the slow way.
var (
	wktTokens = regexp.MustCompile(`[(,]\s*[-+.0-9NnIi]`)
	wktShape  = regexp.MustCompile(`^[A-Z]+\([0-9A-Za-z .,()+-]*\)$`)
)

func anyWKT(t *rapid.T, depth int) string {
	number := func() string {
		return fmt.Sprintf("%g", rapid.Float64Range(-180, 180).Draw(t, "number"))
	}
	tuples := func(least int) string {
		n := rapid.IntRange(least, 12).Draw(t, "vertices")
		all := make([]string, n)
		for i := range all {
			all[i] = strings.Join([]string{number(), number()}, rapid.SampledFrom([]string{" ", "  ", "\t", "\n   "}).Draw(t, "space"))
		}
		return "(" + strings.Join(all, rapid.SampledFrom([]string{",", ", ", " ,\n"}).Draw(t, "comma")) + ")"
	}
	kind := rapid.IntRange(0, 4).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	one := tuples(1)
	two := tuples(4)
	switch kind {
	case 0:
		return "POINT(" + number() + " " + number() + ")"
	case 1:
		return "LINESTRING" + one
	case 2:
		return "POLYGON(" + two + "," + one + ")"
	case 3:
		return "MULTIPOLYGON((" + one + "),EMPTY,(" + two + "))"
	default:
		return "GEOMETRYCOLLECTION(" + anyWKT(t, depth-1) + ", " + anyWKT(t, depth-1) + ")"
	}
}

func TestCountWKTProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyWKT(t, 3)
		got := classify.CountWKT([]byte(text))
		want := float64(len(wktTokens.FindAllString(text, -1)))
		if got != (classify.Geometry{Features: 1, Vertices: want}) {
			t.Fatalf("counted %+v, want %v vertices: %s", got, want, text)
		}
		// A vertex more never counts less.
		longer := text[:len(text)-1] + ",1 2)"
		if more := classify.CountWKT([]byte(longer)); more.Vertices != want+1 {
			t.Fatalf("counted %+v with a vertex more than %v", more, want)
		}
		checkPrefixes(t, []byte(text), rapid.IntRange(0, len(text)).Draw(t, "cut"), classify.CountWKT)
		// A filter of several counts all of them.
		twice := "S_INTERSECTS(geom," + text + ") OR (a = 1 AND S_WITHIN(geom, " + text + "))"
		if both := classify.CountWKT([]byte(twice)); both.Features != 2 || both.Vertices != 2*want {
			t.Fatalf("counted %+v in a filter with two of %v vertices", both, want)
		}
	})
}

func FuzzCountWKT(f *testing.F) {
	for _, seed := range []string{
		"SRID=4326;POLYGON Z ((0 0 1,1 0 1,1 1 1,0 0 1))", "S_INTERSECTS(geom,POINT(1 2)) AND a IN (1,2)",
		"GEOMETRYCOLLECTION(POINT(1 2),LINESTRING EMPTY)", "MULTIPOINT((1 2),(3 4))", "POLYGON((0 0, 1e5 -.5,\n+1 nan",
	} {
		f.Add([]byte(seed), len(seed)/2)
	}
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		checkPrefixes(t, text, int(uint(at)%uint(len(text)+1)), classify.CountWKT)
		g := classify.CountWKT(text)
		if 2*g.Vertices > float64(len(text)) || 4*g.Features > float64(len(text)) {
			t.Fatalf("counted %+v in %d bytes: %q", g, len(text), text)
		}
		if whole := "POLYGON(" + string(text) + ")"; wktShape.MatchString(whole) {
			got := classify.CountWKT([]byte(whole))
			want := float64(len(wktTokens.FindAllString(whole, -1)))
			if !got.Malformed && got.Features == 1 && got.Vertices > want {
				t.Fatalf("counted %+v, want at most %v vertices: %q", got, want, whole)
			}
		}
		classify.BoundsWKT(text)
	})
}
