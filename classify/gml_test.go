package classify_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

func TestCountGML(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("<a>", n) + strings.Repeat("</a>", n) }
	for _, c := range []struct {
		name, text         string
		features, vertices float64
		malformed          bool
	}{
		{"nothing", "", 0, 0, true},
		{"no geometry", "<a/>", 0, 0, false},
		{"point", "<gml:Point><gml:pos>1 2</gml:pos></gml:Point>", 1, 1, false},
		{"point of three", "<gml:Point><gml:pos>1 2 3</gml:pos></gml:Point>", 1, 1, false},
		{"a list called a position", "<pos>1 2 3 4 5 6 7 8</pos>", 1, 4, false},
		{"list", "<posList>0 0 0 9 9 9 0 0</posList>", 1, 4, false},
		{"list of three", `<posList srsDimension="3">0 0 0 9 9 9</posList>`, 1, 2, false},
		{"of an ancestor", `<Polygon srsDimension='3'><exterior><posList>0 0 0 9 9 9</posList></exterior></Polygon>`, 1, 2, false},
		{"its own before an ancestor's", `<Polygon srsDimension="3"><posList srsDimension="2">0 0 0 9 9 9</posList></Polygon>`, 1, 3, false},
		{"not of a neighbour", `<a><posList srsDimension="3">1 2 3</posList><posList>1 2 3 4</posList></a>`, 1, 3, false},
		{"dimensions that nobody has", `<posList srsDimension="1000">0 0 0 9 9 9 0 0</posList>`, 1, 4, false},
		{"half a position", "<posList>1 2 3</posList>", 1, 2, false},
		{"lines", "<posList>\n\t1 2\r\n\t3 4\n</posList>", 1, 2, false},
		{"a comment inside of a number", "<posList>1<!-- 2 3 -->2 3</posList>", 1, 1, false},
		{"a comment beside a number", "<posList>1 <!-- 2 3 --> 2 3 4</posList>", 1, 2, false},
		{"cdata", "<posList><![CDATA[1 2 3 4]]></posList>", 1, 2, false},
		{"cdata with what is no reference", "<posList><![CDATA[1&#32;2 3]]></posList>", 1, 1, false},
		{"references", "<posList>1&#32;2&#x20;3&#10;4</posList>", 1, 2, false},
		{"an instruction", "<?xml version='1.0'?><posList>1 2<?a b?> 3 4</posList>", 1, 2, false},
		{"what stands inside counts", "<posList><pos/>1 2 3 4</posList>", 1, 2, false},
		{"coordinates", "<coordinates>1,2 3,4 5,6</coordinates>", 1, 3, false},
		{"coordinates with their own separators", `<coordinates ts=";" cs=" " decimal=",">1 2;3 4;5 6;7 8;9 9;9 9</coordinates>`, 1, 7, false},
		{"coordinates without white space", `<coordinates ts=";">1,2;3,4;5,6</coordinates>`, 1, 3, false},
		{"coord", "<coord><X>1</X><Y>2</Y></coord>", 1, 1, false},
		{"envelope", "<Envelope><lowerCorner>1 2</lowerCorner><upperCorner>3 4</upperCorner></Envelope>", 1, 4, false},
		{"box", "<gml:Box><gml:coordinates>1,2 3,4</gml:coordinates></gml:Box>", 1, 4, false},
		{"a box that is a line", "<Box><coordinates>1,2 3,4 5,6 7,8 9,9 9,9</coordinates></Box>", 1, 6, false},
		{"empty envelope", "<Envelope/>", 1, 4, false},
		{"inserted", "<Transaction><Insert><a><pos>1 2</pos></a><b><pos>1 2</pos></b></Insert></Transaction>", 2, 2, false},
		{"inserted collection", "<Insert><FeatureCollection><featureMember><a/></featureMember><featureMember><a/></featureMember></FeatureCollection></Insert>", 2, 0, false},
		{"members", "<FeatureCollection><featureMembers><a/><a/><a/></featureMembers></FeatureCollection>", 3, 0, false},
		{"KML", "<kml><Placemark><Point><coordinates>1,2,0</coordinates></Point></Placemark><Placemark/></kml>", 2, 1, false},
		{"GPX", "<gpx><trk><trkseg><trkpt lat='1' lon='2'/><trkpt lat='1' lon='2'><ele>3</ele></trkpt></trkseg></trk><wpt/></gpx>", 1, 3, false},
		{"attributes of any kind", `<a b = "c>d" e='"'><posList gml:id="x" count="9">1 2</posList></a>`, 1, 1, false},
		{"other names", "<position>1 2</position><poslist>1 2</poslist>", 0, 0, true},
		{"hundred deep", deep(100), 0, 0, false},
		{"deeper", deep(101), 0, 0, true},
		{"64 attributes", "<a" + strings.Repeat(` b="c"`, 64) + "/>", 0, 0, false},
		{"65 attributes", "<a" + strings.Repeat(` b="c"`, 65) + "/>", 0, 0, true},
		{"a long attribute", `<a b="` + strings.Repeat("c", 64<<10) + `"/>`, 0, 0, false},
		{"a longer one", `<a b="` + strings.Repeat("c", 64<<10+1) + `"/>`, 0, 0, true},
		{"ends early", "<posList>1 2 3 4", 1, 2, true},
		{"ends in a tag", "<a><posLi", 0, 0, true},
		{"tags that do not match", "<a><posList>1 2</a></posList>", 1, 1, true},
		{"two roots", "<a/><b/>", 0, 0, true},
		{"text behind the root", "<a/>b", 0, 0, true},
		{"document type", "<!DOCTYPE a><a><pos>1 2</pos></a>", 0, 0, true},
		{"entities", `<!DOCTYPE a [<!ENTITY b "1 2">]><posList>&b;&b;</posList>`, 0, 0, true},
		{"attribute without a value", "<a b/>", 0, 0, true},
		{"byte order mark", "\xef\xbb\xbf<pos>1 2</pos>", 1, 1, false},
	} {
		got := classify.CountGML([]byte(c.text))
		if want := (classify.Geometry{Features: c.features, Vertices: c.vertices, Malformed: c.malformed}); got != want {
			t.Errorf("%s: counted %+v, want %+v", c.name, got, want)
		}
	}
}

func TestBoundsGML(t *testing.T) {
	for _, c := range []struct {
		name, text             string
		minX, minY, maxX, maxY float64
	}{
		{"list", "<posList>1 2 3 4 -5 6</posList>", -5, 2, 3, 6},
		{"list of three", `<posList srsDimension="3">1 2 3 4 5 6</posList>`, 1, 2, 4, 5},
		{"positions", "<a><pos>1 2</pos><pos> 3 4 </pos></a>", 1, 2, 3, 4},
		{"envelope", "<Envelope><lowerCorner>1 2</lowerCorner><upperCorner>3 4</upperCorner></Envelope>", 1, 2, 3, 4},
		{"coordinates", "<coordinates>1,2 3,4</coordinates>", 1, 2, 3, 4},
		{"what cannot be read", "<posList>1 b</posList>", math.Inf(-1), math.Inf(-1), math.Inf(1), math.Inf(1)},
		{"half a position", "<posList>1 2 3</posList>", math.Inf(-1), math.Inf(-1), math.Inf(1), math.Inf(1)},
		{"coord", "<coord><X>1</X><Y>2</Y></coord>", math.Inf(-1), math.Inf(-1), math.Inf(1), math.Inf(1)},
		{"malformed", "<posList>1 2</pos>", math.Inf(-1), math.Inf(-1), math.Inf(1), math.Inf(1)},
	} {
		got := classify.BoundsBody(whole([]byte(c.text)), "", "text/xml")
		if got.MinX != c.minX || got.MinY != c.minY || got.MaxX != c.maxX || got.MaxY != c.maxY {
			t.Errorf("%s: bounds %+v", c.name, got)
		}
	}
}

// FuzzCountGML holds CountGML against encoding/xml: they count the same in
// every document that both read.
func FuzzCountGML(f *testing.F) {
	for _, text := range []string{
		"<a/>", "<gml:pos>1 2</gml:pos>", `<posList srsDimension="3">1 2 3 4 5 6</posList>`, "<coordinates ts=';'>1,2;3,4 5,6</coordinates>",
		"<posList>1<!-- -->2&#32;3<![CDATA[ 4&#32;]]></posList>", "<Envelope><lowerCorner>1 2</lowerCorner></Envelope>",
		"<Insert><a/><b><pos>1</pos></b></Insert>", "<?xml version='1.0'?>\n<kml><Placemark/></kml>\n", "<a b='&#50;' srsDimension='&#51;'><posList>1 2 3</posList></a>",
		"<posList>1 2<pos>3 4</pos>5 6</posList>", "<featureMembers><a><pos/></a></featureMembers>", "<a:b:c/>", "<coordinates ts='&#59;'>1;&#59;2</coordinates>",
	} {
		f.Add([]byte(text))
	}
	for _, r := range corpus(f) {
		if bytes.HasPrefix(r.Body.Prefix, []byte("<")) {
			f.Add(r.Body.Prefix)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := classify.CountGML(text)
		if math.IsNaN(got.Vertices) || got.Vertices < 0 || got.Vertices > float64(len(text)) || got.Features > float64(len(text)) {
			t.Fatalf("%q: counted %+v", text, got)
		}
		want, err := referenceGML(text)
		if err != nil {
			return
		}
		if got.Malformed {
			t.Fatalf("%q: malformed, and encoding/xml reads it", text)
		}
		if got != want {
			t.Fatalf("%q: counted %+v, want %+v", text, got, want)
		}
	})
}

var errNotRead = errors.New("not read")

// referenceGML counts as CountGML says, with encoding/xml.
func referenceGML(text []byte) (g classify.Geometry, err error) {
	type element struct {
		name  string
		dims  int
		holds bool
	}
	var (
		stack    = []element{{dims: 2}}
		d        = xml.NewDecoder(bytes.NewReader(text))
		counted  = 0 // depth of the element whose text is counted
		content  strings.Builder
		ts       string
		envelope = 0
		before   = 0.0
		rooted   = false
	)
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return g, err
		}
		switch token := token.(type) {
		case xml.Directive:
			return g, errNotRead
		case xml.CharData:
			if counted > 0 {
				content.Write(token)
			}
			if len(stack) == 1 && strings.Trim(string(token), " \t\r\n") != "" {
				return g, errNotRead
			}
		case xml.StartElement:
			if len(stack) == 1 && rooted || len(stack) > 100 || len(token.Attr) > 64 {
				return g, errNotRead
			}
			rooted = true
			parent := stack[len(stack)-1]
			e := element{name: token.Name.Local, dims: parent.dims}
			separator, hasDims, hasTS := "", false, false
			for _, a := range token.Attr {
				if len(a.Value) > 32<<10 { // with its references it may be longer than is read
					return g, errNotRead
				}
				if a.Name.Local == "srsDimension" && !hasDims {
					hasDims = true
					if a.Value == "2" || a.Value == "3" || a.Value == "4" {
						e.dims = int(a.Value[0] - '0')
					}
				}
				if a.Name.Local == "ts" && !hasTS {
					hasTS = true
					if len(a.Value) == 1 && a.Value[0] > ' ' && a.Value[0] < 0x80 {
						separator = a.Value
					}
				}
			}
			collection := false
			switch e.name {
			case "pos", "posList", "coordinates":
				if counted == 0 {
					counted, ts = len(stack), separator
					content.Reset()
				}
			case "coord", "trkpt", "rtept", "wpt":
				g.Vertices++
			case "Envelope", "Box":
				if envelope == 0 {
					envelope, before = len(stack), g.Vertices
				}
			case "Insert", "member", "featureMember", "featureMembers":
				e.holds, collection = true, true
			case "FeatureCollection":
				collection = true
			case "Placemark":
				g.Features++
			}
			if parent.holds && !collection {
				g.Features++
			}
			stack = append(stack, e)
		case xml.EndElement:
			e := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if counted == len(stack) && counted > 0 {
				words := float64(len(strings.FieldsFunc(content.String(), func(r rune) bool { return r <= ' ' })))
				switch {
				case e.name == "pos" && words <= 4:
					g.Vertices++
				case e.name == "coordinates":
					if ts != "" && words > 0 {
						words = max(words, float64(strings.Count(content.String(), ts)+1))
					}
					g.Vertices += words
				default:
					g.Vertices += math.Ceil(words / float64(e.dims))
				}
				counted = 0
			}
			if envelope == len(stack) && envelope > 0 {
				g.Vertices, envelope = max(g.Vertices, before+4), 0
			}
		}
	}
	if !rooted {
		return g, errNotRead
	}
	if g.Features == 0 && g.Vertices > 0 {
		g.Features = 1
	}
	return g, nil
}

// gmlPolygons writes an insert of so many polygons.
func gmlPolygons(n, vertices int) string {
	var b strings.Builder
	b.WriteString(`<wfs:Transaction service="WFS" version="2.0.0" xmlns:wfs="http://www.opengis.net/wfs/2.0" xmlns:gml="http://www.opengis.net/gml/3.2"><wfs:Insert>`)
	for i := range n {
		fmt.Fprintf(&b, `<parcels><landuse>forest</landuse><geom><gml:Polygon gml:id="p%d" srsName="urn:ogc:def:crs:EPSG::4326"><gml:exterior><gml:LinearRing><gml:posList>`, i)
		for v := range vertices {
			x, y := position(i, v)
			b.WriteString(y + " " + x + " ")
		}
		b.WriteString(`</gml:posList></gml:LinearRing></gml:exterior></gml:Polygon></geom></parcels>`)
	}
	b.WriteString(`</wfs:Insert></wfs:Transaction>`)
	return b.String()
}

func TestCountGMLAllocatesNothing(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	text := []byte(gmlPolygons(10, 50))
	if n := testing.AllocsPerRun(100, func() { classify.CountGML(text) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCountGML(b *testing.B) {
	positions := strings.Repeat("<gml:pos>52.123456 5.123456</gml:pos>\n", 20000)
	for _, c := range []struct{ name, text string }{
		{"polygons", gmlPolygons(1000, 215)},
		{"small polygons", gmlPolygons(10000, 8)},
		{"positions", "<gml:LineString>" + positions + "</gml:LineString>"},
		{"coordinates", "<gml:coordinates>" + strings.Repeat("5.123456,52.123456 ", 50000) + "</gml:coordinates>"},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(c.text)
			if g := classify.CountGML(text); g.Malformed || g.Vertices == 0 {
				b.Fatalf("counted %+v", g)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				classify.CountGML(text)
			}
		})
	}
}
