package proxy_test

import (
	"bytes"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/proxy"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

const (
	getMap = "/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&STYLES=&CRS=EPSG:4326&BBOX=52.04,5.04,52.06,5.06" +
		"&WIDTH=320&HEIGHT=240&FORMAT=image/png&LAYERS=parcels"
	getFeature = "/bed?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=parcels&COUNT=10"
)

// newOWSBench is a bench of which each tenant has one token a day.
func newOWSBench(t *testing.T, cfg shed.BodyConfig) *bench {
	t.Helper()
	return newBench(t, func(c *proxy.Config) {
		c.Routes[0].Config = classify.Config{Family: "auto"}
		c.Routes[0].Rates = []ratelimit.Rate{rate("daily", 1, time.Hour, 1)}
		c.Routes[0].Shed = cfg
	})
}

func TestOGCCallersAreRefusedInTheirDialect(t *testing.T) {
	t.Parallel()
	b := newOWSBench(t, shed.BodyConfig{})
	b.get("/other")
	for _, c := range []struct{ name, path, contentType, begins string }{
		{"WMS 1.3.0", getMap, "text/xml; charset=UTF-8", `<ServiceExceptionReport version="1.3.0"`},
		{
			"WMS 1.1.1", "/bed?service=wms&version=1.1.1&request=GetMap&srs=EPSG:4326&bbox=5,52,6,53&width=64&height=64&layers=a&styles=&format=image/png",
			"application/vnd.ogc.se_xml; charset=UTF-8", `<!DOCTYPE ServiceExceptionReport SYSTEM`,
		},
		{"WFS 2.0", getFeature, "text/xml; charset=UTF-8", `<ows:ExceptionReport xmlns:ows="http://www.opengis.net/ows/1.1"`},
		{
			"WFS 1.1", "/bed?service=WFS&version=1.1.0&request=GetFeature&typename=parcels&maxfeatures=10",
			"text/xml; charset=UTF-8", `<ows:ExceptionReport xmlns:ows="http://www.opengis.net/ows"`,
		},
		{
			"WFS 1.0", "/bed?service=WFS&version=1.0.0&request=GetFeature&typename=parcels&maxfeatures=10",
			"text/xml; charset=UTF-8", `<ServiceExceptionReport version="1.2.0"`,
		},
		{
			"WCS 2.0", "/bed?service=WCS&version=2.0.1&request=GetCoverage&coverageid=dem&subset=x(1,2)&subset=y(1,2)",
			"text/xml; charset=UTF-8", `<ows:ExceptionReport xmlns:ows="http://www.opengis.net/ows/2.0"`,
		},
		{
			"WMTS", "/bed?service=WMTS&version=1.0.0&request=GetTile&layer=a&style=&tilematrixset=g&tilematrix=3&tilerow=1&tilecol=1&format=image/png",
			"text/xml; charset=UTF-8", `<ows:ExceptionReport xmlns:ows="http://www.opengis.net/ows/1.1"`,
		},
	} {
		a := b.get(c.path)
		b.wantRefusal(a, http.StatusTooManyRequests, "rate")
		_, report, _ := strings.Cut(a.body, "?>\n")
		if a.header.Get("Content-Type") != c.contentType || !strings.HasPrefix(report, c.begins) || !strings.Contains(a.body, "Retry in ") {
			t.Errorf("%s: %s\n%s", c.name, a.header.Get("Content-Type"), a.body)
		}
		if again := b.get(c.path); again.body != a.body && a.header.Get("Retry-After") == again.header.Get("Retry-After") {
			t.Errorf("%s: equal refusals differ:\n%s\n%s", c.name, a.body, again.body)
		}
	}
	if b.calls.Load() != 1 {
		t.Errorf("the upstream saw %d calls; want 1", b.calls.Load())
	}
}

func TestAMapIsRefusedWithThePictureThatWasAskedFor(t *testing.T) {
	t.Parallel()
	b := newOWSBench(t, shed.BodyConfig{})
	b.get("/other")
	for _, exceptions := range []string{"INIMAGE", "BLANK", "application/vnd.ogc.se_inimage"} {
		a := b.get(getMap + "&EXCEPTIONS=" + exceptions)
		b.wantRefusal(a, http.StatusTooManyRequests, "rate")
		m, err := png.Decode(bytes.NewReader([]byte(a.body)))
		if err != nil || a.header.Get("Content-Type") != "image/png" {
			t.Fatalf("%s: %s, %v", exceptions, a.header.Get("Content-Type"), err)
		}
		if size := m.Bounds().Size(); size.X != 320 || size.Y != 240 {
			t.Errorf("%s: %v", exceptions, size)
		}
	}
}

// What an upstream's parser might expand is not forwarded.
func TestADocumentTypeIsNotForwarded(t *testing.T) {
	t.Parallel()
	b := newOWSBench(t, shed.BodyConfig{})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.front.URL+"/bed", strings.NewReader(
		`<!DOCTYPE a [<!ENTITY b "c">]><wfs:GetFeature service="WFS" version="2.0.0" xmlns:wfs="http://www.opengis.net/wfs/2.0"/>`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/xml")
	res, err := b.front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	b.wantRefusal(answer{res.StatusCode, res.Header, string(body)}, http.StatusBadRequest, "bad-request")
	if !strings.Contains(string(body), "ExceptionReport") || b.calls.Load() != 0 {
		t.Errorf("%d calls, %s", b.calls.Load(), body)
	}
}

// Some clients read a WMS exception only under 200; others have to keep theirs.
func TestAFamilyMayHaveAStatusOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newOWSBench(t, shed.BodyConfig{Status: map[string]int{"wms": 200}, Silent: true})
	b.get("/other")
	b.wantRefusal(b.get(getMap), http.StatusOK, "rate")
	b.wantRefusal(b.get(getFeature), http.StatusTooManyRequests, "rate")
}
