package proxy

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// redacted stands where something was taken out.
const redacted = "REDACTED"

// redactor takes out of URLs and headers, before they are printed or stored,
// what nobody should read there: keys, tokens, signatures and passwords, and,
// unless asked to show it, what people typed into a geocoder or a router.
//
// It takes out too much rather than too little. A name counts however it is
// written (case, dashes, escapes over escapes), a parameter counts in every
// reading that a server may make of it, and a value that holds another URL or
// a document with a secret in it goes as a whole.
type redactor struct {
	names map[string]bool // of parameters and headers that carry keys, plain
	typed bool            // show what people typed
}

// newRedactor adds the names of tenant.from to those that everybody uses for
// keys. showTyped leaves in what people typed.
func newRedactor(cfg TenantConfig, showTyped bool) *redactor {
	r := &redactor{names: make(map[string]bool), typed: showTyped}
	for _, text := range cfg.From {
		if s, err := parseSource(text); err == nil && (s.kind == sourceHeader || s.kind == sourceQuery) {
			r.names[plainName(s.name)] = true
		}
	}
	return r
}

var usualRedactor = newRedactor(TenantConfig{}, false)

// redactURL redacts a URL, or a path with its query, under the usual names.
func redactURL(raw string) string { return usualRedactor.url(raw) }

// redactError gives an error's text with its URLs redacted.
func redactError(err error) string {
	if err == nil {
		return ""
	}
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		return strings.ReplaceAll(err.Error(), withURL.URL, redactURL(withURL.URL))
	}
	return err.Error()
}

// url redacts a URL of any scheme, or a path with its query. It does not have
// to be well formed.
func (r *redactor) url(raw string) string {
	rest, fragment, hasFragment := strings.Cut(raw, "#")
	rest, query, hasQuery := strings.Cut(rest, "?")
	var b strings.Builder
	b.Grow(len(raw))
	b.WriteString(r.authorityAndPath(rest))
	if hasQuery {
		b.WriteByte('?')
		b.WriteString(r.query(query))
	}
	if hasFragment { // OAuth puts tokens there
		b.WriteByte('#')
		b.WriteString(r.query(fragment))
	}
	return b.String()
}

// header redacts a header's value.
func (r *redactor) header(name, value string) string {
	switch {
	case r.isSecretName(name) || secretHeaders[plainName(name)]:
		return redacted
	case strings.Contains(value, "://") || strings.HasPrefix(value, "/"):
		return r.url(value)
	case r.holdsSecret(value):
		return redacted
	}
	return value
}

// headers is a copy of a header with its values redacted.
func (r *redactor) headers(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		for _, value := range values {
			out[name] = append(out[name], r.header(name, value))
		}
	}
	return out
}

// authorityAndPath redacts what stands before the query.
func (r *redactor) authorityAndPath(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsAny(scheme, "/@") {
		if after, relative := strings.CutPrefix(text, "//"); relative {
			return "//" + r.authority("https", after)
		}
		return r.path(text)
	}
	return scheme + "://" + r.authority(scheme, rest)
}

// authority redacts user and password. In web addresses they end before the
// first slash; the passwords of other schemes (redis, postgres) may hold one.
func (r *redactor) authority(scheme, text string) string {
	end := strings.IndexByte(text, '/')
	if end < 0 || !strings.HasPrefix(strings.ToLower(scheme), "http") {
		end = len(text)
	}
	if at := strings.LastIndexByte(text[:end], '@'); at >= 0 {
		host, path, hasPath := strings.Cut(text[at+1:], "/")
		if hasPath {
			path = r.path("/" + path)
		}
		return redacted + "@" + host + path
	}
	host, path, hasPath := strings.Cut(text, "/")
	if hasPath {
		path = r.path("/" + path)
	}
	return host + path
}

// path redacts segments that hold a secret, coordinates, or what a geocoder is
// asked for.
func (r *redactor) path(path string) string {
	segments := strings.Split(path, "/")
	geocoder := false
	for i, segment := range segments {
		text, whole := decoded(segment)
		lower := strings.ToLower(text)
		switch {
		case !whole || r.holdsSecret(segment) || userinfo(text):
			segments[i] = redacted
		case r.typed:
		case isCoordinates(lower), geocoder && i == len(segments)-1 && !geocoderWords[lower]:
			segments[i] = redacted
		case strings.HasPrefix(lower, "geocod"), strings.HasPrefix(lower, "mapbox.places"):
			geocoder = true
		}
	}
	return strings.Join(segments, "/")
}

// query redacts a query, or a fragment in the form of one.
func (r *redactor) query(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		pairs[i] = r.pair(pair)
	}
	return strings.Join(pairs, "&")
}

// pair redacts one parameter. Some servers take a ';' for a separator and some
// for a part of the value, so from the first piece that holds a secret all goes.
func (r *redactor) pair(pair string) string {
	for start := 0; start <= len(pair); {
		end := strings.IndexByte(pair[start:], ';')
		if end < 0 {
			end = len(pair)
		} else {
			end += start
		}
		name, _, hasValue := strings.Cut(pair[start:end], "=")
		secret := r.isSecretName(name) || !r.typed && isTyped(plainName(name))
		switch {
		case hasValue && secret && !r.holdsSecret(name):
			return pair[:start] + name + "=" + redacted
		case r.holdsSecret(pair[start:end]):
			if !hasValue || r.holdsSecret(name) {
				return pair[:start] + redacted
			}
			return pair[:start] + name + "=" + redacted
		}
		start = end + 1
	}
	return pair
}

// holdsSecret reports whether a text, under any number of escapes, has a
// secret's name before an '=' or a ':', or the user and password of a URL.
func (r *redactor) holdsSecret(text string) bool {
	for range maxEscapes {
		if r.namesSecret(text) || strings.Contains(text, "://") && userinfo(text) {
			return true
		}
		plain := unescapedOnce(text)
		if plain == text {
			return false
		}
		text = plain
	}
	return true
}

// namesSecret looks for a secret's name before each '=' and ':' of a text:
// that of a parameter within a parameter, or of a member of a JSON document.
func (r *redactor) namesSecret(text string) bool {
	for i := range len(text) {
		if text[i] != '=' && text[i] != ':' {
			continue
		}
		name := strings.TrimRight(text[:i], " \t\r\n\"'\\")
		begin := len(name)
		for begin > 0 && isNameByte(name[begin-1]) {
			begin--
		}
		if r.isSecretName(name[begin:]) {
			return true
		}
	}
	return false
}

// isSecretName reports whether a name is one of a secret, or of a list of them
// in the manner of PHP: key[0].
func (r *redactor) isSecretName(name string) bool {
	name, _ = decoded(name)
	plain := plainName(name)
	if r.names[plain] || isSecret(plain) {
		return true
	}
	list, _, ok := strings.Cut(name, "[")
	return ok && r.isSecretName(list)
}

func isNameByte(c byte) bool {
	return c == '-' || c == '[' || c == ']' || c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// userinfo reports whether a text has a user and password before an '@'.
func userinfo(text string) bool {
	if _, after, ok := strings.Cut(text, "://"); ok {
		text = after
	}
	before, _, ok := strings.Cut(text, "@")
	return ok && strings.Contains(before, ":")
}

// maxEscapes is how many escapes over escapes are undone. What has more is
// taken for a secret.
const maxEscapes = 6

// decoded undoes all escapes of a text, and reports false where it has too
// many over each other.
func decoded(text string) (string, bool) {
	for range maxEscapes {
		plain := unescapedOnce(text)
		if plain == text {
			return text, true
		}
		text = plain
	}
	return text, false
}

// unescapedOnce undoes every escape of URLs and, for ASCII, of JSON that is
// whole, and leaves the others.
func unescapedOnce(text string) string {
	if !strings.ContainsAny(text, `%+\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '+':
			b.WriteByte(' ')
		case text[i] == '%' && i+2 < len(text) && unhex(text[i+1]) < 16 && unhex(text[i+2]) < 16:
			b.WriteByte(unhex(text[i+1])<<4 | unhex(text[i+2]))
			i += 2
		case strings.HasPrefix(text[i:], `\u00`) && i+5 < len(text) && unhex(text[i+4]) < 8 && unhex(text[i+5]) < 16:
			b.WriteByte(unhex(text[i+4])<<4 | unhex(text[i+5]))
			i += 5
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// unhex is the value of a hexadecimal digit, or 16.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}
