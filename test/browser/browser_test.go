// Package browser_test drives a real headless Chromium against the built
// geoproxy: what a page of another origin can read of a refusal, and whether a
// map library draws through the proxy, cannot be known from a Go client.
package browser_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/geoproxy/geoproxy/test/bed"
	"github.com/geoproxy/geoproxy/test/binary"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	defer bed.Stop()
	return binary.Main(m)
}

// chromium gives a context of a fresh browser with a fresh profile. A machine
// without Chromium fails the test: `make setup` installs it.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("no chromium on the PATH (make setup installs it): %v", err)
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(600, 600),
		chromedp.Headless,
		chromedp.NoSandbox, // containers and root have none to offer
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		// Software rendering, so that WebGL is there without a graphics card.
		chromedp.DisableGPU,
		chromedp.Flag("use-gl", "angle"),
		chromedp.Flag("use-angle", "swiftshader"),
		chromedp.Flag("enable-unsafe-swiftshader", true),
		// Nothing but what the test asks for goes out.
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-extensions", true),
		chromedp.Flag("no-proxy-server", true),
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	// The browser lives as long as the context of the first call, so the bound
	// on the rest is set after it.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	ctx, cancel = context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// pageOrigin serves the pages under testdata and the map libraries. Its port
// makes it another origin than the proxy.
func pageOrigin(t *testing.T) string {
	t.Helper()
	modules := filepath.Join("..", "..", ".cache", "browser", "node_modules")
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("testdata")))
	for path, folder := range map[string]string{"/maplibre/": "maplibre-gl/dist", "/leaflet/": "leaflet/dist", "/ol/": "ol"} {
		mux.Handle(path, http.StripPrefix(path, http.FileServer(http.Dir(filepath.Join(modules, folder)))))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}
