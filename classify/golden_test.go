package classify_test

import (
	"bufio"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

var update = flag.Bool("update", false, "write the answers into the golden tables; read them before you commit them")

// A golden table is one request after the other:
//
//	POST /collections/parcels/items    method, path and query
//	> Content-Type: application/json   its headers
//	| {"op":"s_intersects"}            its body
//	@ ogcapi                           the family that the config names; auto without
//	= ogcapi filter read features=10   what it is to be recognised as
//
// The words behind the class are the inputs that are not 0, then what is true
// of it, then its basis.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden tables", err)
	}
	c, err := classify.New(classify.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			cases := readGolden(t, file)
			for i, g := range cases {
				with := c
				if g.family != "" {
					with = classifier(t, classify.Config{Family: g.family})
				}
				got := describe(with, &g.request)
				if *update {
					cases[i].want = got
				} else if got != g.want {
					t.Errorf("%s:%d: %s\n got %s\nwant %s", file, g.line, g.lines[0], got, g.want)
				}
			}
			if *update {
				writeGolden(t, file, cases)
			}
		})
	}
}

// Every family has its table, and a table is of a family.
func TestGoldenTables(t *testing.T) {
	for _, name := range append(classify.Families(), "http") {
		if _, err := os.Stat("testdata/golden/" + name + ".txt"); err != nil {
			t.Error(err)
		}
	}
}

type golden struct {
	line    int
	lines   []string // as they stand in the file, comments before it included
	request classify.Request
	family  string // named by the config
	want    string
}

func readGolden(tb testing.TB, file string) (cases []golden) {
	tb.Helper()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var g golden
	var body []byte
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		n++
		line := lines.Text()
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "", "#":
		case ">":
			name, value, _ := strings.Cut(rest, ": ")
			g.request.Header.Add(name, value)
		case "|":
			body = append(body, rest...)
		case "@":
			g.family = rest
		case "=":
			g.want = rest
			g.request.Body = classify.Body{Prefix: body, Length: int64(len(body)), Whole: true}
			cases = append(cases, g)
			g, body = golden{}, nil
			continue
		default:
			path, query, _ := strings.Cut(rest, "?")
			g.line = n
			g.request = classify.Request{Method: kind, Host: "maps.example", Path: path, Query: query, Header: http.Header{}}
		}
		g.lines = append(g.lines, line)
	}
	return cases
}

func writeGolden(tb testing.TB, file string, cases []golden) {
	tb.Helper()
	var b strings.Builder
	for _, g := range cases {
		for _, line := range g.lines {
			b.WriteString(line + "\n")
		}
		b.WriteString("= " + g.want + "\n")
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// describe says what a request is recognised as.
func describe(c *classify.Classifier, r *classify.Request) string {
	e := c.Estimate(r)
	words := []string{e.Family, e.Op, e.Class.String()}
	for _, input := range []struct {
		name   string
		amount float64
	}{{"features", e.Features}, {"vertices", e.Vertices}, {"cells", e.Cells}, {"bytes", e.Bytes}} {
		if input.amount != 0 {
			words = append(words, fmt.Sprintf("%s=%.10g", input.name, input.amount))
		}
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"low", e.Low}, {"replayable", e.Replayable}, {"later", e.LaterPage}, {"needs-body", c.NeedsBody(r)}} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	return strings.Join(append(words, fmt.Sprintf("%q", e.Basis)), " ")
}

// corpus is every golden request.
func corpus(tb testing.TB) (requests []classify.Request) {
	tb.Helper()
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil {
		tb.Fatal(err)
	}
	slices.Sort(files)
	for _, file := range files {
		for _, g := range readGolden(tb, file) {
			requests = append(requests, g.request)
		}
	}
	return requests
}
