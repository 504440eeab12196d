package readme

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// schema is as much of a JSON Schema as config/schema.json uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
	Description string             `json:"description"`
	Type        string             `json:"type"`
	Enum        []any              `json:"enum"`
	AnyOf       []*schema          `json:"anyOf"`
	Items       *schema            `json:"items"`
	Properties  members            `json:"properties"`
	Additional  additional         `json:"additionalProperties"`
}

// members are an object's properties in the order of the file.
type members []member

type member struct {
	name   string
	schema *schema
}

// UnmarshalJSON reads an object and keeps its order.
func (m *members) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil { // the opening brace
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		next := member{name: fmt.Sprint(name), schema: &schema{}}
		if err := decoder.Decode(next.schema); err != nil {
			return err
		}
		*m = append(*m, next)
	}
	return nil
}

// additional is the schema of the values of a map; nil where names are fixed.
type additional struct{ *schema }

// UnmarshalJSON takes a schema, or a boolean for none.
func (a *additional) UnmarshalJSON(text []byte) error {
	if text[0] != '{' {
		return nil
	}
	a.schema = &schema{}
	return json.Unmarshal(text, a.schema)
}

// The scalars of the schema, in words.
var scalars = map[string]string{
	"duration": "duration", "size": "size", "text": "text", "whole": "whole number", "number": "number",
	"switch": "true or false", "list": "text, or a list",
}

// section is an object of the config that has a heading of its own.
type section struct {
	path string // "routes[].classes.NAME"
	def  string // its name under $defs
}

// ConfigPage writes docs/config.md from config/schema.json: a section for each
// object of the file, in the order in which a reader comes upon them.
func ConfigPage(schemaJSON []byte) (string, error) {
	var root schema
	if err := json.Unmarshal(schemaJSON, &root); err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString("# The config file\n\n<!-- Written by `make generate` from config/schema.json; changes belong into the structs. -->\n\n" +
		"YAML, read strictly: a key that is not here, a wrong unit or a contradiction is an error with its file, line and column, and `geoproxy check` reports all of them in one run. " +
		"`${VAR}` and `${VAR:-default}` are expanded. Durations are written `500ms`, `5s`, `1h30m`; sizes `64KiB`, `1GiB`. " +
		"Every key has a default, and the smallest useful file is `upstream: http://127.0.0.1:7800`.\n")

	found := []section{{}}
	paths := map[string]string{}
	for i := 0; i < len(found); i++ {
		object := &root
		if def := found[i].def; def != "" {
			object = root.Defs[def]
			// The struct's documentation begins with the struct's name.
			_, says, _ := strings.Cut(oneLine(object.Description), " ")
			fmt.Fprintf(&page, "\n## `%[1]s`\n\n`%[1]s` %[2]s\n", found[i].path, says)
		}
		page.WriteString("\n| key | value | |\n|---|---|---|\n")
		for _, m := range object.Properties {
			path := strings.TrimPrefix(found[i].path+"."+m.name, ".")
			words, more := m.schema.words(path, root.Defs, paths)
			found = append(found, more...)
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", m.name, words, strings.ReplaceAll(oneLine(m.schema.Description), "|", `\|`))
		}
	}
	return page.String(), nil
}

// words says what a value is. Objects that were not met before are added to
// paths, where they are by name, and given back to be described.
func (s *schema) words(path string, defs map[string]*schema, paths map[string]string) (string, []section) {
	name := strings.TrimPrefix(s.Ref, "#/$defs/")
	switch {
	case name == "variable":
		return "", nil
	case name != "" && len(defs[name].Properties) > 0:
		met, found := paths[name]
		if !found {
			paths[name] = path
			return link(path), []section{{path, name}}
		}
		return link(met), nil
	case name != "":
		return scalars[name], nil
	case len(s.AnyOf) > 0:
		var all []string
		var found []section
		for _, one := range s.AnyOf {
			words, more := one.words(path, defs, paths)
			found = append(found, more...)
			if words != "" {
				all = append(all, words)
			}
		}
		return strings.Join(all, ", or "), found
	case len(s.Enum) > 0:
		all := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			all[i] = fmt.Sprintf("`%v`", value)
		}
		return strings.Join(all, ", "), nil
	case s.Items != nil:
		words, found := s.Items.words(path+"[]", defs, paths)
		return "list of " + words, found
	case s.Additional.schema != nil:
		words, found := s.Additional.words(path+".NAME", defs, paths)
		return "by name: " + words, found
	case s.Type == "string":
		return "text", nil
	case s.Type == "integer":
		return "whole number", nil
	case s.Type == "boolean":
		return scalars["switch"], nil
	}
	return s.Type, nil
}

// link points to the section of a path: GitHub makes the anchor of a heading
// from its letters, digits, '-' and '_'.
func link(path string) string {
	anchor := strings.Map(func(r rune) rune {
		if strings.ContainsRune(".[]", r) {
			return -1
		}
		return r
	}, strings.ToLower(path))
	return fmt.Sprintf("[`%s`](#%s)", path, anchor)
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
