package maps_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/geoproxy/geoproxy/test/bed"
	"github.com/geoproxy/geoproxy/test/binary"
)

// ogr2ogr takes whatever looks like a success for the end of the data
// (it does so with a 202, and with an empty collection), so no refusal may look
// like one: with any of the requests of a paged read refused it says that it
// failed, or it has all features. (Where the first look of its OGC API driver
// at a collection is refused, it has them with their geometry alone: it prints
// the refusal, and goes on without knowing the attributes, as it does after any
// other error there.)
func TestARefusedPageIsNoEndOfTheData(t *testing.T) {
	b := bed.Start(t)
	b.StartTipg(t)
	for _, test := range []struct {
		name, server, script string
		features             int
	}{
		{"WFS 2.0", b.MapServer, `ogr2ogr -f CSV /vsistdout/ -lco GEOMETRY=AS_WKT "WFS:http://$HOST/bed?SERVICE=WFS&VERSION=2.0.0" parcels -spat 5.05 52.05 5.055 52.055 --config OGR_WFS_PAGE_SIZE 30 --config OGR_WFS_PAGING_ALLOWED YES`, 126},
		// MapServer 8.0 forgets the window in its links to the next page.
		{"OGC API Features", b.MapServer, `ogr2ogr -f CSV /vsistdout/ -lco GEOMETRY=AS_WKT "OAPIF:http://$HOST/bed/ogcapi" parcels -limit 130 -oo PAGE_SIZE=30`, 130},
		{"OGC API Features of tipg", b.Tipg, `ogr2ogr -f CSV /vsistdout/ -lco GEOMETRY=AS_WKT "OAPIF:http://$HOST" public.parcels -spat 5.05 52.05 5.055 52.055 -oo PAGE_SIZE=30`, 126},
	} {
		for _, why := range []string{"rate", "concurrency", "too big"} {
			t.Run(test.name+", "+why, func(t *testing.T) {
				front, requests := refuseOne(t, test.server, why)
				whole := shell(t, test.script, front.Address())
				n := int(requests.Load())
				if whole.err != nil || features(t, whole.out) != test.features || n < 4 {
					t.Fatalf("without a refusal: %d requests, %d features, %v\n%.1000s", n, features(t, whole.out), whole.err, whole.errors)
				}
				refused := 0
				for i := 1; i <= n; i++ {
					requests.Store(0)
					front.again.Store("")
					front.refuse.Store(int64(i))
					got := shell(t, test.script, front.Address())
					if front.refused.Swap(false) {
						refused++
					}
					if all := features(t, got.out) == test.features; got.err == nil && !all {
						t.Errorf("request %d of %d refused: exit status 0 with %d of %d features\n%.500q\n%.1000s", i, n, features(t, got.out), test.features, got.out, got.errors)
					} else {
						t.Logf("request %d of %d refused: %v, %d features", i, n, got.err, features(t, got.out))
					}
				}
				// Capabilities and the like are never too big.
				if refused < 4 || why != "too big" && refused < n {
					t.Errorf("%d of %d requests were refused", refused, n)
				}
			})
		}
	}
}

// features counts the records of a CSV with a header, each a feature's geometry
// and, where they are known, its attributes.
func features(t *testing.T, text string) int {
	t.Helper()
	rows := csv.NewReader(strings.NewReader(text))
	rows.FieldsPerRecord = -1 // without attributes the header has a field too few
	records, err := rows.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return max(0, len(records)-1)
}

// switchboard sends one request, by its number, and that request's repetitions
// to a geoproxy that refuses them, and all others to one that does not.
type switchboard struct {
	*httptest.Server
	refuse  atomic.Int64 // the number of the request to refuse; 0 is none
	again   atomic.Value // its URI, a string
	refused atomic.Bool
}

// Address is its host and port.
func (s *switchboard) Address() string { return s.Listener.Addr().String() }

// refuseOne starts a switchboard before two geoproxies, of which one is in the
// state to refuse for the reason given.
func refuseOne(t *testing.T, server, why string) (*switchboard, *atomic.Int64) {
	t.Helper()
	route := map[string]string{
		// The one token is drawn below.
		"rate": "  rates: [{ name: one, per: route, tokens: 1, every: 1h }]\n",
		// The capped classes get no seat.
		"concurrency": "  gate: { seats: 4, at_most: { metadata: 0, read: 0, download: 0, batch: 0, map: 0, tile: 0, compute: 0 } }\n",
		// A cost that no bucket of this size ever holds.
		"too big": "  rates: [{ name: tiny, per: route, tokens: 1, every: 1h, burst: 1, unit: feature }]\n  assume: { features: 5000 }\n",
	}[why]
	refusing := binary.Start(t, binary.Path(t), fmt.Sprintf("routes:\n- upstream: http://%s\n%s  classes: { metadata: { admission: 50ms }, read: { admission: 50ms }, download: { admission: 50ms } }\n", server, route))
	if why == "rate" {
		exchange(t, refusing.Address, "/bed/ogcapi?f=json", "")
	}
	letting := inFront(t, server)

	s := &switchboard{}
	var requests atomic.Int64
	pass := func(address string) http.Handler {
		return &httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(&url.URL{Scheme: "http", Host: address})
				p.Out.URL.RawQuery = p.In.URL.RawQuery
				p.Out.Host = p.In.Host
			},
			ModifyResponse: func(answer *http.Response) error {
				if address == refusing.Address {
					s.refused.Store(answer.StatusCode >= 400 && answer.Header.Get("Geoproxy-Reason") != "")
				}
				return nil
			},
		}
	}
	yes, no := pass(letting.Address), pass(refusing.Address)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == s.refuse.Load() {
			s.again.Store(r.RequestURI)
		}
		if s.again.Load() == r.RequestURI {
			no.ServeHTTP(w, r)
			return
		}
		yes.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &requests
}
