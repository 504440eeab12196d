package classify_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/geoproxy/geoproxy/classify"
)

const (
	declared = `<?xml version="1.0" encoding="UTF-8" standalone="no" ?>` + "\n"
	mapPage  = "<HTML>\n<HEAD><TITLE>MapServer Message</TITLE></HEAD>\n<!-- MapServer version 8.0.0 OUTPUT=PNG INPUT=JPEG -->\n" +
		"<BODY BGCOLOR=\"#FFFFFF\">\nloadParams(): Web application error. No query information to decode.\n</BODY></HTML>"
	report130 = declared + `<ServiceExceptionReport version="1.3.0" xmlns="http://www.opengis.net/ogc">` +
		"\n<ServiceException code=\"LayerNotDefined\">\nInvalid layer(s) given in the LAYERS parameter.\n</ServiceException>\n</ServiceExceptionReport>\n"
	report111 = declared + `<!DOCTYPE ServiceExceptionReport SYSTEM "http://schemas.opengis.net/wms/1.1.1/exception_1_1_1.dtd">` +
		"\n<ServiceExceptionReport version=\"1.1.1\">\n<ServiceException code=\"InvalidSRS\">\nInvalid SRS given\n</ServiceException>\n</ServiceExceptionReport>\n"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

// answers are what servers sent under a status below 400 (MapServer 8.0,
// MapProxy 1.15, MapCache 1.14, GeoServer), their heads shortened.
var answers = map[string]struct {
	contentType, coding, head string
	exceptions                classify.Exceptions
	want                      classify.Answer
}{
	// Errors.
	"MapServer, picture too large":     {"text/xml; charset=UTF-8", "", report130, 0, classify.AnswerFault},
	"MapServer, WMS 1.1.1 unknown SRS": {"application/vnd.ogc.se_xml; charset=UTF-8", "", report111, 0, classify.AnswerFault},
	"MapServer, no service":            {"text/html", "", mapPage, 0, classify.AnswerFault},
	"MapProxy, WMS unknown layer": {
		"text/xml; charset=utf-8", "", "<?xml version=\"1.0\"?>\n<ServiceExceptionReport version=\"1.3.0\"\n  xmlns=\"http://www.opengis.net/ogc\">\n" +
			"    <ServiceException code=\"LayerNotDefined\">unknown layer: nosuch</ServiceException>\n</ServiceExceptionReport>", 0, classify.AnswerFault,
	},
	"MapProxy, WMS 1.1.1 unknown layer": {"application/vnd.ogc.se_xml", "", strings.ReplaceAll(report111, "InvalidSRS", "LayerNotDefined"), 0, classify.AnswerFault},
	"WFS 1.1, with a prefix": {
		"application/xml", "", `<ows:ExceptionReport xmlns:ows="http://www.opengis.net/ows" version="1.0.0"><ows:Exception/></ows:ExceptionReport>`, 0, classify.AnswerFault,
	},
	"another prefix":     {"text/xml", "", `<a:ExceptionReport xmlns:a="http://www.opengis.net/ows/2.0"/>`, 0, classify.AnswerFault},
	"no content type":    {"", "", report130, 0, classify.AnswerFault},
	"XML as plain text":  {"text/plain", "", report130, 0, classify.AnswerFault},
	"a byte order mark":  {"text/xml", "", "\xef\xbb\xbf\r\n" + report130, 0, classify.AnswerFault},
	"comments":           {"text/xml", "", "<!-- <WFS_Capabilities> --><?x ?>\n<ExceptionReport>", 0, classify.AnswerFault},
	"an internal subset": {"text/xml", "", "<!DOCTYPE a [ <!ENTITY b \"<c>\"> ]><ExceptionReport>", 0, classify.AnswerFault},
	"an error after the first features": {
		"application/gml+xml", "", "<wfs:FeatureCollection><wfs:member/>" + strings.Repeat(" ", 4000) +
			"<ows:ExceptionReport><ows:Exception/></ows:ExceptionReport>\n", 0, classify.AnswerFault,
	},
	"gzip":                   {"text/xml", "gzip", gzipped(report130), 0, classify.AnswerFault},
	"gzip, cut":              {"text/xml", "GZIP", gzipped(report130)[:120], 0, classify.AnswerFault},
	"identity":               {"text/xml", "identity", report130, 0, classify.AnswerFault},
	"WMS 1.0":                {"text/xml", "", `<WMTException version="1.0.0">no</WMTException>`, 0, classify.AnswerFault},
	"GeoServer, JSON":        {"application/json;charset=UTF-8", "", "{\n  \"version\": \"1.3.0\",\n  \"exceptions\": [\n    {\"code\": \"LayerNotDefined\"}]}", classify.ExceptionsJSON, classify.AnswerFault},
	"JSON without a version": {"application/json", "", `{"exceptions":[]}`, classify.ExceptionsJSON, classify.AnswerFault},

	// What was asked for.
	"a map":            {"image/png", "", "\x89PNG\r\n\x1a\n", 0, classify.AnswerGood},
	"a vector tile":    {"application/vnd.mapbox-vector-tile", "", "\x1a", 0, classify.AnswerGood},
	"WMS capabilities": {"text/xml; charset=UTF-8", "", declared + `<WMS_Capabilities version="1.3.0"><Exception><Format>XML</Format></Exception>`, 0, classify.AnswerGood},
	"WMS 1.1.1 capabilities": {
		"application/vnd.ogc.wms_xml", "", declared + `<!DOCTYPE WMT_MS_Capabilities SYSTEM "x.dtd" [ <!ELEMENT VendorSpecificCapabilities EMPTY> ]>` +
			"<WMT_MS_Capabilities version=\"1.1.1\"><Exception><Format>application/vnd.ogc.se_xml</Format></Exception>", 0, classify.AnswerGood,
	},
	"WMTS capabilities":      {"application/xml", "", `<?xml version="1.0"?><Capabilities xmlns="http://www.opengis.net/wmts/1.0">`, 0, classify.AnswerGood},
	"WFS capabilities, gzip": {"text/xml", "gzip", gzipped(declared + "<wfs:WFS_Capabilities/>"), 0, classify.AnswerGood},
	"GML": {
		`text/xml; subtype="gml/3.2.1"; charset=UTF-8`, "", declared + "<wfs:FeatureCollection numberMatched=\"1\"><wfs:member><ms:note>ServiceExceptionReport</ms:note>", 0, classify.AnswerGood,
	},
	"GML with a feature of that name": {"application/gml+xml; version=3.2", "", "<wfs:FeatureCollection><wfs:member><ms:ExceptionReport>", 0, classify.AnswerGood},
	"GML to its end":                  {"application/gml+xml", "", "<wfs:FeatureCollection><ms:ExceptionReport/></wfs:FeatureCollection>\n", 0, classify.AnswerGood},
	"text that ends so":               {"text/plain", "", "about </ows:ExceptionReport>", 0, classify.AnswerGood},
	"GeoJSON":                         {"application/json; subtype=geojson; charset=utf-8", "", `{"type": "FeatureCollection",`, 0, classify.AnswerGood},
	"GeoJSON, exceptions as JSON":     {"application/geo+json", "", `{"type":"FeatureCollection","exceptions":[],`, classify.ExceptionsJSON, classify.AnswerGood},
	"JSON with a version":             {"application/json", "", `{"version":"1","features":[]}`, classify.ExceptionsJSON, classify.AnswerGood},
	"feature info":                    {"text/plain; charset=UTF-8", "", "GetFeatureInfo results:\n\nLayer 'parcels'\n", 0, classify.AnswerGood},
	"feature info as a page":          {"text/html", "", "<html><body>MapServer Message</body></html>", 0, classify.AnswerGood},
	"a coverage":                      {"image/tiff", "", "II*\x00", 0, classify.AnswerGood},
	"no body":                         {"text/html", "", "", 0, classify.AnswerGood}, // as MapServer answers HEAD
	"a tag that does not end":         {"text/xml", "", "<ExceptionReport", 0, classify.AnswerGood},
	"not gzip":                        {"text/xml", "gzip", report130, 0, classify.AnswerGood},
	"an unknown coding":               {"text/xml", "lzma", report130, 0, classify.AnswerGood},

	// What cannot be told.
	"INIMAGE":               {"image/png", "", "\x89PNG\r\n\x1a\n", classify.ExceptionsInImage, classify.AnswerMute},
	"BLANK":                 {"IMAGE/JPEG", "", "\xff\xd8", classify.ExceptionsBlank, classify.AnswerMute},
	"INIMAGE, yet a report": {"text/xml", "", report130, classify.ExceptionsInImage, classify.AnswerFault},
}

// answerWith asks with the beginning and the end of a body.
func answerWith(call *classify.Call, body, coding string) classify.Answer {
	return call.AnswerWith([]byte(body[:min(len(body), classify.FaultHead)]), []byte(body[max(0, len(body)-classify.FaultTail):]), coding)
}

func TestErrorsInsideAnswersAreFound(t *testing.T) {
	for name, c := range answers {
		call := classify.Call{Dialect: classify.Dialect{Exceptions: c.exceptions}}
		got := call.AnswerOf(c.contentType)
		if got == classify.AnswerUnread {
			got = answerWith(&call, c.head, c.coding)
		}
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Every answer that was recorded of real servers is told for what it is.
func TestRecordedAnswers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]classify.Answer{"good": classify.AnswerGood, "fault": classify.AnswerFault, "mute": classify.AnswerMute}
	c, err := classify.New(classify.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[classify.Answer]int{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		want, known := names[fields[0]]
		body, err := strconv.Unquote(fields[4])
		if !known || err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		method, target, _ := strings.Cut(fields[3], " ")
		path, query, _ := strings.Cut(target, "?")
		estimate := c.Estimate(&classify.Request{Method: method, Path: path, Query: query})
		got := estimate.AnswerOf(strings.TrimPrefix(fields[2], "-"))
		if got == classify.AnswerUnread {
			got = answerWith(&estimate.Call, body, "")
		}
		if got != want {
			t.Errorf("%d, want %s: %s", got, fields[0], line)
		}
		seen[want]++
	}
	for name, answer := range names {
		if seen[answer] == 0 {
			t.Errorf("no answer is %s", name)
		}
	}
}

// A body whose type cannot hold an error is not to be looked at.
func TestMostAnswersNeedNoReading(t *testing.T) {
	var call classify.Call
	for _, contentType := range []string{
		"image/png", "image/webp", "application/vnd.mapbox-vector-tile", "application/x-protobuf", "application/geo+json",
		"application/json", "application/octet-stream", "text/event-stream", "application/zip", "application/grpc",
	} {
		if got := call.AnswerOf(contentType); got != classify.AnswerGood {
			t.Errorf("%s: %d", contentType, got)
		}
		if n := testing.AllocsPerRun(10, func() { _ = call.AnswerOf(contentType) }); n > 0 {
			t.Errorf("%s: %v allocations", contentType, n)
		}
	}
}

func FuzzAnswerWith(f *testing.F) {
	for _, c := range answers {
		f.Add([]byte(c.head), c.coding)
	}
	f.Fuzz(func(t *testing.T, body []byte, coding string) {
		for _, exceptions := range []classify.Exceptions{classify.ExceptionsXML, classify.ExceptionsJSON} {
			call := classify.Call{Dialect: classify.Dialect{Exceptions: exceptions}}
			got := answerWith(&call, string(body), coding)
			if again := answerWith(&call, string(body), coding); got != again {
				t.Fatalf("%d and %d", got, again)
			}
			if got == classify.AnswerFault && coding == "" && !bytes.Contains(body, []byte("xception")) && !bytes.Contains(body, []byte("MapServer")) {
				t.Fatalf("%q", body)
			}
		}
	})
}

func BenchmarkAnswerWith(b *testing.B) {
	for _, name := range []string{"MapServer, picture too large", "GML", "gzip"} {
		c := answers[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var call classify.Call
			head := []byte(c.head)
			for b.Loop() {
				_ = call.AnswerWith(head, nil, c.coding)
			}
		})
	}
}
