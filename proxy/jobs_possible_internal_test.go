package proxy

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/classify"
)

var updateJobs = flag.Bool("update", false, "write the table of who may be answered with a job; read it before you commit it")

// recorded is a request of the golden tables of classify.
type recorded struct {
	method, target string
	header         http.Header
	body           []byte
}

func (r *recorded) ask() *Ask {
	path, query, _ := strings.Cut(r.target, "?")
	ask := &Ask{Arrived: time.Now()}
	ask.Method, ask.Host, ask.Path, ask.Query, ask.Header = r.method, "localhost", path, query, r.header.Clone()
	ask.Body.Length = int64(len(r.body))
	if len(r.body) > 0 {
		ask.ReadBody = func(int64, time.Duration) classify.Body {
			return classify.Body{Prefix: r.body, Length: int64(len(r.body)), Whole: true}
		}
	}
	return ask
}

// recordings reads every request of every family.
func recordings(t *testing.T) []recorded {
	t.Helper()
	files, err := filepath.Glob("../classify/testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden tables", err)
	}
	var all []recorded
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := recorded{header: http.Header{}}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case line == "", line[0] == '#', line[0] == '@':
			case strings.HasPrefix(line, "> "):
				name, value, _ := strings.Cut(line[2:], ": ")
				r.header.Add(name, value)
			case strings.HasPrefix(line, "| "):
				r.body = append(r.body, line[2:]...)
			case strings.HasPrefix(line, "="):
				all = append(all, r)
				r = recorded{header: http.Header{}}
			default:
				r.method, r.target, _ = strings.Cut(line, " ")
			}
		}
	}
	return all
}

func jobAdmission(t *testing.T, when string) *Admission {
	t.Helper()
	p, err := New(Config{Routes: []RouteConfig{{Upstream: "http://127.0.0.1:1", Jobs: JobsConfig{When: when}}}}, Parts{
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Secret: []byte("a secret of the tests"), Jobs: &JobParts{},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p.admission
}

func possible(a *Admission, ask *Ask) (*Verdict, bool) {
	v := &Verdict{Mode: ModeInline, config: a.state.Load()}
	a.assess(v.config, v, ask)
	return v, v.class != nil && v.modeIn.possible
}

// Every family and operation, with who may be answered with a job:
// never anybody, only who asked, or with jobs.when "allowed" others as well.
func TestWhoMayBeAnsweredWithAJob(t *testing.T) {
	asked, allowed, never := jobAdmission(t, "asked"), jobAdmission(t, "allowed"), jobAdmission(t, "never")
	table := make(map[string]string)
	for _, r := range recordings(t) {
		v, unasked := possible(allowed, r.ask())
		if v.class == nil {
			continue // it is refused as it stands
		}
		ask := r.ask()
		ask.Header.Set("Prefer", "respond-async")
		_, onRequest := possible(asked, ask)
		if _, ok := possible(asked, r.ask()); ok {
			t.Errorf("%s %s: a job for who did not ask", r.method, r.target)
		}
		ask = r.ask()
		ask.Header.Set("Prefer", "respond-async")
		if _, ok := possible(never, ask); ok {
			t.Errorf("%s %s: a job where there are none", r.method, r.target)
		}
		if unasked && !onRequest {
			t.Errorf("%s %s: a job only for who does not ask", r.method, r.target)
		}
		est := &v.Estimate
		key := fmt.Sprintf("%s %s %s", est.Family, opLabel(est.Op), est.Class)
		if r.method == http.MethodHead || r.method == http.MethodOptions {
			key += " " + r.method
		}
		if est.LaterPage {
			key += " later-page"
		}
		if !est.Replayable {
			key += " not-replayable"
		}
		who := "never"
		switch {
		case unasked:
			who = "allowed"
		case onRequest:
			who = "asked"
		}
		if before, ok := table[key]; ok && before != who && r.header.Get("Range") == "" {
			t.Errorf("%s: %s and %s (%s)", key, before, who, r.target)
		}
		if r.header.Get("Range") == "" {
			table[key] = who
		}
	}
	var got bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(table)) {
		fmt.Fprintf(&got, "%s: %s\n", key, table[key])
	}
	const file = "testdata/jobs_who.txt"
	if *updateJobs {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("who may be answered with a job has changed; run with -update and read what changes")
		for line := range strings.Lines(got.String()) {
			if !bytes.Contains(want, []byte(line)) {
				t.Errorf("now %s", line)
			}
		}
		for line := range strings.Lines(string(want)) {
			if !bytes.Contains(got.Bytes(), []byte(line)) {
				t.Errorf("was %s", line)
			}
		}
	}
	for _, family := range classify.Families() {
		if !bytes.Contains(want, []byte(family+" ")) {
			t.Errorf("nothing says who of %s may be answered with a job", family)
		}
	}
}

// Who asks gets a job however they ask; who cannot follow one does not get it
// unasked.
func TestHowAJobIsAskedFor(t *testing.T) {
	asked, allowed := jobAdmission(t, "asked"), jobAdmission(t, "allowed")
	for _, tt := range []struct {
		name, header, value string
		asked, allowed      bool
	}{
		{"nothing", "", "", false, true},
		{"respond-async", "Prefer", "respond-async", true, true},
		{"with a wait", "Prefer", `wait=5, Respond-Async`, true, true},
		{"our media type", "Accept", "application/geo+json, application/vnd.geoproxy.job+json", true, true},
		{"only to wait", "Prefer", "wait=5", false, true},
		{"GDAL", "User-Agent", "GDAL/3.8.4", false, false},
		{"QGIS", "User-Agent", "Mozilla/5.0 QGIS/33402/Linux", false, false},
		{"ArcGIS", "User-Agent", "ArcGIS Pro 3.2", false, false},
		{"a cascading server", "User-Agent", "MapServer/8.0", false, false},
		{"GDAL that asks", "Prefer", "respond-async", true, true},
		{"an image of a page", "Sec-Fetch-Dest", "image", false, false},
		{"a script of a page", "Sec-Fetch-Dest", "empty", false, true},
		{"somebody at a browser", "Sec-Fetch-Dest", "document", false, true},
		{"who takes no JSON", "Accept", "image/png", false, false},
		{"who takes GeoJSON", "Accept", "application/geo+json", false, true},
		{"who takes anything", "Accept", "*/*", false, true},
		{"a range", "Range", "bytes=0-9", false, false},
		{"an upgrade", "Upgrade", "websocket", false, false},
		{"gRPC", "Content-Type", "application/grpc", false, false},
	} {
		ask := func() *Ask {
			a := &Ask{Arrived: time.Now()}
			a.Method, a.Host, a.Path, a.Query, a.Header = "GET", "localhost", "/collections/roads/items", "limit=10000", http.Header{}
			if tt.header != "" {
				a.Header.Set(tt.header, tt.value)
			}
			return a
		}
		if _, got := possible(asked, ask()); got != tt.asked {
			t.Errorf("%s, jobs.when asked: %v", tt.name, got)
		}
		if _, got := possible(allowed, ask()); got != tt.allowed {
			t.Errorf("%s, jobs.when allowed: %v", tt.name, got)
		}
	}
	// What asks for a part or another protocol is never a job, asked or not.
	for _, header := range []string{"Range", "Upgrade"} {
		ask := &Ask{Arrived: time.Now()}
		ask.Method, ask.Host, ask.Path, ask.Header = "GET", "localhost", "/collections/roads/items", http.Header{header: {"x"}, "Prefer": {"respond-async"}}
		if _, got := possible(asked, ask); got {
			t.Errorf("%s: a job", header)
		}
	}
}
