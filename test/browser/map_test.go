package browser_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/geoproxy/geoproxy/test/binary"
)

func TestMapLibreDrawsThroughTheProxy(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(tileServer))
	t.Cleanup(upstream.Close)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf("upstream: %s\n", upstream.URL))
	page := pageOrigin(t) + "/map.html?proxy=" + url.QueryEscape(proxy.URL)

	ctx := chromium(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(page)); err != nil {
		t.Fatal(err)
	}
	problems, err := chromedp.Run(ctx, chromedp.Evaluate[[]string]("window.idle", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) > 0 {
		t.Fatalf("the map reported %q", problems)
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.ArtifactDir(), "map.png")
	if err := os.WriteFile(file, picture, 0o600); err != nil {
		t.Fatal(err)
	}
	shot, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]color.RGBA{"raster": red, "vector": blue} {
		if share := shareOf(shot, want); share < 0.2 {
			t.Errorf("%.0f %% of the map shows the %s tiles' colour, want about half", 100*share, name)
		}
	}
}

// shareOf is the share of a picture's pixels that have a colour, within what
// blending and rounding change.
func shareOf(picture image.Image, want color.RGBA) float64 {
	bounds := picture.Bounds()
	near := func(a uint32, b uint8) bool { return max(a>>8, uint32(b))-min(a>>8, uint32(b)) <= 4 }
	hits := 0
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := picture.At(x, y).RGBA()
			if near(r, want.R) && near(g, want.G) && near(b, want.B) {
				hits++
			}
		}
	}
	return float64(hits) / float64(bounds.Dx()*bounds.Dy())
}
