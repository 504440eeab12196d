package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoproxy/geoproxy/config"
)

// Whatever a file holds, loading it ends in a config that can be checked again
// without a mistake, or in mistakes that have a place in the file.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*", "testdata/invalid/*", "testdata/warning/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(content)
		}
	}
	path := filepath.Join(f.TempDir(), "geoproxy.yaml")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		file, _, err := config.Load(path, environment)
		var mistakes config.MistakesError
		switch {
		case err == nil:
			file.Check(func(path, message string) { t.Errorf("loaded, but %s: %s", path, message) }, func(string, string) {})
			runs(t, file)
		case !errors.As(err, &mistakes):
			t.Errorf("%T: %v", err, err)
		case len(mistakes) == 0:
			t.Error("no mistakes")
		}
		for _, m := range mistakes {
			if m.Line < 0 || m.Line > len(content)+1 || m.Message == "" {
				t.Errorf("%+v", m)
			}
		}
	})
}
