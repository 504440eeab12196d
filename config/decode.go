package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Bounds of one file, aliases followed. A config of a thousand routes stays
// below a tenth of them. Depth needs no bound: what is read is as deep as the
// structs are.
const (
	maxValues   = 200_000
	maxFindings = 100
	maxKey      = 256 // bytes
)

// decoder reads a tree of YAML nodes into a struct and notes every mistake.
type decoder struct {
	env      func(string) (string, bool)
	found    []Finding
	places   places
	values   int
	expanded int
}

func (d *decoder) mistake(n *yaml.Node, path, format string, args ...any) {
	if len(d.found) < maxFindings {
		d.found = append(d.found, Finding{Line: n.Line, Column: n.Column, Path: path, Message: shorten(fmt.Sprintf(format, args...))})
	}
}

// value reads n into v. It is where aliases end, and where all is bounded.
func (d *decoder) value(n *yaml.Node, v reflect.Value, unit, path string) {
	at := n
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.values++; d.values >= maxValues {
		if d.values == maxValues {
			d.mistake(at, "", "more than %d values once its aliases are followed", maxValues)
		}
		return
	}
	d.places[path] = place{line: at.Line, column: at.Column}
	if n.Style&yaml.TaggedStyle != 0 {
		d.mistake(n, path, "tags such as %s are not read", n.Tag)
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		d.mistake(at, path, "has no value: write one, or leave the key out")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	if n.Kind == yaml.ScalarNode {
		d.scalar(n, v, unit, path)
		return
	}
	if n.Kind == yaml.SequenceNode {
		d.sequence(n, v, unit, path)
		return
	}
	d.mapping(n, v, path)
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, unit, path string) {
	if v.Kind() != reflect.Slice {
		d.mistake(n, path, "must be %s, not a list", wanted(v.Type(), unit))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, list.Index(i), unit, path+"["+strconv.Itoa(i)+"]")
	}
	v.Set(list)
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if v.Kind() == reflect.Struct {
		d.structure(n, v, path)
		return
	}
	if v.Kind() != reflect.Map {
		d.mistake(n, path, "must be %s, not a mapping", wanted(v.Type(), ""))
		return
	}
	all := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	d.pairs(n, path, func(key, value *yaml.Node, at string) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(value, item, "", at)
		all.SetMapIndex(reflect.ValueOf(key.Value), item)
	})
	v.Set(all)
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type(), nil)
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	d.pairs(n, path, func(key, value *yaml.Node, at string) {
		i := slices.Index(names, key.Value)
		if i < 0 {
			message := "unknown key"
			if near := suggest(key.Value, names); near != "" {
				message += fmt.Sprintf("; did you mean %q?", near)
			}
			d.mistake(key, at, "%s", message)
			return
		}
		before, target := len(d.found), v.FieldByIndex(fields[i].index)
		d.value(value, target, fields[i].unit, at)
		if len(d.found) == before {
			d.nothing(value, target, at)
		}
	})
}

// nothing notes a value that would be taken for no value at all: the default
// would apply where somebody wrote that nothing should.
func (d *decoder) nothing(n *yaml.Node, v reflect.Value, path string) {
	if !v.IsZero() {
		return
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		// ${VAR:-} says that nothing is fine.
		if !strings.Contains(d.places[path].written, ":-") {
			d.mistake(n, path, "is empty: leave the key out")
		}
	case isNumber(kind):
		if !zeroIsOff(path) {
			d.mistake(n, path, "0 would be taken for the default: leave the key out, or write the least that is meant")
		}
	}
}

// zeroIsOff reports whether 0 means what it says at path.
func zeroIsOff(path string) bool {
	return path == "front_timeout" || path == "stream.max" ||
		strings.HasSuffix(path, ".max_body") || strings.HasSuffix(path, ".seat_seconds")
}

// pairs calls each for every key of n that can be one, and its value. Keys are
// not expanded.
func (d *decoder) pairs(n *yaml.Node, path string, each func(key, value *yaml.Node, path string)) {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind == yaml.ScalarNode && key.Tag == "!!merge":
			d.mistake(key, path, "merge keys are not read: give the alias as a whole value")
			continue
		case key.Kind != yaml.ScalarNode || key.Tag == "!!null" || key.Value == "":
			d.mistake(key, path, "a key must be text")
			continue
		case len(key.Value) > maxKey:
			d.mistake(key, path, "a key longer than %d bytes", maxKey)
			continue
		}
		at := key.Value
		if path != "" {
			at = path + "." + key.Value
		}
		if line, again := seen[key.Value]; again {
			d.mistake(key, at, "duplicate key: it stands in line %d already", line)
			continue
		}
		seen[key.Value] = key.Line
		each(key, n.Content[i+1], at)
		if n.Content[i+1].Kind != yaml.ScalarNode {
			// What is wrong with a mapping as a whole is often its name.
			d.places[at] = place{line: key.Line, column: key.Column}
		}
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, unit, path string) {
	t := text{value: n.Value, quoted: n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0}
	if d.expanded > maxExpanded {
		return // reported already
	}
	value, err := expand(n.Value, d.env)
	if err == nil && value != n.Value {
		// What a variable holds has no kind of its own: the field decides.
		t = text{value: value}
		at := d.places[path]
		at.written, at.value = n.Value, value
		d.places[path] = at
		if d.expanded += len(value); d.expanded > maxExpanded {
			err = errExpanded
		}
	}
	if err != nil {
		d.mistake(n, path, "%s", err)
		return
	}
	// A struct may have a short form.
	if shorthand, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		if err := shorthand.UnmarshalText([]byte(t.value)); err != nil {
			d.mistake(n, path, "%s", err)
		}
		return
	}
	switch kind := v.Kind(); {
	case kind == reflect.Slice: // one value stands for a list of it
		list := reflect.MakeSlice(v.Type(), 1, 1)
		d.scalar(n, list.Index(0), unit, path)
		v.Set(list)
		return
	case kind == reflect.Struct || kind == reflect.Map:
		d.mistake(n, path, "must be %s", wanted(v.Type(), unit))
		return
	case kind == reflect.String && !t.quoted && n.Tag == "!!bool":
		d.mistake(n, path, "must be text; quote it if %s is meant", n.Value)
		return
	}
	if err := t.set(v, unit); err != nil {
		d.mistake(n, path, "%s", err)
	}
}

// field is a key of a struct.
type field struct {
	name, unit string
	index      []int
}

// fieldsOf lists the keys of t and of what is inline in it.
func fieldsOf(t reflect.Type, index []int) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _ := f.Tag.Lookup("yaml")
		name, option, _ := strings.Cut(tag, ",")
		at := append(append([]int(nil), index...), i)
		switch {
		case option == "inline":
			all = append(all, fieldsOf(f.Type, at)...)
		case name != "" && name != "-":
			all = append(all, field{name, f.Tag.Get("unit"), at})
		}
	}
	return all
}
