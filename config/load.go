package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// Load reads, checks and completes the file at path. env looks variables up;
// os.LookupEnv is one. Where the file has mistakes the error is a
// [MistakesError] with all of them, and the warnings come with it.
func Load(path string, env func(string) (string, bool)) (*File, []Warning, error) {
	content, err := read(path)
	if err != nil {
		return nil, nil, err
	}
	f := &File{source: source{path: path, env: env, places: places{}}}
	d := decoder{env: env, places: f.source.places}
	root := parse(content, &d)
	if root == nil {
		d.found[0].File = path
		return nil, nil, MistakesError(d.found)
	}
	d.value(root, reflect.ValueOf(f).Elem(), "", "")
	mistakes := d.found
	var warnings []Warning
	// What could not be read is left at zero, and to report that as well would
	// only say the same twice: contradictions are looked for in what was read
	// whole.
	broken := func(path string) bool {
		for _, m := range d.found {
			if m.Path == path || strings.HasPrefix(path, m.Path) && strings.ContainsAny(path[len(m.Path):len(m.Path)+1], ".[") {
				return true
			}
		}
		return false
	}
	note := func(to *[]Finding) func(path, message string) {
		return func(path, message string) {
			if !broken(path) && len(*to) < maxFindings {
				at := f.source.places.find(path)
				*to = append(*to, Finding{Line: at.line, Column: at.column, Path: path, Message: shorten(at.conceal(message))})
			}
		}
	}
	f.fill()
	if d.values < maxValues {
		f.Check(note(&mistakes), note(&warnings))
	}
	for _, findings := range [][]Finding{mistakes, warnings} {
		for i := range findings {
			findings[i].File = path
		}
	}
	warnings = order(warnings)
	if len(mistakes) > 0 {
		return nil, warnings, MistakesError(order(mistakes))
	}
	f.resolve(filepath.Dir(path))
	f.source.sum = f.digest(content)
	return f, warnings, nil
}

// read gives the bytes of a file that is not larger than it may be.
func read(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // the path is what the operator names
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, MistakesError{{File: path, Message: fmt.Sprintf("is larger than %d bytes", maxFile)}}
	}
	return content, nil
}

// parse gives the root of the one document in content, or notes why there is
// none.
func parse(content []byte, d *decoder) *yaml.Node {
	loader, err := yaml.NewLoader(strings.NewReader(string(content)))
	if err != nil {
		d.mistake(&yaml.Node{}, "", "%s", err)
		return nil
	}
	var document, second yaml.Node
	if err := loader.Load(&document); err != nil {
		d.syntax(err)
		return nil
	}
	if err := loader.Load(&second); !errors.Is(err, io.EOF) {
		if err != nil {
			d.syntax(err)
		} else {
			d.mistake(&second, "", "a second document begins here: a config is one")
		}
		return nil
	}
	root := &document
	for root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if root.Kind != yaml.MappingNode {
		d.mistake(root, "", "must be a mapping: the smallest config is upstream: http://127.0.0.1:7800")
		return nil
	}
	return root
}

// syntax notes what the YAML library says about text that is no YAML.
func (d *decoder) syntax(err error) {
	var at yaml.Node
	message := err.Error()
	var located *yaml.LoadError
	switch {
	case errors.Is(err, io.EOF):
		message = "is empty: the smallest config is upstream: http://127.0.0.1:7800"
	case errors.As(err, &located):
		at.Line, at.Column = located.Mark.Line, located.Mark.Column
		message = located.Message
	}
	d.mistake(&at, "", "%s", message)
}
