package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/config"
)

// watched runs Watch on a file and gives what it calls, one string a call: the
// URL of the upstream, or the error.
func watched(t *testing.T, path string, again <-chan os.Signal) <-chan string {
	t.Helper()
	f, _, err := config.Load(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls, done := make(chan string, 10), make(chan error, 1)
	go func() {
		done <- config.Watch(ctx, f, again,
			func(f *config.File, _ []config.Warning) { calls <- f.Upstream },
			func(err error) { calls <- err.Error() })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return calls
}

// next is what Watch calls next.
func next(t *testing.T, calls <-chan string) string {
	t.Helper()
	select {
	case call := <-calls:
		return call
	case <-time.After(10 * time.Second):
		t.Fatal("no call")
		return ""
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWatchReadsAChangedFile(t *testing.T) {
	path := write(t, "upstream: http://a.example\n")
	calls := watched(t, path, nil)

	put(t, path, "upstream: http://b.example\n")
	if got := next(t, calls); got != "http://b.example" {
		t.Fatal(got)
	}
	put(t, path, "upstream: http://c.example\nkubernetes: x\n")
	if got := next(t, calls); got != path+":2:1: kubernetes: unknown key" {
		t.Fatal(got)
	}
	put(t, path, "upstream: http://c.example\nlisten: ':9999'\n")
	if got := next(t, calls); !strings.HasPrefix(got, path+":2:9: listen: was changed: that needs a restart") {
		t.Fatal(got)
	}
	put(t, path, "upstream: http://c.example\n")
	if got := next(t, calls); got != "http://c.example" {
		t.Fatal(got)
	}
	// An editor's way: a new file takes the name of the old one.
	put(t, path+"~", "upstream: http://d.example\n")
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	if got := next(t, calls); got != "http://d.example" {
		t.Fatal(got)
	}
}

// The kubelet replaces a link to a directory, and with it all files at once.
func TestWatchFollowsAConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version, content string) {
		t.Helper()
		previous, _ := os.Readlink(filepath.Join(dir, "..data"))
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, version, "geoproxy.yaml"), content)
		temporary := filepath.Join(dir, "..data_tmp")
		if err := os.Symlink(version, temporary); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		if previous != "" {
			if err := os.RemoveAll(filepath.Join(dir, previous)); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish("..1", "upstream: http://a.example\n")
	path := filepath.Join(dir, "geoproxy.yaml")
	if err := os.Symlink(filepath.Join("..data", "geoproxy.yaml"), path); err != nil {
		t.Fatal(err)
	}
	calls := watched(t, path, nil)
	publish("..2", "upstream: http://b.example\n")
	if got := next(t, calls); got != "http://b.example" {
		t.Fatal(got)
	}
	publish("..3", "upstream: 3\n")
	if got := next(t, calls); !strings.Contains(got, ":1:11: upstream: must begin with") {
		t.Fatal(got)
	}
	publish("..4", "upstream: http://d.example\n")
	if got := next(t, calls); got != "http://d.example" {
		t.Fatal(got)
	}
}

func TestWatchReadsWhatTheFileNames(t *testing.T) {
	path := write(t, "upstream: http://a.example\ntenant: { keys: secrets/keys.yaml }\n")
	keys := filepath.Join(filepath.Dir(path), "secrets", "keys.yaml")
	if err := os.Mkdir(filepath.Dir(keys), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, keys, "[]")
	calls := watched(t, path, nil)
	put(t, keys, "[{}]")
	if got := next(t, calls); got != "http://a.example" {
		t.Fatal(got)
	}
}

func TestWatchReadsAgainAtASignal(t *testing.T) {
	again := make(chan os.Signal)
	calls := watched(t, write(t, "upstream: http://a.example\n"), again)
	again <- os.Interrupt
	if got := next(t, calls); got != "http://a.example" {
		t.Fatal(got)
	}
}

// Changed between its loading and the watch.
func TestWatchMissesNothingBeforeItBegan(t *testing.T) {
	path := write(t, "upstream: http://a.example\n")
	f, _, err := config.Load(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, "upstream: http://b.example\n")
	ctx, cancel := context.WithCancel(t.Context())
	var got string
	err = config.Watch(ctx, f, nil,
		func(f *config.File, _ []config.Warning) { got = f.Upstream; cancel() },
		func(err error) { t.Error(err); cancel() })
	if err != nil || got != "http://b.example" {
		t.Error(got, err)
	}
}

func TestNeedsRestart(t *testing.T) {
	a, b := config.Default("http://a.example"), config.Default("http://b.example")
	if got := config.NeedsRestart(a, b); len(got) != 0 {
		t.Error(got)
	}
	b.Listen, b.Health, b.Admin, b.DataDir, b.Secret = ":1", ":2", ":3", "x", "0123456789abcdef"
	b.Redis = "redis://127.0.0.1:6379"
	if got := strings.Join(config.NeedsRestart(a, b), " "); got != "listen health admin redis data_dir secret" {
		t.Error(got)
	}
}
