package classify_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

func postXML(target, body string) *classify.Request {
	r := get(target)
	r.Method, r.Body = "POST", whole([]byte(body))
	r.Header = http.Header{"Content-Type": {"text/xml"}}
	return r
}

// The same window, in whatever order of axes a version has it written.
func TestWindow(t *testing.T) {
	const wms13, wms11 = "/m?SERVICE=WMS&REQUEST=GetMap&VERSION=1.3.0&LAYERS=a&WIDTH=9&HEIGHT=9&", "/m?SERVICE=WMS&REQUEST=GetMap&VERSION=1.1.1&LAYERS=a&WIDTH=9&HEIGHT=9&"
	const wfs = "/m?SERVICE=WFS&REQUEST=GetFeature&VERSION=2.0.0&TYPENAMES=a&COUNT=1&"
	filter := func(srs, low, high string) *classify.Request {
		return postXML("/m", `<GetFeature service="WFS" version="1.1.0"><Query typeName="a"><Filter><BBOX><Envelope srsName="`+srs+`"><lowerCorner>`+low+`</lowerCorner><upperCorner>`+high+`</upperCorner></Envelope></BBOX></Filter></Query></GetFeature>`)
	}
	for _, c := range []struct {
		name    string
		request *classify.Request
		want    string
	}{
		{"1.3.0, latitude first", get(wms13 + "CRS=EPSG:4326&BBOX=52.04,5.04,52.06,5.06"), "4326: 5.04 52.04 5.06 52.06"},
		{"1.1.1, longitude first", get(wms11 + "SRS=EPSG:4326&BBOX=5.04,52.04,5.06,52.06"), "4326: 5.04 52.04 5.06 52.06"},
		{"1.3.0, CRS84", get(wms13 + "CRS=CRS:84&BBOX=5.04,52.04,5.06,52.06"), "4326: 5.04 52.04 5.06 52.06"},
		{"1.3.0, escaped", get(wms13 + "CRS=EPSG%3A4326&BBOX=52.04%2C5.04%2C52.06%2C5.06"), "4326: 5.04 52.04 5.06 52.06"},
		{"1.3.0, the box first", get(wms13 + "BBOX=52.04,5.04,52.06,5.06&CRS=epsg:4326"), "4326: 5.04 52.04 5.06 52.06"},
		{"1.3.0, ETRS89", get(wms13 + "CRS=EPSG:4258&BBOX=52,5,53,6"), "4258: 5 52 6 53"},
		{"mercator", get(wms13 + "CRS=EPSG:3857&BBOX=1,2,3,4"), "3857: 1 2 3 4"},
		{"mercator's older name", get(wms11 + "SRS=EPSG:900913&BBOX=1,2,3,4"), "3857: 1 2 3 4"},
		{"UTM", get(wms13 + "CRS=EPSG:25832&BBOX=1,2,3,4"), "25832: 1 2 3 4"},
		{"1.3.0, an order that nobody here knows", get(wms13 + "CRS=EPSG:31467&BBOX=1,2,3,4"), "none"},
		{"1.1.1, the same", get(wms11 + "SRS=EPSG:31467&BBOX=1,2,3,4"), "31467: 1 2 3 4"},
		{"an unknown system", get(wms13 + "CRS=AUTO:42001&BBOX=1,2,3,4"), "none"},
		{"two systems", get(wms13 + "CRS=EPSG:3857&CRS=EPSG:4326&BBOX=1,2,3,4"), "none"},
		{"no box", get(wms13 + "CRS=EPSG:3857"), "none"},
		{"half a box", get(wms13 + "CRS=EPSG:3857&BBOX=1,2,3"), "none"},
		{"the larger of two", get(wms13 + "CRS=EPSG:3857&BBOX=1,2,3,4&BBOX=0,0,9,9&BBOX=1,1,2,2"), "3857: 0 0 9 9"},

		{"WFS, a short name", get(wfs + "BBOX=5,52,6,53,EPSG:4326"), "4326: 5 52 6 53"},
		{"WFS, a URN", get(wfs + "BBOX=52,5,53,6,urn:ogc:def:crs:EPSG::4326"), "4326: 5 52 6 53"},
		{"WFS, a URN with a version", get(wfs + "BBOX=52,5,53,6,urn:x-ogc:def:crs:EPSG:6.9:4326"), "4326: 5 52 6 53"},
		{"WFS, a URL", get(wfs + "BBOX=52,5,53,6,http://www.opengis.net/def/crs/EPSG/0/4326"), "4326: 5 52 6 53"},
		{"WFS, the URL of GML 2", get(wfs + "BBOX=5,52,6,53,http://www.opengis.net/gml/srs/epsg.xml%234326"), "4326: 5 52 6 53"},
		{"WFS, CRS84", get(wfs + "BBOX=5,52,6,53,urn:ogc:def:crs:OGC:1.3:CRS84"), "4326: 5 52 6 53"},
		{"WFS, SRSNAME", get(wfs + "BBOX=1,2,3,4&SRSNAME=EPSG:3857"), "3857: 1 2 3 4"},
		{"WFS, no name", get(wfs + "BBOX=5,52,6,53"), "none"},
		{"WFS, heights", get(wfs + "BBOX=5,52,0,6,53,9,EPSG:4326"), "4326: 5 52 6 53"},
		{"WFS, beside a filter", get(wfs + "BBOX=5,52,6,53,EPSG:4326&CQL_FILTER=a=1"), "none"},
		{"filter, a URN", filter("urn:ogc:def:crs:EPSG::4326", "52.05 5.05", "52.052 5.052"), "4326: 5.05 52.05 5.052 52.052"},
		{"filter, a short name", filter("EPSG:4326", "5.05 52.05", "5.052 52.052"), "4326: 5.05 52.05 5.052 52.052"},
		{"filter, not numbers", filter("EPSG:4326", "x 52.05", "5.052 52.052"), "none"},

		{"WCS", get("/m?SERVICE=WCS&REQUEST=GetCoverage&VERSION=1.0.0&COVERAGE=a&CRS=EPSG:4326&BBOX=5,52,6,53&WIDTH=9&HEIGHT=9"), "4326: 5 52 6 53"},
	} {
		e := classifier(t, classify.Config{}).Estimate(c.request)
		got := "none"
		if !e.Window.Empty() {
			got = fmt.Sprintf("%d: %v %v %v %v", e.SRID, e.Window.MinX, e.Window.MinY, e.Window.MaxX, e.Window.MaxY)
		}
		if got != c.want {
			t.Errorf("%s: window %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDialect(t *testing.T) {
	type dialect = classify.Dialect
	for _, c := range []struct {
		name    string
		request *classify.Request
		want    dialect
	}{
		{"WMS 1.3.0", get("/?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&WIDTH=300&HEIGHT=200&TRANSPARENT=TRUE&EXCEPTIONS=INIMAGE"), dialect{"WMS", "1.3.0", classify.ExceptionsInImage, 300, 200, true}},
		{"WMS 1.1.1", get("/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&WIDTH=300&HEIGHT=200&EXCEPTIONS=application/vnd.ogc.se_blank"), dialect{"WMS", "1.1.1", classify.ExceptionsBlank, 300, 200, false}},
		{"an escaped form", get("/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&EXCEPTIONS=application%2Fvnd.ogc.se_inimage"), dialect{"WMS", "1.1.1", classify.ExceptionsInImage, 0, 0, false}},
		{"XML by its name", get("/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&EXCEPTIONS=application/vnd.ogc.se_xml"), dialect{"WMS", "1.1.1", classify.ExceptionsXML, 0, 0, false}},
		{"JSON", get("/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&EXCEPTIONS=application/json"), dialect{"WMS", "1.1.1", classify.ExceptionsJSON, 0, 0, false}},
		{"WMS without a version, by SRS", get("/?SERVICE=WMS&REQUEST=GetMap&SRS=EPSG:4326"), dialect{"WMS", "1.1.1", 0, 0, 0, false}},
		{"WMS without a version, by CRS", get("/?SERVICE=WMS&REQUEST=GetMap&CRS=EPSG:4326"), dialect{"WMS", "1.3.0", 0, 0, 0, false}},
		{"WMS without a version", get("/?SERVICE=WMS&REQUEST=GetCapabilities"), dialect{"WMS", "1.3.0", 0, 0, 0, false}},
		{"WMS 1.0.0", get("/?WMTVER=1.0.0&REQUEST=map"), dialect{"WMS", "1.1.1", 0, 0, 0, false}},
		{"a version that nobody has", get("/?SERVICE=WMS&VERSION=<b>&REQUEST=GetMap"), dialect{"WMS", "1.3.0", 0, 0, 0, false}},
		{"a huge picture", get("/?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&WIDTH=1e9&HEIGHT=-1"), dialect{"WMS", "1.3.0", 0, 4096, 4096, false}},
		{"WMTS", get("/?SERVICE=WMTS&REQUEST=GetTile"), dialect{"WMTS", "1.0.0", 0, 0, 0, false}},
		{"WMTS by its path", get("/wmts/a/b/c/1/1/1.png"), dialect{"WMTS", "1.0.0", 0, 0, 0, false}},
		{"WFS 1.0", get("/?SERVICE=WFS&VERSION=1.0.0&REQUEST=GetFeature&TYPENAME=a"), dialect{"WFS", "1.0.0", 0, 0, 0, false}},
		{"WFS 1.1", get("/?SERVICE=WFS&VERSION=1.1.0&REQUEST=GetFeature&TYPENAME=a"), dialect{"WFS", "1.1.0", 0, 0, 0, false}},
		{"WFS 2.0.2", get("/?SERVICE=WFS&VERSION=2.0.2&REQUEST=GetFeature&TYPENAMES=a"), dialect{"WFS", "2.0.0", 0, 0, 0, false}},
		{"WFS without a version", get("/?SERVICE=WFS&REQUEST=GetCapabilities"), dialect{"WFS", "2.0.0", 0, 0, 0, false}},
		{"WFS, posted", postXML("/", `<GetFeature service="WFS" version="1.1.0"/>`), dialect{"WFS", "1.1.0", 0, 0, 0, false}},
		{"WFS, what it does not have", get("/?SERVICE=WFS&VERSION=1.1.0&REQUEST=Dance"), dialect{"WFS", "1.1.0", 0, 0, 0, false}},
		{"WCS 1.0", get("/?SERVICE=WCS&VERSION=1.0.0&REQUEST=GetCoverage"), dialect{"WCS", "1.0.0", 0, 0, 0, false}},
		{"WCS 1.1", get("/?SERVICE=WCS&VERSION=1.1.1&REQUEST=GetCoverage"), dialect{"WCS", "1.1.0", 0, 0, 0, false}},
		{"WCS 2", get("/?SERVICE=WCS&VERSION=2.1.0&REQUEST=GetCoverage"), dialect{"WCS", "2.0.1", 0, 0, 0, false}},
		{"none", get("/collections/a/items"), dialect{}},
	} {
		e := classifier(t, classify.Config{}).Estimate(c.request)
		if e.Dialect != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, e.Dialect, c.want)
		}
		if native := e.Native == classify.NativeOWS || e.Native == classify.NativeRasterTile; c.want.Service != "" && !native {
			t.Errorf("%s: refused as %v", c.name, e.Native)
		}
	}
}

// What upstreams might expand is never cheap, and is marked.
func TestForbidden(t *testing.T) {
	wide := func(s string) string {
		var b strings.Builder
		b.WriteString("\xff\xfe")
		for _, c := range s {
			b.WriteByte(byte(c))
			b.WriteByte(0)
		}
		return b.String()
	}
	const doctype = `<!DOCTYPE a [<!ENTITY b "]><c>">]>`
	for _, c := range []struct {
		name    string
		request *classify.Request
		want    bool
	}{
		{"GetFeature", postXML("/", doctype+`<GetFeature service="WFS" version="1.1.0"/>`), true},
		{"Transaction", postXML("/", doctype+`<wfs:Transaction/>`), true},
		{"GetCapabilities", postXML("/", doctype+`<GetCapabilities service="WFS"/>`), true},
		{"an entity inside of the root", postXML("/", `<GetFeature service="WFS" version="1.1.0"><!ENTITY b "c"></GetFeature>`), true},
		{"of two bytes", postXML("/", wide(doctype+`<GetFeature service="WFS"/>`)), true},
		{"in a filter", get("/?SERVICE=WFS&REQUEST=GetFeature&TYPENAME=a&FILTER=%3C!DOCTYPE+a%3E%3CFilter/%3E"), true},
		{"in the filter of a map", get("/?SERVICE=WMS&REQUEST=GetMap&FILTER=%3C!ENTITY+a%3E"), true},
		{"in a style", get("/?SERVICE=WMS&REQUEST=GetMap&SLD_BODY=%3C!DOCTYPE+a%3E%3CStyledLayerDescriptor/%3E"), true},
		{"in a coverage request", postXML("/", doctype+`<wcs:GetCoverage service="WCS"/>`), true},
		{"in a posted style", postXML("/?SERVICE=WMS&REQUEST=GetMap", doctype+`<StyledLayerDescriptor/>`), true},
		{"none", postXML("/", `<GetFeature service="WFS" version="1.1.0"/>`), false},
		{"in a comment", postXML("/", `<GetFeature service="WFS" version="1.1.0"><!-- <!DOCTYPE a> --></GetFeature>`), false},
		{"in text", postXML("/", `<GetFeature service="WFS" version="1.1.0"><![CDATA[<!DOCTYPE a>]]></GetFeature>`), false},
		{"of no service", postXML("/", `<!DOCTYPE svg><svg/>`), false},
	} {
		e := classifier(t, classify.Config{}).Estimate(c.request)
		if got := e.Forbidden != ""; got != c.want {
			t.Errorf("%s: forbidden %q", c.name, e.Forbidden)
		}
		if c.want && (e.Seconds < 60 || e.Replayable) {
			t.Errorf("%s: %v s, to be repeated %v", c.name, e.Seconds, e.Replayable)
		}
	}
}

// One path of one server that speaks everything.
func TestAutoUnderOnePath(t *testing.T) {
	c := classifier(t, classify.Config{})
	for _, one := range []struct {
		request *classify.Request
		want    string
	}{
		{get("/bed?SERVICE=WMS&REQUEST=GetCapabilities"), "wms"},
		{get("/bed?SERVICE=WFS&REQUEST=GetCapabilities"), "wfs"},
		{get("/bed?SERVICE=WCS&REQUEST=GetCapabilities"), "wcs"},
		{get("/bed?SERVICE=WMTS&REQUEST=GetCapabilities"), "wmts"},
		{get("/bed/ogcapi/collections"), "ogcapi"},
		{get("/bed/ogcapi/collections/parcels/items?bbox=1,2,3,4"), "ogcapi"},
		{postXML("/bed?", `<GetFeature service="WFS" version="1.1.0"/>`), "wfs"},
		{postXML("/bed?", `<GetCoverage service="WCS" version="2.0.1"/>`), "wcs"},
		{postXML("/bed?", `<GetCapabilities service="WMS"/>`), "wms"},
		{get("/bed/tile/3/1/2.png"), "xyz"},
		{get("/bed?mode=browse"), "http"},
		{get("/bed?SERVICE=CSW&REQUEST=GetRecords"), "http"},
	} {
		if e := c.Estimate(one.request); e.Family != one.want {
			t.Errorf("%v: %s, want %s", one.request, e.Family, one.want)
		}
	}
}

// A route that names its family needs no SERVICE, and hears no other.
func TestOWSFamilyNamed(t *testing.T) {
	for _, c := range []struct{ family, target, want string }{
		{"wfs", "/x?REQUEST=GetCapabilities", "wfs getcapabilities"},
		{"wms", "/x?REQUEST=GetCapabilities", "wms getcapabilities"},
		{"auto", "/x?REQUEST=GetCapabilities", "http unknown"},
		{"wfs", "/x?SERVICE=WMS&REQUEST=GetMap", "http unknown"},
		{"wmts", "/tiles/a/b/12/3/4.png", "wmts tile"},
		{"auto", "/tiles/a/b/12/3/4.png", "xyz tile"},
	} {
		e := classifier(t, classify.Config{Family: c.family}).Estimate(get(c.target))
		if got := e.Family + " " + e.Op; got != c.want {
			t.Errorf("family %s, %s: %s, want %s", c.family, c.target, got, c.want)
		}
	}
}

// What was not read of a body may be anything.
func TestUnreadRequests(t *testing.T) {
	c := classifier(t, classify.Config{})
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	xml := http.Header{"Content-Type": {"text/xml"}}
	const getFeature = `<GetFeature service="WFS" version="2.0.0" count="1"><Query typeNames="a"/>`
	for _, one := range []struct {
		name       string
		request    *classify.Request
		class      classify.Class
		replayable bool
		least      float64 // vertices
	}{
		{"nothing of a form", &classify.Request{Method: "POST", Query: "SERVICE=WMS&REQUEST=GetMap", Header: form, Body: classify.Body{Length: 4000}}, classify.Write, false, 1000},
		{"nothing of XML", &classify.Request{Method: "POST", Query: "SERVICE=WFS", Header: xml, Body: classify.Body{Length: 4000}}, classify.Write, false, 1000},
		{"half a form", &classify.Request{Method: "POST", Header: form, Body: classify.Body{Prefix: []byte("SERVICE=WMS&REQUEST=GetMap&WIDTH=1&HEIGHT=1&BBOX=1,2,3,4"), Length: 4000}}, classify.Tile, false, 1000},
		{"half a transaction", &classify.Request{Method: "POST", Header: xml, Body: classify.Body{Prefix: []byte(`<Transaction service="WFS"><Insert><a>`), Length: 4000}}, classify.Write, false, 1000},
		{"half a query", &classify.Request{Method: "POST", Header: xml, Body: classify.Body{Prefix: []byte(getFeature), Length: 4000}}, classify.Read, true, 1000},
		{"a query of unknown length", &classify.Request{Method: "POST", Header: xml, Body: classify.Body{Prefix: []byte(getFeature), Length: -1}}, classify.Read, true, 1e6},
	} {
		one.request.Path = "/"
		e := c.Estimate(one.request)
		if e.Class != one.class || e.Replayable != one.replayable || e.Vertices < one.least || !e.Low {
			t.Errorf("%s: %+v", one.name, e)
		}
		if !c.NeedsBody(one.request) {
			t.Errorf("%s: the body is not asked for", one.name)
		}
	}
}

// The body may be coded.
func TestCodedXML(t *testing.T) {
	text := []byte(`<GetFeature service="WFS" version="2.0.0" count="7"><Query typeNames="a"/></GetFeature>`)
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		r := postXML("/wfs", string(encode(t, text, coding)))
		r.Header.Set("Content-Encoding", coding)
		if e := classifier(t, classify.Config{}).Estimate(r); e.Family != "wfs" || e.Op != "getfeature" || e.Features != 7 {
			t.Errorf("%s: %+v", coding, e)
		}
	}
}

func TestLargerOWSBox(t *testing.T) {
	grows(t, rapid.Float64Range(0, 1), func(t *rapid.T) func(float64) *classify.Request {
		lon, lat := rapid.Float64Range(-180, 180).Draw(t, "lon"), rapid.Float64Range(-90, 90).Draw(t, "lat")
		form := rapid.SampledFrom([]string{
			"/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=a&SRS=EPSG:4326&WIDTH=256&HEIGHT=256&BBOX=%f,%f,%f,%f",
			"/?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS=a&CRS=EPSG:4326&WIDTH=256&HEIGHT=256&BBOX=%[2]f,%[1]f,%[4]f,%[3]f",
			"/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=a&SRS=EPSG:9&WIDTH=256&HEIGHT=256&BBOX=%f,%f,%f,%f",
			"/?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&QUERY_LAYERS=a&SRS=EPSG:4326&WIDTH=256&HEIGHT=256&RADIUS=9&BBOX=%f,%f,%f,%f",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=a&BBOX=%f,%f,%f,%f",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=a&BBOX=%f,%f,%f,%f,EPSG:4326",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=a&RESULTTYPE=hits&BBOX=%[2]f,%[1]f,%[4]f,%[3]f,urn:ogc:def:crs:EPSG::4326",
			"/?SERVICE=WCS&VERSION=1.0.0&REQUEST=GetCoverage&COVERAGE=a&CRS=EPSG:4326&BBOX=%f,%f,%f,%f",
			"/?SERVICE=WCS&VERSION=1.0.0&REQUEST=GetCoverage&COVERAGE=a&CRS=EPSG:4326&WIDTH=9&HEIGHT=9&BBOX=%f,%f,%f,%f",
			"/?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=a&SUBSET=Long(%[1]f,%[3]f)&SUBSET=Lat(%[2]f,%[4]f)",
			"/?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=a&SUBSET=Long(%[1]f,%[3]f)&SUBSET=Lat(%[2]f,%[4]f)&SCALEFACTOR=3",
		}).Draw(t, "form")
		return func(size float64) *classify.Request {
			return get(fmt.Sprintf(form, max(-180, lon-180*size), max(-90, lat-90*size), min(180, lon+180*size), min(90, lat+90*size)))
		}
	})
}

// Numbers of which more is dearer.
func TestLargerOWSNumbers(t *testing.T) {
	grows(t, rapid.IntRange(1, 1e9), func(t *rapid.T) func(int) *classify.Request {
		form := rapid.SampledFrom([]string{
			"/?SERVICE=WMS&REQUEST=GetMap&LAYERS=a&SRS=EPSG:4326&BBOX=4,52,5,53&HEIGHT=256&WIDTH=%d",
			"/?SERVICE=WMS&REQUEST=GetMap&LAYERS=a&SRS=EPSG:4326&BBOX=4,52,5,53&WIDTH=256&HEIGHT=%d",
			"/?SERVICE=WMS&REQUEST=GetLegendGraphic&LAYER=a&HEIGHT=20&WIDTH=%d",
			"/?SERVICE=WMS&REQUEST=GetFeatureInfo&QUERY_LAYERS=a,b&SRS=EPSG:4326&BBOX=4,52,5,53&FEATURE_COUNT=%d",
			"/?SERVICE=WMS&REQUEST=GetFeatureInfo&QUERY_LAYERS=a&SRS=EPSG:4326&BBOX=4,52,5,53&WIDTH=256&HEIGHT=256&RADIUS=%d",
			"/?SERVICE=WMS&REQUEST=GetMap&LAYERS=a&SRS=EPSG:4326&BBOX=4,52,5,53&HEIGHT=256&WIDTH=256&ELEVATION=0/%d/1",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=a&COUNT=%d",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=a,b&COUNT=%d&SORTBY=a",
			"/?SERVICE=WFS&VERSION=1.1.0&REQUEST=GetFeature&TYPENAME=a&BBOX=1,2,3,4&MAXFEATURES=%d",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=a&COUNT=10&STARTINDEX=%d",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetPropertyValue&TYPENAMES=a&VALUEREFERENCE=b&COUNT=%d",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeatureWithLock&TYPENAMES=a&COUNT=%d",
			"/?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=a&SCALEFACTOR=%d",
			"/?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=a&SUBSET=Lat(1,2)&SCALESIZE=i(%d),j(9)",
			"/?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=a&SUBSET=height(0,%d)",
			"/?SERVICE=WCS&VERSION=1.0.0&REQUEST=GetCoverage&COVERAGE=a&WIDTH=%d&HEIGHT=9",
		}).Draw(t, "form")
		return func(n int) *classify.Request { return get(fmt.Sprintf(form, n)) }
	})
}

func TestMoreOWSItems(t *testing.T) {
	grows(t, rapid.IntRange(1, 300), func(t *rapid.T) func(int) *classify.Request {
		form := rapid.SampledFrom([]string{
			"/?SERVICE=WMS&REQUEST=GetMap&SRS=EPSG:4326&BBOX=4,52,5,53&WIDTH=256&HEIGHT=256&LAYERS=",
			"/?SERVICE=WMS&REQUEST=GetFeatureInfo&SRS=EPSG:4326&BBOX=4,52,5,53&QUERY_LAYERS=",
			"/?SERVICE=WMS&REQUEST=GetMap&LAYERS=a&SRS=EPSG:4326&BBOX=4,52,5,53&WIDTH=256&HEIGHT=256&TIME=",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&COUNT=10&TYPENAMES=",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&RESULTTYPE=hits&TYPENAMES=",
			"/?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&RESOURCEID=",
			"/?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=a&SUBSET=Lat(1,2)&RANGESUBSET=",
			"/?SERVICE=WMTS&REQUEST=GetTile&TILEMATRIX=12&TILEROW=1&TILECOL=1&LAYER=",
		}).Draw(t, "form")
		return func(n int) *classify.Request { return get(form + strings.TrimSuffix(strings.Repeat("abc,", n), ",")) }
	})
	grows(t, rapid.IntRange(1, 500), func(t *rapid.T) func(int) *classify.Request {
		form := rapid.SampledFrom([]string{
			`<GetFeature service="WFS" version="2.0.0" count="5"><Query typeNames="a"><Filter><Intersects><ValueReference>g</ValueReference><LineString><posList>%s</posList></LineString></Intersects></Filter></Query></GetFeature>`,
			`<Transaction service="WFS" version="2.0.0"><Insert><a><LineString><posList>%s</posList></LineString></a></Insert></Transaction>`,
		}).Draw(t, "form")
		return func(n int) *classify.Request {
			return postXML("/", fmt.Sprintf(form, strings.Repeat("1 2 ", n)))
		}
	})
	grows(t, rapid.IntRange(1, 100), func(t *rapid.T) func(int) *classify.Request {
		form := rapid.SampledFrom([][3]string{
			{`<GetFeature service="WFS" version="2.0.0" count="5">`, `<Query typeNames="a"/>`, `</GetFeature>`},
			{`<Transaction service="WFS" version="2.0.0"><Insert>`, `<a/>`, `</Insert></Transaction>`},
			{`<Transaction service="WFS" version="2.0.0">`, `<Update typeName="a"><Filter><ResourceId rid="a"/></Filter></Update>`, `</Transaction>`},
		}).Draw(t, "form")
		return func(n int) *classify.Request { return postXML("/", form[0]+strings.Repeat(form[1], n)+form[2]) }
	})
}

// Neither the order of the keys nor their case matters.
func TestOWSOrderAndCase(t *testing.T) {
	c := classifier(t, classify.Config{})
	pair := rapid.SampledFrom([]string{
		"layers=a", "layers=a,b,c", "width=100", "width=2000", "height=300", "height=x", "crs=EPSG:4326", "srs=EPSG:3857", "bbox=1,2,3,4", "bbox=0,0,50,50",
		"bbox=x", "time=2024-01-01/2024-02-01/P1D", "tiled=true", "tiled=false", "format=image/png", "format=application/pdf", "feature_count=7", "query_layers=a,b",
		"count=5", "count=70000", "maxfeatures=9", "startindex=10", "resulttype=hits", "resulttype=results", "typename=a", "typenames=a,b", "featureid=a.1",
		"cql_filter=a=1", "sortby=a", "version=1.1.0", "version=2.0.0", "outputformat=shape-zip", "storedquery_id=x::GetFeatureById",
		"coverageid=a", "subset=Lat(1,2)", "subset=Long(1,9)", "subset=Lat(1,5)", "scalefactor=2", "rangesubset=a,b", "tilematrix=5", "tilematrix=9", "tilerow=3", "request=GetCapabilities",
	})
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.SliceOfN(pair, 0, 10).Draw(t, "pairs")
		pairs = append(pairs, "service="+rapid.SampledFrom([]string{"wms", "wfs", "wcs", "wmts"}).Draw(t, "service"),
			"request="+rapid.SampledFrom([]string{"GetMap", "GetFeature", "GetCoverage", "GetTile", "GetFeatureInfo", "GetCapabilities", "Transaction"}).Draw(t, "request"))
		first := c.Estimate(get("/x?" + strings.Join(pairs, "&")))
		shuffled := slices.Clone(rapid.Permutation(pairs).Draw(t, "shuffled"))
		for i, p := range shuffled {
			key, value, _ := strings.Cut(p, "=")
			switch rapid.IntRange(0, 2).Draw(t, "case") {
			case 1:
				shuffled[i] = strings.ToUpper(key) + "=" + value
			case 2:
				shuffled[i] = strings.ToUpper(key[:1]) + key[1:] + "=" + value
			}
		}
		second := c.Estimate(get("/x?" + strings.Join(shuffled, "&")))
		if first.Inputs != second.Inputs || first.Seconds != second.Seconds || first.Class != second.Class || first.Op != second.Op || first.Replayable != second.Replayable {
			t.Fatalf("%v gives %+v\n%v gives %+v", pairs, first, shuffled, second)
		}
	})
}

func FuzzWMS(f *testing.F)  { fuzzFamily(f, "wms") }
func FuzzWMTS(f *testing.F) { fuzzFamily(f, "wmts") }
func FuzzWFS(f *testing.F)  { fuzzFamily(f, "wfs") }
func FuzzWCS(f *testing.F)  { fuzzFamily(f, "wcs") }

// hostileXML are documents that are meant to be slow.
var hostileXML = []struct {
	name string
	text func(n int) string
}{
	{"elements", repeated("<a/>", "<b>", "</b>")},
	{"nested elements", repeated("<a>", "", "")},
	{"attributes", repeated(` a="b"`, "<a", "/>")},
	{"attributes at the limit", repeated("<a"+strings.Repeat(` a="b"`, 64)+"/>", "<b>", "</b>")},
	{"a long attribute", repeated("a", `<a b="`, `"/>`)},
	{"a long name", repeated("a", "<", "/>")},
	{"prefixes", repeated("a:", "<", "a/>")},
	{"comments", repeated("<!---->", "<a>", "</a>")},
	{"a comment of dashes", repeated("-", "<a><!--", "")},
	{"comments that do not end", repeated("<!--", "<a>", "")},
	{"instructions", repeated("<?a?>", "<a>", "</a>")},
	{"instructions that do not end", repeated("<?", "<a>", "")},
	{"sections", repeated("<![CDATA[]]>", "<posList>", "</posList>")},
	{"sections that do not end", repeated("<![CDATA[", "<posList>", "")},
	{"references", repeated("&#32;", "<posList>", "</posList>")},
	{"references that do not end", repeated("&", "<posList>", "</posList>")},
	{"long references", repeated("&#000000000", "<posList>", "</posList>")},
	{"numbers", repeated("1 ", "<posList>", "</posList>")},
	{"separators", repeated(";", `<coordinates ts=";">`, "</coordinates>")},
	{"positions", repeated("<pos>1 2</pos>", "<a>", "</a>")},
	{"nested lists", repeated("<posList>", "", "")},
	{"envelopes", repeated("<Envelope/>", "<a>", "</a>")},
	{"members", repeated("<member><a/></member>", "<a>", "</a>")},
	{"queries", repeated(`<Query typeNames="a"><Filter><BBOX><Envelope srsName="EPSG:4326"><lowerCorner>1 2</lowerCorner></Envelope></BBOX></Filter></Query>`, `<GetFeature service="WFS">`, "</GetFeature>")},
	{"types", repeated("a ", `<GetFeature service="WFS"><Query typeNames="`, `"/></GetFeature>`)},
	{"roots", repeated("<GetFeature>", "<a>", "")},
	{"document types", repeated("<!DOCTYPE a>", "", "")},
	{"trims", repeated("<DimensionTrim><Dimension>Lat</Dimension><TrimLow>1</TrimLow></DimensionTrim>", `<GetCoverage service="WCS">`, "</GetCoverage>")},
	{"layers", repeated("<NamedLayer><Width>1</Width></NamedLayer>", `<GetMap service="WMS">`, "</GetMap>")},
	{"envelopes of SOAP", repeated("<Envelope><Body>", "", "")},
	{"white space", repeated(" ", "<a>", "</a>")},
	{"nothing but opening brackets", repeated("<", "", "")},
}

// A quadratic step over 1 MiB takes minutes, so that a tenth of a second is
// allowed for what the processor does beside.
func TestHostileXMLTakesLinearTime(t *testing.T) {
	c := classifier(t, classify.Config{})
	fastest := func(text string) time.Duration {
		r := postXML("/wfs?SERVICE=WFS", text)
		return leastCPU(t, 5, func() { checkEstimate(t, r, c.Estimate(r)) })
	}
	for _, h := range hostileXML {
		small, large := h.text(128<<10), h.text(1<<20)
		if few, many := fastest(small), fastest(large); many > 32*few+100*time.Millisecond {
			t.Errorf("%s: %v for 128 KiB, %v for 1 MiB", h.name, few, many)
		}
		if g := classify.CountBody(whole([]byte(large)), "", ""); g.Malformed && g.Vertices < math.Floor(float64(len(large))/4) {
			t.Errorf("%s: malformed and cheap: %+v", h.name, g)
		}
	}
}

// BenchmarkHostileXML reports the time that a byte takes.
func BenchmarkHostileXML(b *testing.B) {
	c := classifier(b, classify.Config{})
	for _, h := range hostileXML {
		b.Run(strings.ReplaceAll(h.name, " ", "_"), func(b *testing.B) {
			r := postXML("/wfs?SERVICE=WFS", h.text(64<<10))
			b.ReportAllocs()
			for b.Loop() {
				c.Estimate(r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(r.Body.Prefix)), "ns/byte")
		})
	}
}

// One request of each kind. The goal is 1.5 us and two allocations for KVP.
func BenchmarkOWS(b *testing.B) {
	c := classifier(b, classify.Config{})
	for _, bm := range []struct {
		name    string
		request *classify.Request
	}{
		{"GetMap", get("/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&STYLES=&CRS=EPSG:4326&BBOX=52.04,5.04,52.06,5.06&WIDTH=512&HEIGHT=512&FORMAT=image/png&LAYERS=parcels")},
		{"GetMap escaped", get("/wms?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&FORMAT=image%2Fpng&TRANSPARENT=true&LAYERS=topp%3Astates&TILED=true&WIDTH=256&HEIGHT=256&CRS=EPSG%3A3857&STYLES=&BBOX=0%2C0%2C626172%2C626172")},
		{"GetFeatureInfo", get("/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetFeatureInfo&STYLES=&CRS=EPSG:4326&BBOX=52.04,5.04,52.06,5.06&WIDTH=512&HEIGHT=512&FORMAT=image/png&LAYERS=parcels&QUERY_LAYERS=parcels&I=100&J=100")},
		{"GetFeature", get("/bed?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=parcels&COUNT=100&BBOX=52.3,4.8,52.4,4.9,urn:ogc:def:crs:EPSG::4326")},
		{"GetTile", get("/wmts?SERVICE=WMTS&VERSION=1.0.0&REQUEST=GetTile&LAYER=parcels&STYLE=default&TILEMATRIXSET=GoogleMapsCompatible&TILEMATRIX=14&TILEROW=5414&TILECOL=8422&FORMAT=image/png")},
		{"GetTile REST", get("/wmts/1.0.0/parcels/default/GoogleMapsCompatible/14/5408/8422.png")},
		{"GetCoverage", get("/bed?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=dem&FORMAT=image/tiff&SUBSET=long(5.01,5.02)&SUBSET=lat(52.01,52.02)")},
		{"POST GetFeature", postXML("/bed?", `<GetFeature xmlns="http://www.opengis.net/wfs" xmlns:ogc="http://www.opengis.net/ogc" xmlns:gml="http://www.opengis.net/gml" service="WFS" version="1.1.0" maxFeatures="3"><Query typeName="parcels"><ogc:Filter><ogc:BBOX><ogc:PropertyName>geom</ogc:PropertyName><gml:Envelope srsName="urn:ogc:def:crs:EPSG::4326"><gml:lowerCorner>52.05 5.05</gml:lowerCorner><gml:upperCorner>52.052 5.052</gml:upperCorner></gml:Envelope></ogc:BBOX></ogc:Filter></Query></GetFeature>`)},
		{"POST Transaction 64 KiB", postXML("/bed?", gmlPolygons(16, 210))},
		{"not OWS", get("/ogc/collections/roads/items?bbox=4.80,52.30,4.95,52.42&limit=50&f=json")},
		{"longest query", get("/wfs?SERVICE=WFS&REQUEST=GetFeature&" + strings.Repeat(";layers=%31&filter=1", 250) + strings.Repeat(";filter=POINT(1+2)", 3300))},
		{"longest filter", get("/wfs?SERVICE=WFS&REQUEST=GetFeature&FILTER=" + strings.Repeat("%3Ca/%3E)(", 6000))},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Estimate(bm.request)
			}
		})
	}
}
