package maps_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/test/bed"
)

// Map servers tell of errors under a status of 200. geoproxy passes such an
// answer on as it came, byte for byte, and counts it as a failure.
func TestErrorsInsideAnswersPassUnchanged(t *testing.T) {
	b := bed.Start(t)
	const (
		broken  = "&REQUEST=GetMap&LAYERS=broken&STYLES=&WIDTH=64&HEIGHT=64&FORMAT=image/png"
		wms130  = "/bed?SERVICE=WMS&VERSION=1.3.0&CRS=EPSG:4326&BBOX=52.04,5.04,52.06,5.06" + broken
		wms111  = "/bed?SERVICE=WMS&VERSION=1.1.1&SRS=EPSG:4326&BBOX=5.04,52.04,5.06,52.06" + broken
		proxied = "/service?SERVICE=WMS&VERSION=1.3.0&CRS=EPSG:4326&BBOX=52.04,5.04,52.06,5.06"
	)
	for _, test := range []struct {
		name, server, uri, body string
		status                  int
		says                    string // in the answer's body
		counted                 bool   // as a failure
	}{
		{"a layer that fails, 1.3.0", b.MapServer, wms130, "", 200, "<ServiceException", true},
		{"a layer that fails, 1.1.1", b.MapServer, wms111, "", 200, "<ServiceException", true},
		{"a layer that is not there", b.MapServer, strings.Replace(wms130, "LAYERS=broken", "LAYERS=nothing", 1), "", 200, "LayerNotDefined", true},
		{"a picture of the error", b.MapServer, wms130 + "&EXCEPTIONS=INIMAGE", "", 200, "\x89PNG", false}, // nothing tells it from a map
		{"an empty picture", b.MapServer, wms111 + "&EXCEPTIONS=application/vnd.ogc.se_blank", "", 200, "\x89PNG", false},
		{"a body that is no XML", b.MapServer, "/bed", "<GetFeature", 200, "", true},
		{"WFS, a type that is not there", b.MapServer, "/bed?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=nothing", "", 400, "ExceptionReport", false},
		{"OGC API, a collection that is not there", b.MapServer, "/bed/ogcapi/collections/nothing?f=json", "", 404, "", false},
		{"MapProxy, a source that fails", b.MapProxy, proxied + broken, "", 200, "<ServiceException", true},
		{"MapProxy, a layer that is not there", b.MapProxy, proxied + strings.Replace(broken, "LAYERS=broken", "LAYERS=nothing", 1), "", 200, "<ServiceException", true},
		{"MapCache, a source that fails", b.MapCache, "/gmaps/broken@GoogleMapsCompatible/14/8422/5407.png", "", 502, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			proxy := inFront(t, test.server)
			want := exchange(t, test.server, test.uri, test.body)
			got := exchange(t, proxy.Address, test.uri, test.body)
			if want.status != test.status || !bytes.Contains(want.body, []byte(test.says)) {
				t.Errorf("the server does not do what is tested: status %d\n%.500q", want.status, want.body)
			}
			if got.status != want.status || !bytes.Equal(got.body, want.body) || got.kind != want.kind {
				t.Errorf("directly %d, %s, %.500q\nthrough geoproxy %d, %s, %.500q", want.status, want.kind, want.body, got.status, got.kind, got.body)
			}
			counted := func() bool {
				return proxy.Metric(t, "geoproxy_requests_total", `outcome="failed"`, `reason="error-inside"`) == 1
			}
			if test.counted {
				proxy.Eventually(t, "counted as a failure", counted)
			} else if counted() {
				t.Error("it is counted as an error inside a success")
			}
		})
	}
}

type answer struct {
	status int
	kind   string // Content-Type
	body   []byte // the host replaced
}

func exchange(t *testing.T, address, uri, body string) answer {
	t.Helper()
	method, content := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, content = http.MethodPost, strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+uri, content)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "text/xml")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header.Get("Content-Type"), bytes.ReplaceAll(got, []byte(address), []byte("HOST"))}
}
