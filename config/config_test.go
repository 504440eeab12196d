package config_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/config"
)

var update = flag.Bool("update", false, "write what is got where it is wanted: read the difference before you commit it")

// environment is what the testdata expands.
func environment(name string) (string, bool) {
	value, ok := map[string]string{
		"GEOPROXY_SECRET": "0123456789abcdef0123456789abcdef",
		"ADMIN_TOKEN":     "fedcba9876543210",
		"SEATS":           "12",
		"EMPTY":           "",
		"HOSTILE":         "x, admin: 0.0.0.0:1 }\nroutes: []\n---\nadmin: y",
	}[name]
	return value, ok
}

// Each bad file makes one mistake and begins with the message it must give.
func TestInvalid(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, _, err := config.Load(file, environment)
			if _, ok := errors.AsType[config.MistakesError](err); !ok {
				t.Fatalf("got %v, want mistakes", err)
			}
			compareWithComment(t, file, err)
		})
	}
}

// compareWithComment compares a finding with the first line of the file, or
// with -update writes it there.
func compareWithComment(t *testing.T, file string, finding error) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, rest, _ := strings.Cut(string(content), "\n")
	got := "# " + strings.TrimLeft(strings.TrimPrefix(finding.Error(), file), ": ")
	switch {
	case got == line:
	case *update && !strings.Contains(got, "\n"):
		if err := os.WriteFile(file, []byte(got+"\n"+rest), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("\n got %s\nwant %s", got, line)
	}
}

// A warning does not keep a file from being used, and is found with its place.
func TestWarnings(t *testing.T) {
	files, err := filepath.Glob("testdata/warning/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			_, warnings, err := config.Load(file, environment)
			if err != nil {
				t.Fatal(err)
			}
			compareWithComment(t, file, config.MistakesError(warnings))
		})
	}
}

// Where a name is misspelt, what it was meant for is not called unused.
func TestMisspeltNamesBringNoWarnings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "geoproxy.yaml")
	const content = `
gates: { gis: { seats: 8 } }
upstreams: { features: { url: http://127.0.0.1:1, gate: gsi } }
routes: [ { upstream: featurs } ]
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := config.Load(file, environment)
	if mistakes, ok := errors.AsType[config.MistakesError](err); !ok || len(mistakes) != 2 || len(warnings) > 0 {
		t.Errorf("got %v, and the warnings %v", err, warnings)
	}
}

func TestValid(t *testing.T) {
	files, err := filepath.Glob("testdata/valid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, file := range files {
		_, warnings, err := config.Load(file, environment)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", file, err, warnings)
		}
	}
}

func TestEverythingIsReportedInOneRun(t *testing.T) {
	_, _, err := config.Load(write(t, `
listen: 8080
gates: { gis: { seats: eight, qeue: 3 } }
routes:
- upstream: http://127.0.0.1:7800
  max_body: 64kB
- { upstream: nowhere, gate: gsi, disclose: all }
`), environment)
	if _, ok := errors.AsType[config.MistakesError](err); !ok {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2:9: listen: must be host:port",
		"3:24: gates.gis.seats: must be a whole number",
		`3:31: gates.gis.qeue: unknown key; did you mean "queue"?`,
		"5:3: routes[0].name: is required",
		`6:13: routes[0].max_body: "kB" is no unit`,
		"7:3: routes[1].name: is required",
		`7:15: routes[1].upstream: no upstream is named "nowhere"`,
		`7:30: routes[1].gate: no gate is named "gsi": there are gis`,
		`7:45: routes[1].disclose: "all" is none of full, coarse, none`,
	} {
		if !strings.Contains(err.Error(), ":"+want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

func TestLoadReadsAllForms(t *testing.T) {
	f := load(t, `
listen: 127.0.0.1:0
data_dir: state
secret: "${GEOPROXY_SECRET}"
admin_token: ${EMPTY:-}
tenant: { from: [header:X-Api-Key, address], keys: keys.yaml, trusted_proxies: 10.0.0.0/8 }
gates:
  gis: &gis { seats: "${SEATS}", seat_seconds: 500ms, max_seats: 4, at_most: { map: 4 } }
  other: *gis
upstreams:
  short: http://127.0.0.1:7800
  long: { url: unix:///run/pg.sock, gate: gis }
routes:
- { name: a, match: { path: /a/ }, upstream: short, gate: gis, cors: mirror, max_body: 1GiB, enforce: false }
- name: b
  upstream: long
  gate: { seats: 3 }
  cors: [https://a.example, "https://b.example"]
  rates: [{ name: cost, per: [tenant, address], tokens: 0.5, burst: 10, every: 1m, unit: second }]
  rules: [{ op: price, class: read, when: 'request.path == "/$$${NOBODY:-x}"', cells: 256 }]
`)
	a, b := f.Routes[0], f.Routes[1]
	switch {
	case f.Listen != "127.0.0.1:0" || f.Health != config.DefaultHealth || f.Admin != config.DefaultAdmin:
		t.Error("listeners", f.Listen, f.Health, f.Admin)
	case f.Secret != "0123456789abcdef0123456789abcdef":
		t.Error("secret", f.Secret)
	case len(f.Tenant.TrustedProxies) != 1 || f.Tenant.TrustedProxies[0] != "10.0.0.0/8":
		t.Error("one value for a list", f.Tenant.TrustedProxies)
	case f.Gates["gis"].Seats != 12 || f.Gates["gis"].SeatSeconds != 500*time.Millisecond || f.Gates["other"].AtMost["map"] != 4:
		t.Error("gates", f.Gates)
	case f.Upstreams["short"].URL != "http://127.0.0.1:7800" || f.Upstreams["long"].Gate.Name != "gis":
		t.Error("upstreams", f.Upstreams)
	case a.Gate.Name != "gis" || a.MaxBody != 1<<30 || *a.Enforce || a.CORS[0] != "mirror" || a.Match.Path != "/a/":
		t.Error("route a", a)
	case b.Gate.Seats != 3 || len(b.CORS) != 2 || b.Rates[0].Tokens != 0.5 || b.Rates[0].Every != time.Minute:
		t.Error("route b", b)
	case b.Rules[0].When != `request.path == "/$x"` || b.Rules[0].Cells != "256":
		t.Error("rules", b.Rules)
	}
	if !filepath.IsAbs(f.Tenant.Keys) || !filepath.IsAbs(f.DataDir) || filepath.Base(f.DataDir) != "state" {
		t.Error("names of files are not relative to the file:", f.Tenant.Keys, f.DataDir)
	}
}

func TestVariablesAddNoStructure(t *testing.T) {
	f := load(t, "routes: [{ name: a, upstream: http://127.0.0.1:1, exempt: { paths: [ '/${HOSTILE}' ] } }]")
	hostile, _ := environment("HOSTILE")
	if got := f.Routes[0].Exempt.Paths; len(got) != 1 || got[0] != "/"+hostile || f.Admin != config.DefaultAdmin {
		t.Errorf("%q %s", got, f.Admin)
	}
}

func TestMistakesDoNotQuoteVariables(t *testing.T) {
	_, _, err := config.Load(write(t, "upstream: http://127.0.0.1:7800\nfront_timeout: ${ADMIN_TOKEN}\nlimits: { header: '${ADMIN_TOKEN}' }\n"+
		"tenant: { from: 'my${ADMIN_TOKEN}', trusted_proxies: [\"${ADMIN_TOKEN}\"] }"), environment)
	if err == nil || strings.Contains(err.Error(), "fedcba") || !strings.Contains(err.Error(), `from[0]: "my${ADMIN_TOKEN}" is none of`) {
		t.Error(err)
	}
}

func TestDefaultIsValid(t *testing.T) {
	config.Default("http://127.0.0.1:7800").Check(func(path, message string) { t.Error(path, message) },
		func(path, message string) { t.Error("warning:", path, message) })
}

func load(t *testing.T, content string) *config.File {
	t.Helper()
	f, _, err := config.Load(write(t, content), environment)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "geoproxy.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
