package shed_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"image"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

// dialects are all that a caller of an OGC web service may speak, with the name
// of its golden files.
var dialects = map[string]classify.Dialect{
	"wms-1.1.1":  {Service: "WMS", Version: "1.1.1", Width: 512, Height: 512},
	"wms-1.3.0":  {Service: "WMS", Version: "1.3.0", Width: 512, Height: 512},
	"wms-json":   {Service: "WMS", Version: "1.3.0", Exceptions: classify.ExceptionsJSON},
	"wfs-1.0.0":  {Service: "WFS", Version: "1.0.0"},
	"wfs-1.1.0":  {Service: "WFS", Version: "1.1.0"},
	"wfs-2.0.0":  {Service: "WFS", Version: "2.0.0"},
	"wcs-1.0.0":  {Service: "WCS", Version: "1.0.0"},
	"wcs-1.1.0":  {Service: "WCS", Version: "1.1.0"},
	"wcs-2.0.1":  {Service: "WCS", Version: "2.0.1"},
	"wmts-1.0.0": {Service: "WMTS", Version: "1.0.0"},
}

func ows(r shed.Refusal, d classify.Dialect) *shed.Refusal {
	r.Native, r.Dialect = classify.NativeOWS, d
	return &r
}

func TestReportsAreTheGoldenOnes(t *testing.T) {
	for name, refusal := range refusals() {
		for dialect, d := range dialects {
			body := ows(refusal, d).Body(shed.BodyConfig{})
			got := append([]byte(body.ContentType+"\n"), body.Bytes...)
			path := filepath.Join("testdata", "ows", dialect, name)
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s:\n got %s\nwant %s", path, got, want)
			}
		}
	}
}

// exception is what a client reads from a report of either kind.
type exception struct {
	root, namespace, version string
	code, locator, text      string
}

// readReport reads a report to its end, as strictly as encoding/xml is.
func readReport(body []byte) (e exception, err error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return e, nil
		}
		if err != nil {
			return e, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			switch token.Name.Local {
			case "ServiceExceptionReport", "ExceptionReport":
				e.root, e.namespace, e.version = token.Name.Local, token.Name.Space, attribute(token, "version")
			case "ServiceException":
				e.code, e.locator, inText = attribute(token, "code"), attribute(token, "locator"), true
			case "Exception":
				e.code, e.locator = attribute(token, "exceptionCode"), attribute(token, "locator")
			case "ExceptionText":
				inText = true
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				e.text += string(token)
			}
		case xml.Directive:
			if bytes.ContainsAny(token, "[]") {
				return e, errors.New("a document type with an internal subset")
			}
		}
	}
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

func TestReportsAreOfTheVersionSpoken(t *testing.T) {
	for dialect, want := range map[string]struct {
		contentType, root, namespace, version string
	}{
		"wms-1.1.1":  {"application/vnd.ogc.se_xml; charset=UTF-8", "ServiceExceptionReport", "", "1.1.1"},
		"wms-1.3.0":  {"text/xml; charset=UTF-8", "ServiceExceptionReport", "http://www.opengis.net/ogc", "1.3.0"},
		"wfs-1.0.0":  {"text/xml; charset=UTF-8", "ServiceExceptionReport", "http://www.opengis.net/ogc", "1.2.0"},
		"wfs-1.1.0":  {"text/xml; charset=UTF-8", "ExceptionReport", "http://www.opengis.net/ows", "1.0.0"},
		"wfs-2.0.0":  {"text/xml; charset=UTF-8", "ExceptionReport", "http://www.opengis.net/ows/1.1", "2.0.0"},
		"wcs-1.0.0":  {"application/vnd.ogc.se_xml; charset=UTF-8", "ServiceExceptionReport", "http://www.opengis.net/ogc", "1.2.0"},
		"wcs-1.1.0":  {"text/xml; charset=UTF-8", "ExceptionReport", "http://www.opengis.net/ows/1.1", "1.1.0"},
		"wcs-2.0.1":  {"text/xml; charset=UTF-8", "ExceptionReport", "http://www.opengis.net/ows/2.0", "2.0.1"},
		"wmts-1.0.0": {"text/xml; charset=UTF-8", "ExceptionReport", "http://www.opengis.net/ows/1.1", "1.0.0"},
	} {
		body := ows(refusals()["over-budget"], dialects[dialect]).Body(shed.BodyConfig{})
		e, err := readReport(body.Bytes)
		if err != nil {
			t.Fatalf("%s: %v in %s", dialect, err, body.Bytes)
		}
		if body.ContentType != want.contentType || e.root != want.root || e.namespace != want.namespace || e.version != want.version {
			t.Errorf("%s: %s %+v, want %+v", dialect, body.ContentType, e, want)
		}
		if e.code != "InvalidParameterValue" || !strings.HasPrefix(e.text, "Ask for less: ") {
			t.Errorf("%s: code %q, text %q", dialect, e.code, e.text)
		}
	}
}

func TestJSONExceptionsAreProblemsToo(t *testing.T) {
	body := ows(refusals()["rate"], dialects["wms-json"]).Body(shed.BodyConfig{})
	var document struct {
		Message    string
		Status     int
		Version    string
		Exceptions []struct{ Code, Text string }
	}
	if err := json.Unmarshal(body.Bytes, &document); err != nil || body.ContentType != "application/json" {
		t.Fatalf("%v in %s %s", err, body.ContentType, body.Bytes)
	}
	if document.Status != 429 || document.Version != "1.3.0" || !strings.HasPrefix(document.Message, "Retry in 3 s.") ||
		len(document.Exceptions) != 1 || document.Exceptions[0].Code != "NoApplicableCode" {
		t.Errorf("%+v", document)
	}
}

func TestACallerThatAskedForPicturesGetsOne(t *testing.T) {
	for _, how := range []classify.Exceptions{classify.ExceptionsInImage, classify.ExceptionsBlank} {
		d := classify.Dialect{Service: "WMS", Version: "1.3.0", Exceptions: how, Width: 300, Height: 200, Transparent: true}
		body := ows(refusals()["rate"], d).Body(shed.BodyConfig{})
		if body.ContentType != "image/png" {
			t.Errorf("%d: %s", how, body.ContentType)
		}
		// GetFeatureInfo has no picture to put a message on.
		d.Width, d.Height = 0, 0
		if body := ows(refusals()["rate"], d).Body(shed.BodyConfig{}); body.ContentType != "text/xml; charset=UTF-8" {
			t.Errorf("%d without a size: %s", how, body.ContentType)
		}
	}
}

// What a message may hold and XML may not is escaped or left out.
func TestTextIsEscaped(t *testing.T) {
	refusal := shed.Refusal{Reason: shed.BadRequest, Detail: "a<b>&\"'\x00\x1b\x7f\ufffe\uffff\xff\u00e9]]>"}
	for name := range dialects {
		if strings.HasSuffix(name, "json") {
			continue
		}
		body := ows(refusal, dialects[name]).Body(shed.BodyConfig{})
		e, err := readReport(body.Bytes)
		if err != nil || !strings.HasSuffix(e.text, "A<b>&\"'      \u00e9]]>.") {
			t.Errorf("%s: %v, %q", name, err, e.text)
		}
	}
}

// anyDialect draws dialects, those that no family gives included.
func anyDialect() *rapid.Generator[classify.Dialect] {
	width := rapid.OneOf(rapid.IntRange(0, 300), rapid.SampledFrom([]int{-1, 1, 2048, 4096, 1 << 30}))
	height := rapid.OneOf(rapid.IntRange(0, 300), rapid.SampledFrom([]int{-1, 1}))
	return rapid.Custom(func(t *rapid.T) classify.Dialect {
		return classify.Dialect{
			Service: rapid.SampledFrom([]string{"WMS", "WMTS", "WFS", "WCS", "", "WPS"}).Draw(t, "service"),
			Version: rapid.OneOf(rapid.SampledFrom([]string{"1.0.0", "1.1.0", "1.1.1", "1.3.0", "2.0.0", "2.0.1"}), rapid.String()).Draw(t, "version"),
			Exceptions: rapid.SampledFrom([]classify.Exceptions{
				classify.ExceptionsXML, classify.ExceptionsInImage, classify.ExceptionsBlank, classify.ExceptionsJSON,
			}).Draw(t, "exceptions"),
			Width: width.Draw(t, "width"), Height: height.Draw(t, "height"), Transparent: rapid.Bool().Draw(t, "transparent"),
		}
	})
}

// Whatever a refusal holds, its body is valid in its form, bounded, and the
// same each time.
func TestAnyExceptionIsBoundedAndWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		refusal := ows(anyRefusal().Draw(t, "refusal"), anyDialect().Draw(t, "dialect"))
		refusal.Format = rapid.SampledFrom([]string{"image/png", "image/jpeg", "image/gif; x", "IMAGE/PNG8", "", "text/html"}).Draw(t, "format")
		cfg := shed.BodyConfig{Body: rapid.SampledFrom([]string{"", "native", "empty"}).Draw(t, "body")}
		body := refusal.Body(cfg)
		same := *refusal
		if again := same.Body(cfg); !bytes.Equal(body.Bytes, again.Bytes) || body.ContentType != again.ContentType {
			t.Fatalf("the same refusal gave %q and %q", body.Bytes, again.Bytes)
		}
		switch {
		case refusal.Status == http.StatusNoContent:
			if len(body.Bytes) != 0 {
				t.Fatalf("204 with %d bytes", len(body.Bytes))
			}
		case strings.HasPrefix(body.ContentType, "image/"):
			picture, format, err := image.Decode(bytes.NewReader(body.Bytes))
			if err != nil || "image/"+format != body.ContentType {
				t.Fatalf("%s: %v", body.ContentType, err)
			}
			if size := picture.Bounds().Size(); size.X > 2048 || size.Y > 2048 || len(body.Bytes) > 64<<10 {
				t.Fatalf("%v, %d bytes", size, len(body.Bytes))
			}
		case strings.Contains(body.ContentType, "json"):
			if !json.Valid(body.Bytes) || len(body.Bytes) > 1536 {
				t.Fatalf("%d bytes: %s", len(body.Bytes), body.Bytes)
			}
		case strings.Contains(body.ContentType, "xml"):
			e, err := readReport(body.Bytes)
			if err != nil || len(body.Bytes) > 1536 {
				t.Fatalf("%v, %d bytes: %s", err, len(body.Bytes), body.Bytes)
			}
			if cfg.Body != "empty" && (e.text == "" || e.code == "") {
				t.Fatalf("no text or no code: %s", body.Bytes)
			}
		default:
			t.Fatalf("%s of %d bytes", body.ContentType, len(body.Bytes))
		}
	})
}

func TestEmptyAnswersOfOGCServices(t *testing.T) {
	of := func(d classify.Dialect, op, format string, class classify.Class) shed.Body {
		refusal := ows(shed.Refusal{Reason: shed.Rate, Op: op, Class: class, Format: format}, d)
		return refusal.Body(shed.BodyConfig{Body: "empty"})
	}
	if body := of(dialects["wms-1.3.0"], "getmap", "image/png", classify.Tile); decoded(t, body).Bounds().Dx() != 512 {
		t.Errorf("a map: %s", body.ContentType)
	}
	if body := of(dialects["wmts-1.0.0"], "gettile", "image/jpeg", classify.Tile); decoded(t, body).Bounds().Dx() != 256 {
		t.Errorf("a tile: %s", body.ContentType)
	}
	for _, c := range []struct{ dialect, op, format, want string }{
		{"wfs-2.0.0", "getfeature", "", "application/gml+xml; version=3.2"},
		{"wfs-1.1.0", "filter", "text/xml; subtype=gml/3.1.1", "text/xml; subtype=gml/3.1.1; charset=UTF-8"},
		{"wfs-1.0.0", "getfeature", "GML2", "text/xml; charset=UTF-8"},
		{"wfs-2.0.0", "getfeature", "application/json", "application/geo+json"},
	} {
		body := of(dialects[c.dialect], c.op, c.format, classify.Read)
		if body.ContentType != c.want || bytes.Contains(body.Bytes, []byte("xception")) {
			t.Errorf("%+v: %s %s", c, body.ContentType, body.Bytes)
		}
	}
	// What has no empty answer is refused as ever.
	for _, c := range []struct{ dialect, op, format string }{
		{"wfs-2.0.0", "count", ""},
		{"wfs-2.0.0", "getfeature", "shape-zip"},
		{"wfs-2.0.0", "capabilities", ""},
		{"wcs-2.0.1", "getcoverage", "image/tiff"},
	} {
		if body := of(dialects[c.dialect], c.op, c.format, classify.Read); !bytes.Contains(body.Bytes, []byte("<ows:ExceptionReport")) {
			t.Errorf("%+v: %s %s", c, body.ContentType, body.Bytes)
		}
	}
}

func BenchmarkReport(b *testing.B) {
	for dialect, d := range dialects {
		refusal := ows(refusals()["rate"], d)
		b.Run(dialect, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = refusal.Body(shed.BodyConfig{})
			}
		})
	}
}
