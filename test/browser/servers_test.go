package browser_test

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/geoproxy/geoproxy/test/bed"
	"github.com/geoproxy/geoproxy/test/binary"
)

// Each map library makes the same requests of a real server through geoproxy as
// directly, none fails, and it draws.
func TestMapLibrariesAskTheSameThroughTheProxy(t *testing.T) {
	b := bed.Start(t)
	b.StartTipg(t)
	for _, test := range []struct{ library, server string }{
		{"leaflet", b.MapServer},   // WMS 1.3.0
		{"openlayers", b.MapProxy}, // tiles
		{"maplibre", b.Tipg},       // TileJSON, and the vector tiles that it names
	} {
		t.Run(test.library, func(t *testing.T) {
			r := bed.Record(t, test.server)
			proxy := binary.Start(t, binary.Path(t), fmt.Sprintf("routes:\n- upstream: http://%s\n  gate: { seats: %d }\n", r.Address, bed.Workers))
			openMap(t, test.library, r.Address)
			want := slices.Compact(r.Asked(t, r.Address))
			openMap(t, test.library, proxy.Address)
			got := slices.Compact(r.Asked(t, proxy.Address))
			if len(want) < 4 || !slices.Equal(want, got) {
				t.Errorf("directly it asked\n%s\nand through geoproxy\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
			}
			t.Logf("%d requests", len(got))
		})
	}
}

// openMap opens a map of a library over a server, in a browser of its own.
func openMap(t *testing.T, library, address string) {
	t.Helper()
	ctx := chromium(t)
	page := pageOrigin(t) + "/servers.html?library=" + library + "&server=" + url.QueryEscape("http://"+address)
	if err := chromedp.Do(ctx, chromedp.Navigate(page)); err != nil {
		t.Fatal(err)
	}
	problems, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("window.idle", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) > 0 {
		t.Errorf("%s reported %q", library, problems)
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	shot, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	if blank := shareOf(shot, color.RGBA{R: 255, G: 255, B: 255, A: 255}); blank > 0.5 {
		t.Errorf("%s: %.0f %% of the map is blank", library, 100*blank)
	}
}
