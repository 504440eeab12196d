package proxy_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/proxy"
)

const serviceException = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
	`<ServiceExceptionReport version="1.3.0" xmlns="http://www.opengis.net/ogc"><ServiceException>no</ServiceException></ServiceExceptionReport>`

// counts sums geoproxy_requests_total by outcome and reason, and the estimates
// that were compared under "compared".
func (b *bench) counts() map[string]float64 {
	b.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			switch f.GetName() {
			case "geoproxy_requests_total":
				counts[strings.TrimSpace(labels["outcome"]+" "+labels["reason"])] += m.GetCounter().GetValue()
			case "geoproxy_estimate_ratio":
				counts["compared"] += float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return counts
}

// wantCounts waits for counts, which are written when a handler has ended.
func (b *bench) wantCounts(want map[string]float64) {
	b.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		got := b.counts()
		if maps.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("counted %v, want %v", got, want)
		}
	}
}

func TestAnErrorInsideAnAnswerPassesAndCountsAsFailed(t *testing.T) {
	t.Parallel()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(w, serviceException)
	_ = w.Close()

	for name, c := range map[string]struct {
		header map[string]string
		status int
		body   string
		want   map[string]float64
	}{
		"an exception report": {
			map[string]string{"Content-Type": "text/xml; charset=UTF-8", "Cache-Control": "max-age=60", "Etag": `"1"`},
			200, serviceException,
			map[string]float64{"failed error-inside": 1},
		},
		"compressed": {
			map[string]string{"Content-Type": "text/xml", "Content-Encoding": "gzip"},
			200, zipped.String(),
			map[string]float64{"failed error-inside": 1},
		},
		"by its type": {
			map[string]string{"Content-Type": "application/vnd.ogc.se_xml"},
			200, "",
			map[string]float64{"failed error-inside": 1},
		},
		"after the first features": {
			map[string]string{"Content-Type": "text/xml"},
			200,
			"<FeatureCollection>" + strings.Repeat("<member/>", 20<<10) + "<ows:ExceptionReport><ows:Exception/></ows:ExceptionReport>",
			map[string]float64{"failed error-inside": 1},
		},
		"under its own status": {
			map[string]string{"Content-Type": "text/xml"},
			400, serviceException,
			map[string]float64{"answered": 1},
		},
		"capabilities": {
			map[string]string{"Content-Type": "text/xml"},
			200, `<WMS_Capabilities/>` + strings.Repeat(" ", 100<<10),
			map[string]float64{"answered": 1, "compared": 1},
		},
		"a picture": {
			map[string]string{"Content-Type": "image/png"},
			200, serviceException,
			map[string]float64{"answered": 1, "compared": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.handle(func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			a := b.get("/x", "Accept-Encoding", "gzip")
			if a.status != c.status || a.body != c.body {
				t.Errorf("%d, %d bytes; want %d, %d", a.status, len(a.body), c.status, len(c.body))
			}
			for k, v := range c.header {
				if got := a.header.Get(k); got != v {
					t.Errorf("%s: %q, want %q", k, got, v)
				}
			}
			b.wantCounts(c.want)
		})
	}
}

// The head of an answer is not kept back until it is whole.
func TestAWatchedAnswerIsNotDelayed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	seen := make(chan struct{})
	b.handle(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, serviceException[:20])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-seen:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, serviceException[20:])
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.front.URL+"/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.front.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	start := make([]byte, 20)
	if _, err := io.ReadFull(res.Body, start); err != nil {
		t.Fatal(err)
	}
	close(seen)
	rest, err := io.ReadAll(res.Body)
	if err != nil || string(start)+string(rest) != serviceException {
		t.Errorf("%s%s: %v", start, rest, err)
	}
	b.wantCounts(map[string]float64{"failed error-inside": 1})
}

// A picture asked for by who wants errors as pictures says nothing of the estimate.
func TestPicturesOfErrorsAreNotLearnedFrom(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *proxy.Config) { c.Routes[0].Config = classify.Config{Family: "auto"} })
	b.handle(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = io.WriteString(w, "\x89PNG\r\n\x1a\n")
	})
	b.get(getMap + "&EXCEPTIONS=INIMAGE")
	b.wantCounts(map[string]float64{"answered": 1})
	b.get(getMap)
	b.wantCounts(map[string]float64{"answered": 2, "compared": 1})
}
