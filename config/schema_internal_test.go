package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/geoproxy/geoproxy/classify"
)

// schemaFile is what editors and CI read. It is generated from the structs.
const schemaFile = "schema.json"

func TestSchemaIsUpToDate(t *testing.T) {
	want := schema(t)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(schemaFile, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date (%v): run go generate ./config", schemaFile, err)
	}
}

// structural are the mistakes that a schema can see: those of one value by itself.
var structural = regexp.MustCompile(`unknown key|must be (text|true|a (list|mapping|number|whole number|duration))|needs a unit|is no unit|has no value|longest unit|must not be negative|is none of (auto|full|wait)`)

// unseen are the files with such a mistake that a schema cannot see.
var unseen = map[string]string{
	"octal-number":             "in JSON it is the number ten",
	"variable-of-another-kind": "what the variable holds is known later",
}

func TestSchemaAgreesWithTheReader(t *testing.T) {
	compiler := validator.NewCompiler()
	document, err := validator.UnmarshalJSON(bytes.NewReader(schema(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource(schemaFile, document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	validate := func(file string) (message string, err error) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		message, _, _ = strings.Cut(string(content), "\n")
		var tree any
		if err := yaml.Load(content, &tree); err != nil {
			return message, err
		}
		asJSON, err := json.Marshal(tree)
		if err != nil {
			return message, err
		}
		instance, err := validator.UnmarshalJSON(bytes.NewReader(asJSON))
		if err != nil {
			return message, err
		}
		return message, compiled.Validate(instance)
	}
	for _, pattern := range []string{"testdata/valid/*.yaml", "testdata/warning/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if _, err := validate(file); err != nil {
				t.Errorf("%s is valid, and the schema says %v", file, err)
			}
		}
	}
	files, _ := filepath.Glob("testdata/invalid/*.yaml")
	for _, file := range files {
		if unseen[strings.TrimSuffix(filepath.Base(file), ".yaml")] != "" {
			continue
		}
		if message, err := validate(file); err == nil && structural.MatchString(message) {
			t.Errorf("%s is invalid (%s), and the schema accepts it", file, message)
		}
	}
}

// choices are the values of keys that have only some.
var choices = map[string][]string{
	"proxy.UpstreamConfig.protocol": {"auto", "http1", "h2c"},
	"proxy.RouteConfig.headers":     {"auto", "always", "refusals"},
	"proxy.RouteConfig.disclose":    {"full", "coarse", "none"},
	"proxy.RouteConfig.redis_down":  {"local", "allow", "deny"},
	"proxy.RouteConfig.profile":     {"fitted", "guide"},
	"proxy.JobsConfig.when":         {"asked", "allowed", "never"},
	"proxy.ClassConfig.too_big":     {"wait", "refuse"},
	"ratelimit.Rate.unit":           {"request", "second", "feature", "vertex", "cell", "byte"},
	"shed.BodyConfig.body":          {"native", "empty"},
}

// schema generates the JSON Schema of [File].
func schema(t *testing.T) []byte {
	t.Helper()
	r := jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, RequiredFromJSONSchemaTags: true, FieldNameTag: "yaml",
		Namer: typeName, Mapper: scalarSchema,
	}
	for _, dir := range []string{".", "../proxy", "../classify", "../shed", "../ratelimit"} {
		if err := r.AddGoComments("github.com/geoproxy/geoproxy/config", dir, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	root := r.Reflect(&File{})
	root.Title = "The config file of geoproxy"
	refine(root, root, reflect.TypeFor[File](), map[reflect.Type]bool{})
	maps.Copy(root.Definitions, scalars)
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

// typeName names a type's definition; a type without a name gets none.
func typeName(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	return t.String()
}

// scalars are the kinds of values. Each may be made of variables.
var scalars = jsonschema.Definitions{
	"variable": {Type: "string", Pattern: `\$\{`, Description: "${VAR} or ${VAR:-default}"},
	"text":     {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}}},
	"switch":   orVariable(&jsonschema.Schema{Type: "boolean"}),
	"whole":    orVariable(&jsonschema.Schema{Type: "integer"}),
	"number":   orVariable(&jsonschema.Schema{Type: "number"}),
	"list": {AnyOf: []*jsonschema.Schema{
		{Ref: "#/$defs/text"}, {Type: "array", Items: &jsonschema.Schema{Ref: "#/$defs/text"}},
	}, Description: "One value, or a list of them"},
	"duration": orVariable(
		&jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`, Description: "500ms, 5s, 2m, 1h30m"},
		&jsonschema.Schema{Const: 0}),
	"size": orVariable(
		&jsonschema.Schema{Type: "string", Pattern: `^[0-9]+ *(B|KiB|MiB|GiB|TiB)$`, Description: "64KiB, 1GiB"},
		&jsonschema.Schema{Type: "integer", Minimum: "0"}),
}

func orVariable(kinds ...*jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: append(kinds, &jsonschema.Schema{Ref: "#/$defs/variable"})}
}

func scalarSchema(t reflect.Type) *jsonschema.Schema {
	if t == durationType {
		return &jsonschema.Schema{Ref: "#/$defs/duration"}
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String {
		return &jsonschema.Schema{Ref: "#/$defs/list"}
	}
	name, scalar := map[reflect.Kind]string{
		reflect.String: "text", reflect.Bool: "switch", reflect.Int: "whole", reflect.Int64: "size", reflect.Float64: "number",
	}[t.Kind()]
	if !scalar {
		return nil
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

// refine adds to the schema of a struct what its Go types do not say: short
// forms, choices, and the names of classes.
func refine(root, s *jsonschema.Schema, t reflect.Type, done map[reflect.Type]bool) {
	if done[t] {
		return
	}
	done[t] = true
	s.Description = byKeys(s.Description, t)
	for _, f := range fieldsOf(t, nil) {
		property, ok := s.Properties.Get(f.name)
		if !ok {
			continue
		}
		property.Description = byKeys(property.Description, t)
		ft := t.FieldByIndex(f.index).Type
		if list := choices[typeName(t)+"."+f.name]; list != nil {
			property.Ref = ""
			property.AnyOf = orVariable(&jsonschema.Schema{Enum: anys(list)}).AnyOf
		}
		if f.name == "classes" {
			var names []string
			for _, c := range classify.Classes() {
				names = append(names, c.String())
			}
			property.PropertyNames = &jsonschema.Schema{Enum: anys(names)}
		}
		element := ft
		for element.Kind() == reflect.Map || element.Kind() == reflect.Slice || element.Kind() == reflect.Pointer {
			element = element.Elem()
		}
		if element.Kind() != reflect.Struct {
			continue
		}
		refine(root, root.Definitions[typeName(element)], element, done)
		if reflect.PointerTo(element).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			short := property
			if ft.Kind() == reflect.Map {
				short = property.AdditionalProperties
			}
			short.AnyOf = []*jsonschema.Schema{{Ref: short.Ref}, {Type: "string"}}
			short.Ref = ""
		}
	}
}

// word is what may be the name of a field in a comment: one that begins it, or
// that stands within a sentence, where little else begins with a capital.
var word = regexp.MustCompile(`(^|[^.:] |/)([A-Z][A-Za-z]+)\b`)

// byKeys gives a Go comment on one line and with keys for the names of t's fields.
func byKeys(comment string, t reflect.Type) string {
	keys := map[string]string{}
	for _, f := range fieldsOf(t, nil) {
		keys[t.FieldByIndex(f.index).Name] = f.name
	}
	return word.ReplaceAllStringFunc(strings.Join(strings.Fields(comment), " "), func(found string) string {
		name := found[strings.LastIndexAny(found, " /")+1:]
		abbreviation := found != name && name == strings.ToUpper(name)
		if key, ok := keys[name]; ok && !abbreviation {
			return strings.TrimSuffix(found, name) + key
		}
		return found
	})
}

func anys(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// Every number of bytes says so by its tag: the reader and the schema take it
// for a size by that.
func TestEveryUnitIsKnown(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type, name string)
	walk = func(of reflect.Type, name string) {
		for of.Kind() == reflect.Map || of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		for _, f := range fieldsOf(of, nil) {
			ft := of.FieldByIndex(f.index).Type
			if (ft.Kind() == reflect.Int64 && ft != durationType) != (f.unit == "bytes") {
				t.Errorf("%s.%s: an int64 with unit %q", name, f.name, f.unit)
			}
			walk(ft, name+"."+f.name)
		}
	}
	walk(reflect.TypeFor[File](), "")
}
