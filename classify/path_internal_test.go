package classify

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestPathReadings(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want []string
	}{
		{"/", nil},
		{"/a/b", nil},
		{"/a/b/", nil},
		{"/a/%62", []string{"/a/b"}},
		{"/a%2Fb", []string{"/a/b"}},
		{"/a%2", nil},
		{"/a+b", nil},
		{"//a//b", []string{"/a/b"}},
		{"/a/./b", []string{"/a/b"}},
		{"/a/../b", []string{"/b"}},
		{"/../../b", []string{"/b"}},
		{"/a/..", []string{"/"}},
		{"/a;v=1/b;w", []string{"/a/b"}},
		{"/a/%2e%2e/b", []string{"/a/../b", "/b"}},
		{"/a/..%2fb", []string{"/a/../b", "/b"}},
		{"/a/../%62", []string{"/%62", "/a/../b", "/b"}},
	} {
		var got []string
		PathReadings(c.raw, func(s string) { got = append(got, s) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.raw, got, c.want)
		}
	}
}

func TestSplitPath(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want int
	}{
		{"", 0},
		{"/", 0},
		{"/a", 1},
		{"a", 1},
		{"/a/", 1},
		{"//", 0},
		{"/a//b", 3},
		{strings.Repeat("/a", maxSegments), maxSegments},
		{strings.Repeat("/a", maxSegments+1), -1},
	} {
		var p segments
		p.split(c.raw)
		if p.n != c.want {
			t.Errorf("%q: %d segments, want %d", c.raw, p.n, c.want)
		}
	}
}

// No reading has a segment that an upstream would take for another, and reading
// takes no more than the path is long.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "/%2e%2e/%2E", "//;;//", "/a;b/c%2Fd", "/%", "/a/b/c/", "//;%00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		readings := []string{raw}
		PathReadings(raw, func(s string) {
			if len(s) > len(raw)+1 {
				t.Fatalf("%q became longer: %q", raw, s)
			}
			readings = append(readings, s)
			var p segments
			p.split(s)
		})
		// One of them is the path decoded and clean.
		clean := cleanPath(decodePath(raw))
		if !slices.Contains(readings, clean) {
			t.Fatalf("%q is not read as %q", raw, clean)
		}
		if strings.HasPrefix(clean, "/") && path.Clean(clean) != strings.TrimSuffix(clean, "/") && clean != "/" {
			t.Fatalf("%q is read as %q, which is not clean", raw, clean)
		}
	})
}
