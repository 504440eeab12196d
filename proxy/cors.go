package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/geoproxy/geoproxy/classify"
)

const (
	headerAllowOrigin      = "Access-Control-Allow-Origin"
	headerAllowCredentials = "Access-Control-Allow-Credentials"
	headerExpose           = "Access-Control-Expose-Headers"

	// maxOrigins is how many origins a route remembers, and maxOrigin how long
	// one of them may be: a host name has at most 253 bytes.
	maxOrigins = 1024
	maxOrigin  = 280
)

// exposed are the headers that a page from another origin must be able to
// read, beside those that browsers always show.
var exposed = []string{
	"Location", "Retry-After", "RateLimit", "RateLimit-Policy", "Link", "Preference-Applied",
	"Geoproxy-Reason", "Geoproxy-Estimate", "Geoproxy-Shadow", "Geoproxy-Clamped", "Server-Timing",
}

var exposedText = strings.Join(exposed, ", ")

// cors gives the answers that geoproxy makes itself the CORS headers without
// which a page from another origin sees neither their status nor their body.
//
// In mirror mode they are those that the upstream sends to that origin on that
// route. Before anything was learned of an origin, which is so when the very
// first request is refused, anybody may read the answer, but not with
// credentials: a refusal holds nothing but what the caller sent, the policy's
// numbers, and the caller's own remaining quota where it came without
// credentials. An origin that the upstream answered without allowing it gets
// nothing.
type cors struct {
	mode    corsMode
	listed  []string
	learned table[string, grant]
}

type corsMode uint8

const (
	corsMirror corsMode = iota
	corsOff
	corsListed
)

// grant is what the upstream allows an origin.
type grant struct {
	allow       string // Access-Control-Allow-Origin; empty where it is not allowed
	credentials bool
}

// newCORS compiles a route's setting: mirror (also where there is none), off,
// or the origins to allow, "*" for all.
func newCORS(allow []string) (*cors, error) {
	c := &cors{}
	c.learned.init(maxOrigins)
	switch {
	case len(allow) == 0, len(allow) == 1 && allow[0] == "mirror":
		return c, nil
	case len(allow) == 1 && allow[0] == "off":
		c.mode = corsOff
		return c, nil
	}
	c.mode = corsListed
	var errs []error
	for _, origin := range allow {
		if origin == "*" {
			c.listed = append(c.listed, origin)
			continue
		}
		// An origin as browsers send it: RFC 6454, section 6.2.
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || origin != u.Scheme+"://"+strings.ToLower(u.Host) {
			errs = append(errs, fmt.Errorf("cors: %q is no origin: write https://maps.example.org, in lower case and without a path", origin))
			continue
		}
		c.listed = append(c.listed, origin)
	}
	return c, errors.Join(errs...)
}

// learn takes note of what the upstream allows an origin. An answer without
// the headers tells of an origin only as long as no other has told more: error
// pages often lack them.
func (c *cors) learn(origin string, answer http.Header) {
	if c.mode != corsMirror || origin == "" || len(origin) > maxOrigin {
		return
	}
	var g grant
	switch allow := first(answer[headerAllowOrigin]); allow {
	case "*":
		g.allow = allow
	case origin:
		g = grant{allow: origin, credentials: first(answer[headerAllowCredentials]) == "true"}
	}
	last, known := c.learned.get(origin)
	switch {
	case known && (last == g || g.allow == ""):
	case !known && g.allow == "*": // as for whom nothing is known of
	default:
		c.learned.put(strings.Clone(origin), g)
	}
}

// expose adds the headers that pages must be able to read to a passed answer
// which already allows the origin.
func (c *cors) expose(origin string, answer http.Header) {
	if c.mode == corsOff {
		return
	}
	if allow := first(answer[headerAllowOrigin]); allow != "*" && (allow == "" || allow != origin) {
		return
	}
	there := answer[headerExpose]
	if len(there) == 0 {
		answer[headerExpose] = []string{exposedText}
		return
	}
	text := strings.Join(there, ", ")
	names := strings.Split(text, ",")
	has := func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), name) })
	}
	// "*" means all of them, but with credentials only a header of that name
	// (Fetch, 3.3.3).
	if has("*") && first(answer[headerAllowCredentials]) != "true" {
		return
	}
	for _, name := range exposed {
		if !has(name) {
			text += ", " + name
		}
	}
	answer[headerExpose] = []string{text}
}

// apply gives geoproxy's own answer the headers with which a page from the
// origin may read it.
func (c *cors) apply(origin string, own http.Header) {
	if c.mode == corsOff || origin == "" {
		return
	}
	own["Vary"] = append(own["Vary"], "Origin")
	g := c.granted(origin)
	if g.allow == "" {
		return
	}
	own[headerAllowOrigin] = []string{g.allow}
	if g.credentials {
		own[headerAllowCredentials] = []string{"true"}
	}
	own[headerExpose] = []string{exposedText}
}

// granted is what an origin is allowed of our own answers. A listed one may
// read them with credentials too.
func (c *cors) granted(origin string) grant {
	switch c.mode {
	case corsOff:
		return grant{}
	case corsListed:
		switch {
		case slices.Contains(c.listed, origin):
			return grant{allow: origin, credentials: true}
		case slices.Contains(c.listed, "*"):
			return grant{allow: "*"}
		}
		return grant{}
	case corsMirror:
	}
	if g, known := c.learned.get(origin); known {
		return g
	}
	return grant{allow: "*"}
}

// isPreflight reports whether a request is a CORS preflight (Fetch, 3.2.2): a
// question of the browser's, which carries no credentials and of which the
// page sees nothing. It has no body and asks for no other method: what does is
// some request in the guise of one.
func isPreflight(r *classify.Request) bool {
	return r.Method == http.MethodOptions && len(r.Header["Origin"]) > 0 && len(r.Header["Access-Control-Request-Method"]) > 0 &&
		r.Body.Length == 0 && classify.MethodOverride(r.Header) == ""
}
