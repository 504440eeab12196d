package proxy

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// checker looks for mistakes and for what is probably not meant. Paths are
// those of the file: "routes[0].rates[1].burst".
type checker struct {
	*Config
	mistake, warn func(path, message string)
	dangling      bool // a name refers to nothing, so what it was meant for is not known
}

// Check reports everything in c that is wrong, and warns of what works and is
// probably not meant. It reads no file and asks nobody.
func (c *Config) Check(mistake, warn func(path, message string)) {
	k := checker{Config: c, mistake: mistake, warn: warn}
	k.entry()
	k.public()
	k.tenant()
	for _, name := range slices.Sorted(maps.Keys(c.Gates)) {
		k.name("gates."+name, "a gate", name)
		gate := c.Gates[name]
		gate.Check(under(mistake, "gates."+name))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Upstreams)) {
		k.name("upstreams."+name, "an upstream", name)
		k.upstream("upstreams."+name, c.Upstreams[name])
	}
	k.routes()
	k.unused()
	k.bounds()
}

// entry checks that there is something to forward to, said in one way.
func (k *checker) entry() {
	switch {
	case k.Upstream == "" && len(k.Routes) == 0:
		k.mistake("", "needs upstream, a URL, or routes")
	case k.Upstream != "" && len(k.Routes) > 0:
		k.mistake("upstream", "is short for one route: write it or routes, not both")
	case k.Upstream != "":
		k.upstreamURL("upstream", k.Upstream)
	}
}

// public checks what links begin with.
func (k *checker) public() {
	if k.Public.URL == "" {
		return
	}
	u, err := url.Parse(k.Public.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || strings.HasSuffix(k.Public.URL, "/") {
		k.mistake("public.url", "must be an http or https URL without a slash, a query or a fragment at its end")
	}
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// name checks what becomes a metric label, a part of a key and of a header.
func (k *checker) name(path, what, name string) {
	if !nameForm.MatchString(name) {
		k.mistake(path, "the name of "+what+" has 1 to 64 letters, digits, '.', '_' or '-', and begins with a letter or digit")
	}
}

func (k *checker) oneOf(path, value string, choices ...string) {
	if value != "" && !slices.Contains(choices, value) {
		k.mistake(path, fmt.Sprintf("%q is none of %s", value, strings.Join(choices, ", ")))
	}
}

func (k *checker) tenant() {
	t := &k.Tenant
	seen := make(map[source]bool, len(t.From))
	for i, written := range t.From {
		at := fmt.Sprintf("tenant.from[%d]", i)
		from, err := parseSource(written)
		switch {
		case err != nil:
			k.mistake(at, err.Error())
		case seen[from]:
			k.mistake(at, fmt.Sprintf("%q stands in the list already", written))
		case from.kind == sourceAddress && i+1 < len(t.From):
			k.warn(at, "everybody has an address: what follows it is looked at only where it verifies")
		}
		seen[from] = true
	}
	for i, written := range t.TrustedProxies {
		at := fmt.Sprintf("tenant.trusted_proxies[%d]", i)
		network, err := parseNetwork(written)
		switch {
		case err != nil:
			k.mistake(at, err.Error())
		case network.Bits() == 0:
			k.warn(at, "believes everybody's X-Forwarded-For: a client can then pass for any address")
		}
		if prefix, err := netip.ParsePrefix(written); err == nil && prefix.Bits() > 0 && prefix != prefix.Masked() {
			k.warn(at, fmt.Sprintf("has bits beyond its length: it means %s", prefix.Masked()))
		}
	}
	if t.JWKS != "" {
		switch u, err := url.Parse(t.JWKS); {
		case err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
			k.mistake("tenant.jwks", "must be an http or https URL")
		case u.Scheme == "http" && !isLoopback(u.Hostname()):
			k.warn("tenant.jwks", "is fetched without TLS: whoever is on the way can make keys")
		}
	}
	if t.Trust && len(t.TrustedProxies) == 0 {
		k.warn("tenant.trust", "without trusted_proxies, whoever reaches the listener names himself and is believed")
	}
	if t.Max < 0 || t.Max > 10_000_000 {
		k.mistake("tenant.max", "must be 1 to 10000000")
	}
	if k.Secret != "" && len(k.Secret) < 16 {
		k.mistake("secret", "must be at least 16 bytes")
	}
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

func (k *checker) upstream(path string, u UpstreamConfig) {
	target := k.upstreamURL(path+".url", u.URL)
	k.gate(path+".gate", u.Gate)
	k.oneOf(path+".protocol", u.Protocol, "auto", "http1", "h2c")
	if target == nil {
		return
	}
	secure := target.Scheme == "https"
	if secure && u.Protocol == "h2c" {
		k.mistake(path+".protocol", "h2c is HTTP/2 without TLS, and the URL is https")
	}
	if !secure && u.TLS != (UpstreamTLS{}) {
		k.mistake(path+".tls", "the URL is not https")
	}
	if (u.TLS.Cert == "") != (u.TLS.Key == "") {
		k.mistake(path+".tls", "cert and key go together")
	}
	if u.TLS.Insecure {
		if u.TLS.CA != "" {
			k.mistake(path+".tls.insecure", "nothing is verified, so ca is of no use: write one of them")
		}
		k.warn(path+".tls.insecure", "the upstream's certificate is not verified: whoever is on the way can read and answer")
	}
}

// upstreamURL checks the URL of a backend and gives it, or nil.
func (k *checker) upstreamURL(path, raw string) *url.URL {
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		k.mistake(path, "is required")
		return nil
	case !strings.Contains(raw, ":/"):
		k.mistake(path, "must begin with http://, https:// or unix:///")
		return nil
	case err != nil:
		// The error would quote the URL, and with it a password.
		k.mistake(path, "is no URL")
		return nil
	case u.Scheme == "unix":
		if u.Host != "" || u.Path == "" || u.Path == "/" || u.RawQuery != "" {
			k.mistake(path, "must be unix:///path/of/socket, with three slashes and nothing after the socket")
		}
	case u.Scheme != "http" && u.Scheme != "https":
		k.mistake(path, "must begin with http://, https:// or unix:///")
		return nil
	case u.Hostname() == "":
		k.mistake(path, "names no host")
	}
	if u.User != nil {
		k.mistake(path, "must not hold credentials: they would not be sent")
	}
	if u.Fragment != "" {
		k.mistake(path, "must be without a fragment: it would not be sent")
	}
	return u
}

// gate checks a reference to a gate, or the gate that stands there itself.
func (k *checker) gate(path string, g GateRef) {
	switch _, known := k.Gates[g.Name]; {
	case g.Name != "" && !known:
		k.unknown(path, "gate", g.Name, slices.Sorted(maps.Keys(k.Gates)))
	case g.Name == "" && !reflect.ValueOf(g.GateConfig).IsZero():
		g.Check(under(k.mistake, path))
	}
}

// unknown says that nothing of a kind has this name, and what the names are.
func (k *checker) unknown(path, kind, name string, known []string) {
	k.dangling = true
	if len(known) == 0 {
		k.mistake(path, fmt.Sprintf("no %s is named %q: there are none in %ss", kind, name, kind))
		return
	}
	k.mistake(path, fmt.Sprintf("no %s is named %q: there are %s", kind, name, strings.Join(known, ", ")))
}

// unused warns of what is configured and never comes into play.
func (k *checker) unused() {
	if k.dangling {
		return // what seems unused may be what was meant
	}
	gates, upstreams := make(map[string]bool), make(map[string]bool)
	for _, r := range k.Routes {
		gates[r.Gate.Name], upstreams[r.Upstream] = true, true
	}
	for _, u := range k.Upstreams {
		gates[u.Gate.Name] = true
	}
	for name := range k.Gates {
		if !gates[name] {
			k.warn("gates."+name, "nothing refers to this gate")
		}
	}
	for name := range k.Upstreams {
		if !upstreams[name] {
			k.warn("upstreams."+name, "no route refers to this upstream")
		}
	}
}

// bounds checks what is true of all routes.
func (k *checker) bounds() {
	k.Classify.Check(under(k.mistake, "classify"))
	const mib = 1 << 20
	for _, b := range []struct {
		path            string
		value, min, max int64
	}{
		{"stream.min_rate", k.Stream.MinRate, 1, 1 << 40},
		{"stream.response_buffer", k.Stream.Buffer, 1 << 10, 1 << 30},
		{"stream.response_buffer_total", k.Stream.BufferTotal, 1 << 10, 1 << 40},
		{"limits.header", k.Limits.Header, 1 << 10, 16 * mib},
	} {
		if b.value != 0 && (b.value < b.min || b.value > b.max) {
			k.mistake(b.path, fmt.Sprintf("must be %d to %d bytes", b.min, b.max))
		}
	}
	if k.Stream.Buffer > 0 && k.Stream.BufferTotal > 0 && k.Stream.Buffer > k.Stream.BufferTotal {
		k.mistake("stream.response_buffer", "is larger than response_buffer_total, the bound of all together")
	}
	if k.Stream.Max > 0 && k.Stream.Max < k.Stream.Idle {
		k.warn("stream.idle", "is never reached: stream.max ends the exchange before")
	}
}

// under reports to report with paths below prefix.
func under(report func(path, message string), prefix string) func(path, message string) {
	return func(path, message string) {
		if path != "" && !strings.HasPrefix(path, "[") {
			path = "." + path
		}
		report(prefix+path, message)
	}
}
