package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Finding is something that is wrong in a file, or probably not meant.
type Finding struct {
	File         string
	Line, Column int    // from 1; 0 where there is no place to point at
	Path         string // "routes[0].rates[1].burst"; empty for the file as a whole
	Message      string
}

// Warning is a finding that does not keep a file from being used.
type Warning = Finding

// String gives "file:line:column: path: message", without the parts that are not known.
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", f.Line, f.Column)
		}
		b.WriteString(": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// MistakesError is every mistake of a file, in the order of their places.
type MistakesError []Finding

// Error gives one mistake a line.
func (m MistakesError) Error() string {
	lines := make([]string, len(m))
	for i, f := range m {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// order sorts findings by their place and drops repetitions, which an alias
// makes of what is wrong in its anchor.
func order(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings)
}

// place is where something stands in the file.
type place struct {
	line, column int
	// written and value differ where the value was made of variables.
	written, value string
}

// conceal puts what the file says for what its variables hold: that may be a
// secret, and a message goes to logs.
func (p place) conceal(message string) string {
	if p.written == p.value || p.value == "" {
		return message
	}
	message = strings.ReplaceAll(message, strconv.Quote(p.value), strconv.Quote(p.written))
	return strings.ReplaceAll(message, p.value, p.written)
}

// maxMessage bounds what is said about one place, in bytes: some messages quote.
const maxMessage = 400

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " ..."
}

// places maps the path of each value in a file to where it stands.
type places map[string]place

// find gives the place of path or, of a value that was not written, that of
// the nearest thing around it.
func (p places) find(path string) place {
	for {
		if at, ok := p[path]; ok || path == "" {
			return at
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}
