package maps_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/bed"
)

// stamps are the times that servers write into their answers.
var stamps = regexp.MustCompile(`(?i)"?timestamp"?\s*[=:]\s*"[^"]*"`)

// The result of a job is what the same request gives inline, for two hundred
// requests of four protocols: status, body, and the headers that matter.
func TestJobsGiveTheSameBytes(t *testing.T) {
	b := bed.Start(t)
	proxy := inFront(t, b.MapServer)
	var paths []string
	for i := range 40 {
		x, y := 5.01+float64(i)*0.002, 52.01+float64(i)*0.002
		paths = append(paths,
			fmt.Sprintf("/bed?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS=parcels,roads&STYLES=&CRS=EPSG:4326&BBOX=%.3f,%.3f,%.3f,%.3f&WIDTH=600&HEIGHT=600&FORMAT=image/png", y, x, y+0.01, x+0.01),
			fmt.Sprintf("/bed?SERVICE=WMS&VERSION=1.1.1&REQUEST=GetFeatureInfo&LAYERS=parcels&QUERY_LAYERS=parcels&STYLES=&SRS=EPSG:4326&BBOX=%.3f,%.3f,%.3f,%.3f&WIDTH=256&HEIGHT=256&X=100&Y=100&INFO_FORMAT=text/plain", x, y, x+0.01, y+0.01),
			fmt.Sprintf("/bed?SERVICE=WFS&VERSION=2.0.0&REQUEST=GetFeature&TYPENAMES=parcels&COUNT=%d&STARTINDEX=%d&OUTPUTFORMAT=geojson", 10+i, i),
			fmt.Sprintf("/bed?SERVICE=WCS&VERSION=2.0.1&REQUEST=GetCoverage&COVERAGEID=dem&FORMAT=image/tiff&SUBSET=long(%.3f,%.3f)&SUBSET=lat(%.3f,%.3f)", x, x+0.01, y, y+0.01),
			fmt.Sprintf("/bed/ogcapi/collections/parcels/items?f=json&limit=%d&bbox=%.3f,%.3f,%.3f,%.3f", 10+i, x, y, x+0.01, y+0.01),
		)
	}
	base := "http://" + proxy.Address
	fetch := func(path string, header http.Header) (*http.Response, []byte) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, body
	}
	locations := make([]string, len(paths))
	for i, path := range paths {
		res, body := fetch(path, http.Header{"Prefer": {"respond-async"}})
		if res.StatusCode != http.StatusAccepted {
			t.Fatalf("%s: %d %s", path, res.StatusCode, body)
		}
		locations[i] = res.Header.Get("Location")
	}
	for i, path := range paths {
		for end := time.Now().Add(2 * time.Minute); ; {
			_, body := fetch(locations[i]+"?wait=30", http.Header{})
			if bytes.Contains(body, []byte(`"status":"successful"`)) {
				break
			}
			if !bytes.Contains(body, []byte(`"action":"wait_job"`)) || time.Now().After(end) {
				t.Fatalf("%s: %s", path, body)
			}
		}
		inline, want := fetch(path, http.Header{})
		result, got := fetch(locations[i]+"/results", http.Header{})
		if inline.StatusCode != http.StatusOK || result.StatusCode != inline.StatusCode {
			t.Errorf("%s: %d, inline %d", path, result.StatusCode, inline.StatusCode)
		}
		if !bytes.Equal(stamps.ReplaceAll(got, nil), stamps.ReplaceAll(want, nil)) {
			t.Errorf("%s: %d bytes, inline %d: %.300q and %.300q", path, len(got), len(want), got, want)
		}
		for _, name := range []string{"Content-Type", "Content-Disposition", "Content-Encoding", "Content-Crs", "ETag", "Last-Modified", "Link"} {
			if a, b := result.Header.Values(name), inline.Header.Values(name); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s: %s is %q, inline %q", path, name, a, b)
			}
		}
	}
}
