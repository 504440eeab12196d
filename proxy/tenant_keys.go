package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// keyring is the keys file, compiled.
type keyring struct {
	byDigest map[[sha256.Size]byte]key
}

// key is one entry of the keys file.
type key struct {
	Tenant
	until int64 // Unix seconds at which it expires; 0 never
}

// readKeys reads the keys file, if there is one, and puts it in the place of
// the one before. A file with mistakes changes nothing.
func (t *tenants) readKeys() error {
	ring := &keyring{}
	if t.keysPath != "" {
		text, err := os.ReadFile(t.keysPath)
		if err != nil {
			return fmt.Errorf("tenant.keys: %w", err)
		}
		if ring, err = parseKeys(t.keysPath, text); err != nil {
			return err
		}
		for digest, k := range ring.byDigest {
			k.ID = t.id(kindKeyName, k.Name)
			ring.byDigest[digest] = k
		}
	}
	t.keys.Store(ring)
	return nil
}

// parseKeys reads a keys file: a YAML list of
//
//   - sha256: the SHA-256 of the key, 64 hexadecimal digits; required
//     name: whom it names; required; keys of the same name are one tenant
//     factor: multiplies the rates; above 0 to 1000, defaults to 1
//     class: the tenant's class, for the rates and rules that name one
//     expires: 2027-01-31 (through that day, UTC) or a time of RFC 3339
//     public: true where the key names an app and not a user
//     async: true where whoever holds the key follows a 202, asked or not
//
// It reports every mistake, each with its file, line and column.
func parseKeys(path string, text []byte) (*keyring, error) {
	p := keysParser{path: path, ring: &keyring{byDigest: make(map[[sha256.Size]byte]key)}, byName: make(map[string]key)}
	var document []yaml.Node
	if err := yaml.Load(text, &document, yaml.WithAllDocuments()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range document {
		p.list(&document[i])
	}
	return p.ring, errors.Join(p.errs...)
}

type keysParser struct {
	path   string
	ring   *keyring
	byName map[string]key
	errs   []error
}

func (p *keysParser) mistake(at *yaml.Node, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d:%d: %s", p.path, at.Line, at.Column, fmt.Sprintf(format, args...)))
}

func (p *keysParser) list(node *yaml.Node) {
	if node.Kind == yaml.DocumentNode {
		for _, inner := range node.Content {
			p.list(inner)
		}
		return
	}
	switch {
	case node.Kind == 0, node.ShortTag() == "!!null":
	case node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			p.entry(item)
		}
	default:
		p.mistake(node, "the keys file is a list of keys")
	}
}

func (p *keysParser) entry(node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		p.mistake(node, "a key is written as { sha256: ..., name: ... }")
		return
	}
	k := key{Tenant: Tenant{Factor: 1, Verified: true}}
	var digest [sha256.Size]byte
	before, seen := len(p.errs), make(map[string]bool)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if seen[name.Value] {
			p.mistake(name, "%s stands here already", name.Value)
			continue
		}
		seen[name.Value] = true
		if value.Kind != yaml.ScalarNode || value.Value == "" {
			p.mistake(value, "%s must be a plain value", name.Value)
			continue
		}
		p.field(&k, &digest, name, value)
	}
	for _, required := range []string{"sha256", "name"} {
		if !seen[required] {
			p.mistake(node, "a key needs its %s", required)
		}
	}
	if len(p.errs) > before {
		return
	}
	if other, ok := p.ring.byDigest[digest]; ok {
		p.mistake(node, "this key stands above already, for %s", other.Name)
		return
	}
	if other, ok := p.byName[k.Name]; ok && other.Tenant != k.Tenant {
		p.mistake(node, "%s stands above with another factor, class, public or async: keys of one name are one tenant", k.Name)
		return
	}
	p.byName[k.Name] = k
	p.ring.byDigest[digest] = k
}

func (p *keysParser) field(k *key, digest *[sha256.Size]byte, name, value *yaml.Node) {
	switch name.Value {
	case "sha256":
		sum, err := hex.DecodeString(value.Value)
		if err != nil || len(sum) != sha256.Size {
			p.mistake(value, "sha256 must be 64 hexadecimal digits: printf %%s \"$KEY\" | sha256sum")
			return
		}
		*digest = [sha256.Size]byte(sum)
		if *digest == sha256.Sum256(nil) {
			p.mistake(value, "sha256 is that of an empty key")
		}
	case "name":
		if k.Name = value.Value; len(k.Name) > 128 {
			p.mistake(value, "name must be at most 128 bytes")
		}
	case "class":
		if k.Class = value.Value; len(k.Class) > 64 {
			p.mistake(value, "class must be at most 64 bytes")
		}
	case "factor":
		factor, err := strconv.ParseFloat(value.Value, 64)
		if err != nil || math.IsNaN(factor) || factor <= 0 || factor > 1000 {
			p.mistake(value, "factor must be a number above 0, at most 1000")
			return
		}
		k.Factor = factor
	case "expires":
		until, err := parseExpiry(value.Value)
		if err != nil {
			p.mistake(value, "expires must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z")
			return
		}
		k.until = until.Unix()
	case "public":
		public, err := strconv.ParseBool(value.Value)
		if err != nil {
			p.mistake(value, "public must be true or false")
			return
		}
		k.Public = public
	case "async":
		async, err := strconv.ParseBool(value.Value)
		if err != nil {
			p.mistake(value, "async must be true or false")
			return
		}
		k.Async = async
	default:
		p.mistake(name, "%q is none of sha256, name, factor, class, expires, public, async", name.Value)
	}
}

// parseExpiry reads the time at which a key is no longer good: a date is good
// through its last second.
func parseExpiry(text string) (time.Time, error) {
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day.AddDate(0, 0, 1), nil
	}
	return time.Parse(time.RFC3339, text)
}
