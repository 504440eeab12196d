package config_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/config"
	"github.com/geoproxy/geoproxy/proxy"
)

// What is found without a mistake runs: the checks and the code that they
// stand before agree.
func TestWhatIsValidRuns(t *testing.T) {
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/warning/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			f, _, err := config.Load(file, environment)
			if err != nil {
				t.Fatal(err)
			}
			runs(t, f)
		}
	}
}

// runs makes a proxy of f, without the files that it names: they do not exist.
func runs(t *testing.T, f *config.File) {
	t.Helper()
	f.Tenant.Keys, f.Tenant.JWKS = "", ""
	for name, u := range f.Upstreams {
		u.TLS = proxy.UpstreamTLS{}
		f.Upstreams[name] = u
	}
	p, err := proxy.New(f.Config, proxy.Parts{
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Secret: make([]byte, 32),
	})
	if err != nil {
		t.Errorf("%s is valid, but %v", f.Upstream, err)
		return
	}
	p.Close()
}
