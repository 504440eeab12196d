package proxy

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/geoproxy/geoproxy/shed"
)

// ownPrefix begins the paths that geoproxy answers itself, under every
// route's path as well as at the root.
const ownPrefix = "/geoproxy/"

// own answers a request for one of geoproxy's own resources, and reports
// whether it did. They draw no tokens and take no seats.
func (p *Proxy) own(w http.ResponseWriter, r *http.Request, ask *Ask) bool {
	if !strings.Contains(ask.Path, ownPrefix) {
		return false
	}
	c := p.admission.state.Load()
	name, ok := c.ownName(ask)
	if !ok {
		return false
	}
	leaveBody(w, r)
	if rest, ok := strings.CutPrefix(name, "jobs"); ok && p.jobs != nil && (rest == "" || rest[0] == '/') {
		base := c.config.Public.URL + strings.TrimSuffix(ask.Path, rest)
		p.jobs.serve(w, r, c, ask, base, strings.Trim(rest, "/"))
		return true
	}
	v := &Verdict{Mode: ModeInline, config: c}
	if name != "explain" {
		v.refuse(shed.NoRoute, 0, "geoproxy has no such resource")
		p.refuse(w, r, v, v.Refusal)
		return true
	}
	who := caller{Header: ask.Header, Query: ask.Query, Peer: ask.Peer, TLS: ask.TLS}
	if v.Tenant = c.tenants.identify(&who); !v.Tenant.Verified {
		v.refuse(shed.NoRoute, 0, "geoproxy has no such resource for callers it cannot verify")
		p.refuse(w, r, v, v.Refusal)
		return true
	}
	p.explain(w, r)
	return true
}

// ownName gives the name of one of geoproxy's own resources where the path is
// one: at the root, or right under the path of the route that it belongs to.
func (c *compiled) ownName(ask *Ask) (string, bool) {
	if name, ok := strings.CutPrefix(ask.Path, ownPrefix); ok {
		return name, true
	}
	r, err := c.routes.find(ask.Host, ask.Path)
	if err != nil || r == nil {
		return "", false
	}
	return strings.CutPrefix(ask.Path, strings.TrimSuffix(r.config.Match.Path, "/")+ownPrefix)
}

// explain answers GET .../geoproxy/explain?url=...: what would happen to that
// request, and why. It runs nothing.
func (p *Proxy) explain(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	target, err := url.Parse(r.URL.Query().Get("url"))
	if err != nil || target.Path == "" {
		http.Error(w, "explain wants url=, the URL of a request", http.StatusBadRequest)
		return
	}
	ask := Ask{Peer: peerOf(r), TLS: r.TLS}
	ask.Method, ask.Host, ask.Path, ask.Query, ask.Header = http.MethodGet, target.Host, target.EscapedPath(), target.RawQuery, r.Header
	if method := r.URL.Query().Get("method"); method != "" {
		ask.Method = strings.ToUpper(method)
	}
	if ask.Host == "" {
		ask.Host = r.Host
	}
	h.Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p.admission.Explain(&ask)); err != nil {
		p.log.DebugContext(r.Context(), "explain: the caller left", "error", err)
	}
}
