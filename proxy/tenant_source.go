package proxy

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// sourceKind is where a tenant is named.
type sourceKind uint8

const (
	sourceHeader sourceKind = iota
	sourceQuery
	sourceJWT
	sourceMTLS
	sourceAddress
)

// source is one entry of tenant.from.
type source struct {
	kind sourceKind
	name string // of the header (canonical), parameter or claim
}

func parseSource(text string) (source, error) {
	kind, name, named := strings.Cut(text, ":")
	switch kind {
	case "header":
		if !httpguts.ValidHeaderFieldName(name) {
			return source{}, fmt.Errorf("%q names no header: write header:X-Api-Key", text)
		}
		return source{kind: sourceHeader, name: http.CanonicalHeaderKey(name)}, nil
	case "query":
		if name == "" {
			return source{}, fmt.Errorf("%q names no parameter: write query:apikey", text)
		}
		return source{kind: sourceQuery, name: name}, nil
	case "jwt":
		if name == "" {
			return source{}, fmt.Errorf("%q names no claim: write jwt:sub", text)
		}
		return source{kind: sourceJWT, name: name}, nil
	case "mtls":
		if !named {
			return source{kind: sourceMTLS}, nil
		}
	case "address":
		if !named {
			return source{kind: sourceAddress}, nil
		}
	}
	return source{}, fmt.Errorf("%q is none of header:NAME, query:NAME, jwt:CLAIM, mtls, address", text)
}

// key gives the key that a header or parameter carries, or "".
func (s *source) key(c *caller) string {
	if s.kind == sourceQuery {
		return queryValue(c.Query, s.name)
	}
	if s.name == "Authorization" {
		if token := bearerToken(c.Header); token != "" {
			return token
		}
	}
	return strings.TrimSpace(first(c.Header[s.name]))
}

// queryValue gives the first value of a parameter, or "". The name is compared
// without regard to case, as OGC services do. Only '&' separates: a ';' may be
// part of a value, and whoever hides his key behind one is merely not known by it.
func queryValue(query, name string) string {
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		key, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(unescaped(key), name) {
			continue
		}
		if value != "" {
			return unescaped(value)
		}
	}
	return ""
}

// unescaped undoes the escapes of a query component, where they are whole.
func unescaped(text string) string {
	if !strings.ContainsAny(text, "%+") {
		return text
	}
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}
