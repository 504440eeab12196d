package bed_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/test/bed"
)

func get(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s\n%s", url, answer.Status, body)
	}
	return string(body)
}

func TestServersAnswer(t *testing.T) {
	b := bed.Start(t)
	b.StartTiTiler(t)
	b.StartTipg(t)
	b.StartPygeoapi(t)
	for url, want := range map[string]string{
		b.MapServer + "/bed?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=parcels&RESULTTYPE=hits": `numberMatched="50000"`,
		b.MapServer + "/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetCapabilities":                              b.MapServer + "/bed?",
		b.MapServer + "/bed/ogcapi/collections/parcels/items?limit=2&f=json":                                b.MapServer + "/bed/ogcapi/collections/parcels/items",
		b.MapProxy + "/wmts/1.0.0/WMTSCapabilities.xml":                                                     b.MapProxy,
		b.MapCache + "/wmts/1.0.0/WMTSCapabilities.xml":                                                     b.MapCache,
		b.TiTiler + "/cog/WebMercatorQuad/tilejson.json?url=" + b.Data + "/dem.tif":                         b.TiTiler,
		b.Tipg + "/collections/public.parcels/items?limit=2":                                                b.Tipg,
		b.Pygeoapi + "/processes?f=json":                                                                    b.Pygeoapi + "/processes/hello-world",
	} {
		if body := get(t, "http://"+url); !strings.Contains(body, want) {
			t.Errorf("%s does not say %q:\n%.2000s", url, want, body)
		}
	}
}
