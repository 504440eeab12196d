package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base32"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// Tenant is whom a request counts against.
type Tenant struct {
	// ID is an HMAC of what named the tenant: what appears in Redis, logs and
	// metrics.
	ID string
	// Address is an HMAC of the client's address (an IPv6 client's /64). It is
	// the ID too of a tenant that nothing but its address names.
	Address string
	// Name and Class are those of the keys file; empty for everybody else.
	Name, Class string
	// Factor multiplies the rates of a tenant; 1 where nothing says otherwise.
	Factor float64
	// Verified says that the name was checked. A claimed tenant also counts
	// against its address.
	Verified bool
	// Public says that what was checked names an app and not a user: it also
	// counts against its address.
	Public bool
	// Async says that the tenant's software follows a 202, asked or not.
	Async bool
}

// countsAddress reports whether what the tenant draws and queues for counts
// against its address as well as against itself.
func (t *Tenant) countsAddress() bool {
	return (!t.Verified || t.Public) && t.ID != t.Address
}

// caller is what a front end knows of who sent a request.
type caller struct {
	Header http.Header
	Query  string               // raw, without the '?'
	Peer   netip.Addr           // the other end of the connection; invalid where it has no address
	TLS    *tls.ConnectionState // nil without TLS
}

// tenants names the tenant of each request. It never asks the network to do
// so: keys are in memory, and a JWKS is fetched in the background.
//
// Whatever callers invent, memory is bounded: what was worked out is kept in
// tables of at most tenant.max entries each. Verified names have a table of
// their own, which only holders of valid credentials can fill, so a flood of
// invented ones costs nobody else a second signature check. A credential that
// is sent again costs a look-up; a new one costs an HMAC and, where it is a
// token that names a key of the JWKS, one signature check.
type tenants struct {
	sources []source
	trust   bool
	trusted []netip.Prefix // whose X-Forwarded-For counts
	secret  []byte

	keysPath string
	keys     atomic.Pointer[keyring]
	jwks     *jwks // nil without

	addresses table[[16]byte, string]
	verified  table[credential, named]
	claimed   table[credential, named]
}

// credential is what a source gave, by its digest: tables hold no secrets.
type credential struct {
	digest  [sha256.Size]byte
	source  int
	checked bool // whoever sent it has checked it, or for a certificate the handshake
}

// named is what a credential was found to name.
type named struct {
	Tenant
	until int64         // Unix seconds from which it has to be looked at again
	by    *verification // the key set that said so; nil where none was asked
}

// The kinds of names. Each has HMACs of its own, so that a name of one kind
// never gives the ID of another: least of all a claim that of a verified name.
const (
	kindKey        = "key"
	kindKeyName    = "key name" // of the keys file: its keys may change, the tenant stays
	kindJWT        = "jwt"
	kindJWTClaim   = "jwt claimed"
	kindMTLS       = "mtls"
	kindMTLSClaim  = "mtls claimed"
	kindAddress    = "address"
	defaultTenants = 100_000
)

// newTenants compiles the config. The secret keys the HMACs. Nothing waits for
// the JWKS: until it has been fetched, tokens are claimed. The caller closes
// the result.
func newTenants(cfg TenantConfig, secret []byte, log *slog.Logger) (*tenants, error) {
	t := &tenants{trust: cfg.Trust, secret: secret, keysPath: cfg.Keys}
	var errs []error
	if len(secret) == 0 {
		errs = append(errs, errors.New("tenants need a secret"))
	}
	if len(cfg.From) == 0 {
		cfg.From = []string{"header:X-Api-Key", "jwt:sub", "address"}
	}
	for i, text := range cfg.From {
		s, err := parseSource(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("tenant.from[%d]: %w", i, err))
			continue
		}
		t.sources = append(t.sources, s)
	}
	for i, text := range cfg.TrustedProxies {
		network, err := parseNetwork(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("tenant.trusted_proxies[%d]: %w", i, err))
			continue
		}
		t.trusted = append(t.trusted, network)
	}
	most := cfg.MaxOrDefault()
	t.addresses.init(most)
	t.verified.init(most)
	t.claimed.init(most)
	if err := t.readKeys(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.JWKS != "" {
		t.jwks = newJWKS(cfg.JWKS, log)
	}
	return t, nil
}

// reload reads the keys file again, and asks for the JWKS to be fetched again
// soon. A file with mistakes leaves the keys as they are.
func (t *tenants) reload() error {
	if t.jwks != nil {
		t.jwks.refresh()
	}
	return t.readKeys()
}

// close ends what runs in the background.
func (t *tenants) close() {
	if t.jwks != nil {
		t.jwks.close()
	}
}

// identify names the tenant: by the first source that verifies, else by the
// first that is present, claimed. A check that fails refuses nobody; that is
// the upstream's to decide. It is safe for concurrent use.
func (t *tenants) identify(c *caller) Tenant {
	now := time.Now().Unix()
	address := t.addressID(t.clientAddr(c))
	tenant := Tenant{ID: address, Factor: 1}
	claimed, trusted := false, t.trusts(c)
	for i := range t.sources {
		if t.sources[i].kind == sourceAddress {
			claimed = true // what follows counts only where it verifies
			continue
		}
		found, ok := t.ask(i, c, trusted, now)
		if !ok {
			continue
		}
		if found.Verified {
			tenant = found
			break
		}
		if !claimed {
			tenant, claimed = found, true
		}
	}
	tenant.Address = address
	return tenant
}

// trusts reports whether what the request claims was checked by whoever sent
// it: with trust, one of the trusted proxies, or where none are listed anybody.
func (t *tenants) trusts(c *caller) bool {
	return t.trust && (len(t.trusted) == 0 || t.isTrusted(c.Peer.Unmap().WithZone("")))
}

// ask has a source name the tenant, and reports whether it is present.
func (t *tenants) ask(i int, c *caller, trusted bool, now int64) (Tenant, bool) {
	switch s := &t.sources[i]; s.kind {
	case sourceHeader, sourceQuery:
		if value := s.key(c); value != "" {
			return t.byKey(credential{source: i, checked: trusted}, value, now), true
		}
	case sourceJWT:
		if token := bearerToken(c.Header); token != "" {
			return t.byToken(credential{source: i, checked: trusted}, token, now)
		}
	case sourceMTLS:
		if c.TLS != nil && len(c.TLS.PeerCertificates) > 0 {
			return t.byCertificate(credential{source: i}, c.TLS, now)
		}
	case sourceAddress:
	}
	return Tenant{}, false
}

// byKey names the tenant of a key: as the keys file does, or else by itself.
func (t *tenants) byKey(cred credential, key string, now int64) Tenant {
	cred.digest = digestOf(key)
	if k, ok := t.keys.Load().byDigest[cred.digest]; ok && (k.until == 0 || now < k.until) {
		return k.Tenant
	}
	if n, ok := t.known(cred, now, nil); ok {
		return n.Tenant
	}
	return t.remember(cred, named{
		Tenant: Tenant{ID: t.id(kindKey, key), Factor: 1, Verified: cred.checked},
		until:  never,
	})
}

// never is the Unix time of what does not run out.
const never = 1<<63 - 1

// known gives what a credential was found to name, unless that has run out or
// was said by another key set than the current one.
func (t *tenants) known(cred credential, now int64, by *verification) (named, bool) {
	n, ok := t.verified.get(cred)
	if !ok {
		n, ok = t.claimed.get(cred)
	}
	return n, ok && now < n.until && n.by == by
}

// remember keeps what a credential names.
func (t *tenants) remember(cred credential, n named) Tenant {
	if n.Verified && !t.trust { // under trust nothing was verified here
		t.verified.put(cred, n)
	} else {
		t.claimed.put(cred, n)
	}
	return n.Tenant
}

var idText = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// id is what stands for a name outside the process: 128 bits of its HMAC.
func (t *tenants) id(kind string, name ...string) string {
	mac := hmac.New(sha256.New, t.secret)
	mac.Write([]byte(kind))
	for _, part := range name {
		// Each part has its length before it, so that a crafted one cannot run
		// into the next.
		var head [9]byte
		for n, at := len(part), 8; at > 0; at-- {
			head[at] = byte(n)
			n >>= 8
		}
		mac.Write(head[:])
		mac.Write([]byte(part))
	}
	return idText.EncodeToString(mac.Sum(nil)[:16])
}

// digestOf is SHA-256 without a copy of the text on the heap.
func digestOf(text string) [sha256.Size]byte {
	var buffer [256]byte
	if len(text) <= len(buffer) {
		return sha256.Sum256(buffer[:copy(buffer[:], text)])
	}
	hash := sha256.New()
	for len(text) > 0 {
		n := copy(buffer[:], text)
		hash.Write(buffer[:n])
		text = text[n:]
	}
	var digest [sha256.Size]byte
	hash.Sum(digest[:0])
	return digest
}

// bearerToken gives the token of an Authorization header of the Bearer scheme
// (RFC 6750, section 2.1), or "".
func bearerToken(h http.Header) string {
	scheme, token, ok := strings.Cut(first(h["Authorization"]), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
