package classify_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

func TestCountGeoJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct {
		name, text         string
		features, vertices float64
		malformed          bool
	}{
		{"nothing", "", 0, 0, false},
		{"point", `{"type":"Point","coordinates":[1,2]}`, 1, 1, false},
		{"three dimensions count once", `{"type":"Point","coordinates":[1,2,3]}`, 1, 1, false},
		{"line", `{"type":"LineString","coordinates":[[1,2],[3,4],[-5e1,6E-1],[7.5e+1,8]]}`, 1, 4, false},
		{"ring with its closing vertex", `{"coordinates":[[[0,0],[1,0],[1,1],[0,0]],[[0,0],[1,1],[0,1],[0,0]]]}`, 1, 8, false},
		{"empty coordinates", `{"type":"MultiPoint","coordinates":[]}`, 1, 0, false},
		{"null coordinates", `{"type":"Point","coordinates":null}`, 0, 0, false},
		{"feature", `{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":null}`, 1, 1, false},
		{"feature without geometry", `{"type":"Feature","geometry":null,"properties":{}}`, 1, 0, false},
		{
			"collection", `{"type":"FeatureCollection","features":[
				{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]}},
				{"type" : "Feature", "geometry":{"coordinates" : [ [ 1 , 2 ] , [ 3 , 4 ] ]}}]}`, 2, 3, false,
		},
		{"geometry collection", `{"type":"GeometryCollection","geometries":[{"coordinates":[1,2]},{"coordinates":[[1,2],[3,4]]}]}`, 1, 3, false},
		{"bbox is none", `{"bbox":[1,2,3,4],"type":"Feature","geometry":{"bbox":[1,2,3,4],"coordinates":[1,2]}}`, 1, 1, false},
		{"arrays of properties are none", `{"type":"Feature","properties":{"a":[1,2],"b":[[1,2]]}}`, 1, 0, false},
		{"coordinates of properties are", `{"type":"Feature","properties":{"coordinates":[1,2]}}`, 1, 1, false},
		{"repeated names all count", `{"coordinates":[1,2],"coordinates":[3,4],"type":"Feature","type":"Feature"}`, 2, 2, false},
		{"escaped names", `{"\u0063oordinates":[1,2],"t\u0079pe":"\u0046eature"}`, 1, 1, false},
		{"wholly escaped name", `{"\u0063\u006f\u006f\u0072\u0064\u0069\u006e\u0061\u0074\u0065\u0073":[1,2]}`, 1, 1, false},
		{"names in other case", `{"Coordinates":[1,2],"TYPE":"Feature"}`, 1, 1, false},
		{"a name that folds to it", "{\"coordinate\u017f\":[1,2]}", 1, 1, false},
		{"the value is not folded", `{"type":"feature","x":"Feature"}`, 0, 0, false},
		{"objects in coordinates", `{"coordinates":[{"a":[1,2],"coordinates":[3,4]},[5,6]]}`, 1, 3, false},
		{"after an object in coordinates", `{"coordinates":[{"a":[]}],"bbox":[1,2]}`, 1, 0, false},
		{"an array of mixed values", `{"coordinates":[[1,"a"],[2,[3,4]],["b",5],[6,null]]}`, 1, 4, false},
		{"coordinates that are an object", `{"coordinates":{"a":[1,2]}}`, 0, 0, false},
		{"brackets in strings", `{"a":"[1,2],{\"coordinate\":","b":"\\","coordinates":["]",[1,2]]}`, 1, 1, false},
		{"byte order mark", "\xef\xbb\xbf" + `{"coordinates":[1,2]}`, 1, 1, false},
		{"lines", `{"type":"Feature","geometry":{"coordinates":[1,2]}}` + "\n" + `{"type":"Feature"}` + "\r\n", 2, 1, false},
		{"text sequence", "\x1e" + `{"type":"Feature"}` + "\n\x1e" + `{"type":"Feature"}` + "\n", 2, 0, false},
		{"scalars", `1 "a" true null -0.5e3`, 0, 0, false},

		{"JSON in a string", `{"geometry":"{\"type\":\"Point\",\"coordinates\":[1,2]}"}`, 1, 1, false},
		{"JSON in a string, spaced by escapes", `{"g":"\n {\t\"coordinates\":\u005b\u0031,2]}"}`, 1, 1, false},
		{"JSON in a string in a string", `{"a":"{\"b\":\"{\\\"coordinates\\\":[1,2]}\"}"}`, 1, 1, false},
		{"WKT in a string", `{"filter":"S_INTERSECTS(geom,POLYGON((0 0,1 0,1 1,0 0)))"}`, 1, 4, false},
		{"WKT in a string, escaped", `{"filter":"S_INTERSECTS(geom,\nPOLYGON\u0028\u0028\n0 0,\n1 0,1 1,0 0)))"}`, 1, 4, false},
		{"prose in brackets", `{"type":"Feature","properties":{"a":"[sic] some text","b":"{name} (and more)","c":"[1] a reference"}}`, 1, 0, false},
		{"JSON in a string that cannot be read", `{"a":"{'coordinates':[[1,2],[3,4]],'type':0}"}`, 1, 9, false},

		{"open string", `{"type":"Feature","a":"b`, 1, 0, true},
		{"open escape", `{"type":"Feature","a":"b\`, 1, 0, true},
		{"open name", `{"type":"Feature","a`, 1, 0, true},
		{"open after a name", `{"type":"Feature","a"`, 1, 0, true},
		{"open array", `{"coordinates":[[1,2],[3,4]`, 1, 2, true},
		{"open position", `{"coordinates":[[1,2],[3`, 1, 2, true},
		{"open literal", `[tru`, 0, 0, true},
		{"not JSON", `{"coordinates":[[1,2],[3,4]],oops}`, 1, 2, true},
		{"comments", `{"coordinates":[[1/*"*/,2],[3,4]/*"*/]}`, 1, 1, true},
		{"line comments", "{\"coordinates\":[[1//,\"\n,2],[3,4]]}", 1, 1, true},
		{"single quotes", `{'coordinates':[1,2]}`, 0, 0, true},
		{"bare names", `{coordinates:[1,2]}`, 0, 0, true},
		{"NaN", `{"coordinates":[NaN,2]}`, 1, 0, true},
		{"wrong bracket", `{"coordinates":[1,2}]`, 1, 1, true},
		{"comma before a bracket", `{"coordinates":[1,]}`, 1, 1, true},
		{"positions outside of an array", `{"coordinates":[1,2],[3,4]}`, 1, 1, true},
		{"nothing between commas", `{"a":[,1]}`, 0, 0, true},
		{"no colon", `{"a" 1}`, 0, 0, true},
		{"control character in a string", "{\"a\":\"\n\"}", 0, 0, true},
		{"record separator in an element", "\x1e{\"a\":[\x1e1]}", 0, 0, true},
		{"unknown escape", `{"a":"\q"}`, 0, 0, true},
		{"bad unicode escape", `{"\u00g3oordinates":[1,2]}`, 0, 0, true},
		{"UTF-16", "{\x00\"\x00a\x00\"\x00", 0, 0, true},
		{"as deep as allowed", deep(64), 0, 0, false},
		{"too deep", deep(65), 0, 0, true},
		{"depth bomb", strings.Repeat("[", 1e6), 0, 0, true},
		{"depth bomb of objects", strings.Repeat(`{"a":`, 1e5), 0, 0, true},
		{"depth bomb in coordinates", `{"coordinates":` + strings.Repeat("[1,", 1e5), 1, 64, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := classify.Geometry{Features: c.features, Vertices: c.vertices, Malformed: c.malformed}
			if got := classify.CountGeoJSON([]byte(c.text)); got != want {
				t.Errorf("counted %+v, want %+v", got, want)
			}
		})
	}
}

// The scanner reads words of eight bytes: what it counts must not depend on
// where in them a text begins and ends.
func TestCountGeoJSONAtEveryOffset(t *testing.T) {
	texts := []string{
		`{"type":"Feature","geometry":{"type":"LineString","coordinates":[[1,2],[3.25,4.125],[-5e1,6.0000001]]},"a":"\"x"}`,
		"{\n\t\"type\": \"Feature\",\n\t\"coordinates\": [\n\t\t[\n\t\t\t1,\n\t\t\t2\n\t\t]\n\t]\n}",
	}
	for _, text := range texts {
		want := classify.CountGeoJSON([]byte(text))
		for pad := range 17 {
			for tail := range 17 {
				padded := strings.Repeat(" ", pad) + text + strings.Repeat("\n", tail)
				if got := classify.CountGeoJSON([]byte(padded)); got != want {
					t.Fatalf("%d before, %d after: counted %+v, want %+v", pad, tail, got, want)
				}
			}
		}
	}
}

// parsed counts by encoding/json what the doc comment of CountGeoJSON says.
// False is what is not a sequence of JSON values nested at most 64 deep.
func parsed(text []byte) (classify.Geometry, bool) {
	var p parser
	for element := range bytes.SplitSeq(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte{0x1e}) {
		d := json.NewDecoder(bytes.NewReader(element))
		for {
			var value json.RawMessage
			err := d.Decode(&value)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return classify.Geometry{}, false
			}
			tokens := json.NewDecoder(bytes.NewReader(value))
			tokens.UseNumber()
			p.value(tokens, "", false, 0)
		}
	}
	g := classify.Geometry{Features: p.features, Vertices: p.vertices}
	if p.features == 0 && p.geometries > 0 {
		g.Features = 1
	}
	g.Features += p.texts.Features
	g.Vertices += p.texts.Vertices
	return g, !p.deep
}

type parser struct {
	features, vertices float64
	geometries         int
	texts              classify.Geometry
	deep               bool
}

// value reads one value and returns its first token.
func (p *parser) value(d *json.Decoder, name string, coordinates bool, depth int) json.Token {
	token, err := d.Token()
	if err != nil {
		panic(err)
	}
	delim, _ := token.(json.Delim)
	if delim != 0 && depth == 64 {
		p.deep = true
	}
	switch delim {
	case '{':
		for d.More() {
			key, err := d.Token()
			if err != nil {
				panic(err)
			}
			value := p.value(d, key.(string), coordinates, depth+1)
			if value == json.Token("Feature") && strings.EqualFold(key.(string), "type") {
				p.features++
			}
		}
	case '[':
		if strings.EqualFold(name, "coordinates") {
			coordinates = true
			p.geometries++
		}
		for first := true; d.More(); first = false {
			value := p.value(d, "", coordinates, depth+1)
			if _, number := value.(json.Number); number && first && coordinates {
				p.vertices++
			}
		}
	}
	if delim != 0 {
		if _, err := d.Token(); err != nil {
			panic(err)
		}
	}
	if s, ok := token.(string); ok {
		p.text(s)
	}
	return token
}

// text counts a string value, by the counters themselves.
func (p *parser) text(s string) {
	if len(s) < 8 {
		return
	}
	s = strings.TrimLeft(s, " \t\r\n")
	g := classify.CountWKT([]byte(s))
	unread := g.Malformed
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		g = classify.CountGeoJSON([]byte(s))
		unread = g.Malformed && strings.Contains(s, "coordinates")
	}
	if unread {
		g.Features = max(g.Features, 1)
		g.Vertices = max(g.Vertices, float64(len(s)/4))
	}
	p.texts.Features += g.Features
	p.texts.Vertices += g.Vertices
}

// numbers are what the scanner does not hold to the grammar of JSON, and strings,
// in which there are none.
var numbers = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9-][0-9+\-.,eE \t\r\n]*`)

// compare holds CountGeoJSON to parsed.
func compare(t *testing.T, text []byte) {
	t.Helper()
	got := classify.CountGeoJSON(text)
	want, valid := parsed(text)
	// Where it replaces characters that are none, a parser's strings have other
	// lengths than ours, and so has the bound of a text that cannot be read.
	replaced := !utf8.Valid(text) || bytes.Contains(bytes.ToLower(text), []byte(`\ud`))
	if valid && (got.Malformed || got != want && !replaced) {
		t.Fatalf("counted %+v, a parser %+v: %q", got, want, text)
	}
	if !valid && !got.Malformed {
		plain := numbers.ReplaceAllFunc(text, func(s []byte) []byte {
			switch trimmed := bytes.TrimRight(s, " \t\r\n"); {
			case s[0] == '"':
				return s
			case trimmed[len(trimmed)-1] == ',':
				return []byte("0,")
			}
			return []byte("0 ")
		})
		if _, valid := parsed(plain); !valid {
			t.Fatalf("counted %+v of what is no JSON: %q", got, text)
		}
	}
}

// failer is what a test and a property have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// A cut text never counts more than the whole.
func checkPrefixes(t failer, text []byte, at int, count func([]byte) classify.Geometry) {
	t.Helper()
	whole := count(text)
	part := count(text[:at])
	if !part.Malformed && !whole.Malformed && (part.Features > whole.Features || part.Vertices > whole.Vertices) {
		t.Fatalf("the first %d bytes count %+v, the whole %+v: %q", at, part, whole, text)
	}
}

func FuzzCountGeoJSON(f *testing.F) {
	for _, seed := range []string{
		`{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[0,0],[1.5,0],[1,1e3],[0,0]]]},"properties":{"a":"b\n","coordinates":[1]}}]}`,
		"{\n  \"\\u0063oordinates\": [\n    [\n      1,\n      2\n    ],\n    [3, 4]\n  ]\n}",
		"\x1e{\"type\":\"Feature\"}\n\x1e{\"coordinates\":[{\"a\":[1,[2,3]]}]}\n",
		`{"filter":"S_INTERSECTS(g,POINT(1 2))","g":"{\"coordinates\":[1,2]}"}`,
		`[1 2 e5,,3]`, `{"a":[01,1.,-]}`, "\xef\xbb\xbf[[[]]]", `[1,]`, `{"coordinates":[1]}{"coordinates":[2]}`,
		`{"":[{"":[0,,[]]}]}`, `"POINT("`, "{\"\":\"\x8b0POINT(00\"}",
	} {
		f.Add([]byte(seed), len(seed)/2)
	}
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		compare(t, text)
		checkPrefixes(t, text, int(uint(at)%uint(len(text)+1)), classify.CountGeoJSON)
		classify.BoundsGeoJSON(text)
	})
}

// anyJSON draws a JSON value that looks like GeoJSON in places.
func anyJSON(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.Float64Range(-180, 180).Draw(t, "number")
	case 1:
		return rapid.SampledFrom([]any{nil, true, false, "", "Feature", "a\"[\\", "POINT(1 2)", `{"coordinates":[1,2]}`}).Draw(t, "scalar")
	case 2, 3:
		return rapid.String().Draw(t, "string")
	case 4, 5, 6:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range list {
			list[i] = anyJSON(t, depth-1)
		}
		return list
	case 7:
		return []any{rapid.Float64().Draw(t, "x"), rapid.Float64().Draw(t, "y")}
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			name := rapid.SampledFrom([]string{"type", "coordinates", "Coordinates", "bbox", "properties", "a\n"}).Draw(t, "name")
			object[name] = anyJSON(t, depth-1)
		}
		return object
	}
}

func TestCountGeoJSONEqualsAParser(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(anyJSON(t, 6))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "pretty") {
			var indented bytes.Buffer
			if err := json.Indent(&indented, text, "", rapid.SampledFrom([]string{"", " ", "  ", "    ", "\t"}).Draw(t, "indent")); err != nil {
				t.Fatal(err)
			}
			text = indented.Bytes()
		}
		got := classify.CountGeoJSON(text)
		want, valid := parsed(text)
		if !valid || got != want {
			t.Fatalf("counted %+v, a parser %+v (%t): %s", got, want, valid, text)
		}
		at := rapid.IntRange(0, len(text)).Draw(t, "cut")
		checkPrefixes(t, text, at, classify.CountGeoJSON)
	})
}

// polygons writes a feature collection: some have more vertices than others.
func polygons(n, vertices int) string {
	var b strings.Builder
	b.WriteString(`{"type":"FeatureCollection","features":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"Feature","id":%d,"properties":{"name":"Stra\u00dfe \"%d\"","note":"a, b [c] (d)","area":%d.25},"geometry":{"type":"Polygon","coordinates":[[`, i, i, i*7)
		for v := range vertices {
			if v > 0 {
				b.WriteByte(',')
			}
			x, y := position(i, v)
			fmt.Fprintf(&b, "[%s,%s]", x, y)
		}
		b.WriteString(`]]}}`)
	}
	b.WriteString(`]}`)
	return b.String()
}

// position gives coordinates whose lengths vary as those of real data do: half
// of them have 7 decimals, the others 3 to 8.
func position(i, v int) (x, y string) {
	h := uint32(i*1009+v)*2654435761 ^ uint32(v)*40503
	h ^= h >> 15
	h *= 2246822519
	h ^= h >> 13
	decimals := func(h uint32) int {
		if h&1 == 0 {
			return 7
		}
		return 3 + int(h>>1)%6
	}
	return strconv.FormatFloat(float64(h%36000000)/1e5-180, 'f', decimals(h>>7), 64),
		strconv.FormatFloat(float64(h%17000000)/1e5-85, 'f', decimals(h>>11), 64)
}

func TestMoreVerticesNeverCountLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, vertices := rapid.IntRange(1, 5).Draw(t, "features"), rapid.IntRange(0, 40).Draw(t, "vertices")
		less := classify.CountGeoJSON([]byte(polygons(n, vertices)))
		more := classify.CountGeoJSON([]byte(polygons(n, vertices+1)))
		if more.Vertices != less.Vertices+float64(n) || more.Features != less.Features {
			t.Fatalf("%+v, with a vertex more in each feature %+v", less, more)
		}
	})
}
