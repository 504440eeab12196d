package proxy

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// keptRequest is a job's request as it is kept: sealed, so it may hold
// credentials.
type keptRequest struct {
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	Path    string      `json:"path"`
	RawPath string      `json:"raw_path,omitempty"`
	Query   string      `json:"query,omitempty"`
	Header  http.Header `json:"header"`
	Length  int64       `json:"length"` // of the body; -1 where it was not told
	HasBody bool        `json:"has_body,omitempty"`
	Remote  string      `json:"remote"`
	TLS     bool        `json:"tls,omitempty"`
	Trusted bool        `json:"trusted,omitempty"`
	Tenant  Tenant      `json:"tenant"`
}

// notKept are the header fields that a job does not send: those of one
// connection, and those that make sense only to whoever waits.
var notKept = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Range", "Cookie",
	"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range",
}

// keepRequest takes of a request what a job sends of it.
func keepRequest(r *http.Request, v *Verdict, trusted bool) keptRequest {
	h := r.Header.Clone()
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for _, name := range notKept {
		delete(h, name)
	}
	stripPrefer(h)
	return keptRequest{
		Method: r.Method, Host: r.Host, Path: r.URL.Path, RawPath: r.URL.RawPath, Query: r.URL.RawQuery,
		Header: h, Length: r.ContentLength, Remote: r.RemoteAddr, TLS: r.TLS != nil, Trusted: trusted, Tenant: v.Tenant,
	}
}

// stripPrefer takes off the preferences that were honoured here.
func stripPrefer(h http.Header) {
	var kept []string
	for _, line := range h["Prefer"] {
		for pref := range strings.SplitSeq(line, ",") {
			pref = strings.TrimSpace(pref)
			name, _, _ := strings.Cut(pref, "=")
			if pref != "" && !strings.EqualFold(name, "respond-async") && !strings.EqualFold(name, "wait") {
				kept = append(kept, pref)
			}
		}
	}
	if len(kept) == 0 {
		delete(h, "Prefer")
		return
	}
	h["Prefer"] = []string{strings.Join(kept, ", ")}
}

// request makes the request again, without its body.
func (k *keptRequest) request() *http.Request {
	r := &http.Request{
		Method: k.Method, Host: k.Host, Header: k.Header, RemoteAddr: k.Remote,
		URL: &url.URL{Path: k.Path, RawPath: k.RawPath, RawQuery: k.Query},
		// Nobody's connection has to be closed for a body that was not read.
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Body: http.NoBody,
	}
	if k.TLS {
		r.TLS = &tls.ConnectionState{}
	}
	if k.HasBody {
		r.ContentLength = k.Length
	}
	return r
}

// owner is who may see what the request submits: its verified tenant, or else
// whoever shows the same credentials. It is empty for those who show none, and
// for a key that names an app and not a user: the handle alone is their right.
func (q *jobQueue) owner(c *compiled, who *caller, tenant *Tenant) string {
	switch {
	case tenant.Public:
		return ""
	case tenant.Verified:
		return q.marks.Of("tenant", tenant.ID)
	}
	shown := c.tenants.credentials(who)
	if len(shown) == 0 {
		return ""
	}
	return q.marks.Of("credentials", shown...)
}

// credentials are all that a request shows of who sent it, each with where it
// was shown.
func (t *tenants) credentials(c *caller) []string {
	var shown []string
	if v := first(c.Header["Authorization"]); v != "" {
		shown = append(shown, "Authorization", v)
	}
	for i := range t.sources {
		s := &t.sources[i]
		if s.kind != sourceHeader && s.kind != sourceQuery || s.name == "Authorization" {
			continue
		}
		if v := s.key(c); v != "" {
			shown = append(shown, s.name, v)
		}
	}
	return shown
}

// tokenEnds is when the request's bearer token expires by its own word, the
// zero time where it has none. Nothing is verified: the upstream does that.
func tokenEnds(h http.Header) time.Time {
	parts := strings.Split(bearerToken(h), ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 || claims.Exp > 1e12 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}

// bodyBlob names the body of a job's request.
func bodyBlob(id jobs.ID) string { return string(id) + ".body" }
