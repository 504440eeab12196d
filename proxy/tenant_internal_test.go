package proxy

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var testSecret = []byte("0123456789abcdef")

func testTenants(tb testing.TB, cfg TenantConfig) *tenants {
	tb.Helper()
	ts, err := newTenants(cfg, testSecret, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(ts.close)
	return ts
}

// from is a caller at an address with headers given as name, value, ...
func from(address string, headers ...string) *caller {
	c := &caller{Header: http.Header{}, Peer: netip.MustParseAddr(address)}
	for i := 0; i < len(headers); i += 2 {
		c.Header.Add(headers[i], headers[i+1])
	}
	return c
}

func keysFile(tb testing.TB, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "keys.yaml")
	writeFile(tb, path, text)
	return path
}

func writeFile(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func hexSum(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func TestAKeyOfTheFileIsVerified(t *testing.T) {
	path := keysFile(t, fmt.Sprintf(`
- { sha256: %s, name: survey, factor: 2.5, class: gold }
- { sha256: %s, name: survey, factor: 2.5, class: gold }
- { sha256: %s, name: old, expires: 2020-01-01 }
- { sha256: %s, name: later, expires: 2999-12-31 }
- { sha256: %s, name: app, public: true }
`, hexSum("one"), hexSum("two"), hexSum("gone"), hexSum("good"), hexSum("shared")))
	ts := testTenants(t, TenantConfig{From: []string{"header:X-Api-Key", "query:apikey", "header:Authorization", "address"}, Keys: path})

	one := ts.identify(from("192.0.2.1", "X-Api-Key", "one"))
	if !one.Verified || one.Name != "survey" || one.Factor != 2.5 || one.Class != "gold" || one.countsAddress() {
		t.Errorf("a key of the file: %+v", one)
	}
	if two := ts.identify(from("192.0.2.1", "X-Api-Key", "two")); two != one {
		t.Errorf("another key of the same name is another tenant: %+v and %+v", one, two)
	}
	if bearer := ts.identify(from("192.0.2.1", "Authorization", "bearer one")); bearer != one {
		t.Errorf("by Authorization: %+v", bearer)
	}
	query := from("192.0.2.1")
	query.Query = "f=json&API%4Bey=one&apikey=two"
	if byQuery := ts.identify(query); byQuery != one {
		t.Errorf("by query: %+v", byQuery)
	}
	if gone := ts.identify(from("192.0.2.1", "X-Api-Key", "gone")); gone.Verified || gone.Name != "" || !gone.countsAddress() {
		t.Errorf("an expired key: %+v", gone)
	}
	if good := ts.identify(from("192.0.2.1", "X-Api-Key", "good")); !good.Verified {
		t.Errorf("a key before its expiry: %+v", good)
	}
	if app := ts.identify(from("192.0.2.1", "X-Api-Key", "shared")); !app.Verified || !app.countsAddress() {
		t.Errorf("a public key: %+v", app)
	}
}

func TestTheFirstThatVerifiesNamesTheTenant(t *testing.T) {
	path := keysFile(t, fmt.Sprintf("- { sha256: %s, name: survey }", hexSum("one")))
	ts := testTenants(t, TenantConfig{From: []string{"header:X-Api-Key", "address", "query:apikey"}, Keys: path})
	c := from("192.0.2.1", "X-Api-Key", "invented")
	c.Query = "apikey=one"
	if got := ts.identify(c); got.Name != "survey" {
		t.Errorf("a claimed key before a verified one: %+v", got)
	}
	c.Query = "apikey=two"
	first := ts.identify(from("192.0.2.1", "X-Api-Key", "invented"))
	if got := ts.identify(c); got != first || got.Verified {
		t.Errorf("two claimed keys: %+v, want that of the first, %+v", got, first)
	}
	c = from("192.0.2.1")
	c.Query = "apikey=two"
	if got := ts.identify(c); got.ID != got.Address || got.countsAddress() {
		t.Errorf("a claimed key after the address: %+v", got)
	}
}

func TestReloadTakesGoodKeysAndKeepsThemBeforeBadOnes(t *testing.T) {
	path := keysFile(t, fmt.Sprintf("- { sha256: %s, name: survey }", hexSum("one")))
	ts := testTenants(t, TenantConfig{Keys: path})
	named := func(key string) string { return ts.identify(from("192.0.2.1", "X-Api-Key", key)).Name }
	if named("one") != "survey" || named("two") != "" {
		t.Fatal("the first file")
	}
	writeFile(t, path, fmt.Sprintf("- { sha256: %s, name: other }", hexSum("two")))
	if err := ts.reload(); err != nil {
		t.Fatal(err)
	}
	if named("one") != "" || named("two") != "other" {
		t.Error("the second file")
	}
	writeFile(t, path, "- { sha256: no, name: other }")
	if err := ts.reload(); err == nil {
		t.Error("a bad file was taken")
	}
	if named("two") != "other" {
		t.Error("a bad file took the keys away")
	}
}

func TestKeysFileReportsEveryMistakeWithItsPlace(t *testing.T) {
	text := strings.ReplaceAll(`- sha256: zz
  name: a
  factor: -1
- { sha256: SUM, label: b }
- just text
- { sha256: SUM, name: c, name: d }
- { sha256: SUM, name: [e] }
- { sha256: SUM, name: f, expires: soon, public: maybe }
- { sha256: SUM, name: good }
- { sha256: SUM, name: twin }
`, "SUM", hexSum("x"))
	_, err := parseKeys("keys.yaml", []byte(text))
	if err == nil {
		t.Fatal("no error")
	}
	got := err.Error()
	for _, want := range []string{
		"keys.yaml:1:11: sha256", "keys.yaml:3:11: factor", "keys.yaml:4:79: \"label\" is none of", "keys.yaml:4:3: a key needs its name",
		"keys.yaml:5:3: a key is written as", "keys.yaml:6:88: name stands here already", "keys.yaml:7:85: name must be a plain value",
		"keys.yaml:8:97: expires", "keys.yaml:8:111: public", "keys.yaml:10:3: this key stands above already, for good",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for name, text := range map[string]string{
		"a mapping":           "survey: x",
		"no YAML":             "- [",
		"one name, two rates": fmt.Sprintf("[{sha256: %s, name: a}, {sha256: %s, name: a, factor: 2}]", hexSum("x"), hexSum("y")),
	} {
		if _, err := parseKeys("k", []byte(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	for name, text := range map[string]string{"empty": "", "comment": "# none yet\n", "null": "~", "list": "[]"} {
		if _, err := parseKeys("k", []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInventedKeysShareTheirAddress(t *testing.T) {
	ts := testTenants(t, TenantConfig{Max: 320})
	addresses, ids := map[string]bool{}, map[string]bool{}
	for i := range 10_000 {
		got := ts.identify(from("192.0.2.1", "X-Api-Key", fmt.Sprint("invented", i)))
		if got.Verified || !got.countsAddress() {
			t.Fatalf("an invented key: %+v", got)
		}
		addresses[got.Address], ids[got.ID] = true, true
	}
	if len(addresses) != 1 || len(ids) != 10_000 {
		t.Errorf("%d addresses and %d tenants", len(addresses), len(ids))
	}
	if n := ts.claimed.len(); n > 320 {
		t.Errorf("%d entries, at most 320", n)
	}
	if n := ts.verified.len(); n != 0 {
		t.Errorf("%d verified", n)
	}
}

func TestIDsHideNamesAndKeepKindsApart(t *testing.T) {
	ts := testTenants(t, TenantConfig{})
	seen := map[string]string{}
	for _, kind := range []string{kindKey, kindKeyName, kindJWT, kindJWTClaim, kindMTLS, kindMTLSClaim, kindAddress} {
		id := ts.id(kind, "name")
		if len(id) != 26 || strings.Contains(id, "name") {
			t.Errorf("%s: %s", kind, id)
		}
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s give the same", kind, other)
		}
		seen[id] = kind
	}
	if ts.id(kindJWT, "a", "bc") == ts.id(kindJWT, "ab", "c") {
		t.Error("parts run into each other")
	}
	other, err := newTenants(TenantConfig{}, []byte("another secret!!"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if other.id(kindKey, "name") == ts.id(kindKey, "name") {
		t.Error("another secret gives the same")
	}
}

func TestClientAddress(t *testing.T) {
	ts := testTenants(t, TenantConfig{TrustedProxies: []string{"10.0.0.0/8", "2001:db8:1::/48", "::ffff:172.16.0.0/108"}})
	for name, c := range map[string]struct {
		peer    string
		headers []string
		want    string
	}{
		"no proxy":                    {"192.0.2.1", nil, "192.0.2.1"},
		"spoofed by an untrusted one": {"192.0.2.1", []string{"X-Forwarded-For", "203.0.113.9"}, "192.0.2.1"},
		"one hop":                     {"10.0.0.1", []string{"X-Forwarded-For", "203.0.113.9"}, "203.0.113.9"},
		"spoofed behind a trusted":    {"10.0.0.1", []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		"two trusted hops":            {"10.0.0.1", []string{"X-Forwarded-For", "198.51.100.1, 203.0.113.9, 10.2.3.4"}, "203.0.113.9"},
		"over several lines":          {"10.0.0.1", []string{"X-Forwarded-For", "1.1.1.1", "X-Forwarded-For", "203.0.113.9,10.2.3.4"}, "203.0.113.9"},
		"pretending to be trusted":    {"10.0.0.1", []string{"X-Forwarded-For", "10.9.9.9, 203.0.113.9"}, "203.0.113.9"},
		"all trusted":                 {"10.0.0.1", []string{"X-Forwarded-For", "10.9.9.9, 10.2.3.4"}, "10.9.9.9"},
		"rubbish":                     {"10.0.0.1", []string{"X-Forwarded-For", "203.0.113.9, unknown"}, "10.0.0.1"},
		"rubbish behind a hop":        {"10.0.0.1", []string{"X-Forwarded-For", "203.0.113.9, _hidden, 10.2.3.4"}, "10.2.3.4"},
		"empty":                       {"10.0.0.1", []string{"X-Forwarded-For", ""}, "10.0.0.1"},
		"a port":                      {"10.0.0.1", []string{"X-Forwarded-For", "203.0.113.9:4711"}, "203.0.113.9"},
		"IPv6 with brackets and port": {"10.0.0.1", []string{"X-Forwarded-For", "[2001:db8::9]:4711"}, "2001:db8::9"},
		"IPv6 proxy":                  {"2001:db8:1::7", []string{"X-Forwarded-For", "2001:db8:2::9"}, "2001:db8:2::9"},
		"IPv4 in IPv6":                {"::ffff:10.0.0.1", []string{"X-Forwarded-For", "::ffff:203.0.113.9"}, "203.0.113.9"},
		"network written in IPv6":     {"172.16.3.4", []string{"X-Forwarded-For", "203.0.113.9"}, "203.0.113.9"},
		"Forwarded":                   {"10.0.0.1", []string{"Forwarded", `for=198.51.100.1, For="[2001:db8::9]:80";proto=https;by=x`}, "2001:db8::9"},
		"Forwarded with open quotes":  {"10.0.0.1", []string{"Forwarded", `for="198.51.100.1, for=203.0.113.9`}, "203.0.113.9"},
		"Forwarded without for":       {"10.0.0.1", []string{"Forwarded", `for=203.0.113.9, proto=https`}, "10.0.0.1"},
		"both":                        {"10.0.0.1", []string{"Forwarded", "for=198.51.100.1", "X-Forwarded-For", "203.0.113.9"}, "203.0.113.9"},
	} {
		if got := ts.clientAddr(from(c.peer, c.headers...)); got != netip.MustParseAddr(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := ts.clientAddr(&caller{}); got.IsValid() {
		t.Errorf("no peer: %s", got)
	}
}

func TestAnIPv6ClientIsItsNetwork(t *testing.T) {
	ts := testTenants(t, TenantConfig{})
	id := func(address string) string { return ts.identify(from(address)).Address }
	if id("2001:db8:0:1::1") != id("2001:db8:0:1:ffff:ffff:ffff:ffff") {
		t.Error("two hosts of a /64 are two")
	}
	if id("2001:db8:0:1::1") == id("2001:db8:0:2::1") {
		t.Error("two networks are one")
	}
	if id("192.0.2.1") == id("192.0.2.2") {
		t.Error("two IPv4 addresses are one")
	}
	if id("192.0.2.1") != id("::ffff:192.0.2.1") {
		t.Error("an IPv4 address within IPv6 is another")
	}
	if a, b := ts.identify(&caller{}), ts.identify(&caller{}); a != b || a.ID == "" {
		t.Errorf("peers without an address: %+v, %+v", a, b)
	}
}

func TestTrustTakesClaimsForVerified(t *testing.T) {
	ts := testTenants(t, TenantConfig{From: []string{"header:X-User", "jwt:sub", "address"}, Trust: true})
	user := ts.identify(from("192.0.2.1", "X-User", "ada"))
	if !user.Verified || user.Factor != 1 {
		t.Errorf("by header: %+v", user)
	}
	token := unsignedToken(t, jwt.MapClaims{"sub": "ada"})
	if got := ts.identify(from("192.0.2.1", "Authorization", "Bearer "+token)); !got.Verified || got.ID == user.ID {
		t.Errorf("by token: %+v", got)
	}
	if got := ts.identify(from("192.0.2.1")); got.Verified {
		t.Errorf("by address: %+v", got)
	}
}

func TestTrustIsForTrustedProxiesWhereTheyAreListed(t *testing.T) {
	ts := testTenants(t, TenantConfig{From: []string{"header:X-User"}, Trust: true, TrustedProxies: []string{"10.0.0.0/8"}})
	for range 2 { // worked out, and remembered
		if got := ts.identify(from("10.0.0.1", "X-User", "ada", "X-Forwarded-For", "192.0.2.1")); !got.Verified {
			t.Errorf("by a trusted proxy: %+v", got)
		}
		if got := ts.identify(from("192.0.2.1", "X-User", "ada")); got.Verified || !got.countsAddress() {
			t.Errorf("past the proxy: %+v", got)
		}
	}
}

func TestSettingsThatCannotBeRead(t *testing.T) {
	_, err := newTenants(TenantConfig{
		From: []string{"header:", "cookie:x", "jwt:", "mtls:x", "query:"}, TrustedProxies: []string{"10.0.0.0/99", "everybody"}, Keys: "/nowhere",
	}, nil, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{
		"secret", "from[0]", "from[1]", "from[2]", "from[3]", "from[4]", "trusted_proxies[0]", "trusted_proxies[1]", "tenant.keys",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}

// issuer is a server of a JWKS whose keys can be changed.
type issuer struct {
	*httptest.Server
	text    atomic.Pointer[string]
	fetches atomic.Int64
}

func newIssuer(tb testing.TB, keys ...map[string]any) *issuer {
	tb.Helper()
	s := &issuer{}
	s.publish(tb, keys...)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.fetches.Add(1)
		_, _ = w.Write([]byte(*s.text.Load()))
	}))
	tb.Cleanup(s.Close)
	return s
}

func (s *issuer) publish(tb testing.TB, keys ...map[string]any) {
	tb.Helper()
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		tb.Fatal(err)
	}
	s.text.Store(new(string(text)))
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func rsaJWK(kid string, key *rsa.PrivateKey) map[string]any {
	return map[string]any{"kty": "RSA", "kid": kid, "use": "sig", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())}
}

func edJWK(kid string, key ed25519.PrivateKey) map[string]any {
	return map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": b64(key.Public().(ed25519.PublicKey))}
}

func signed(tb testing.TB, method jwt.SigningMethod, kid string, key crypto.PrivateKey, claims jwt.MapClaims) string {
	tb.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	text, err := token.SignedString(key)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func unsignedToken(tb testing.TB, claims jwt.MapClaims) string {
	tb.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodNone, claims).SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func newRSA(tb testing.TB) *rsa.PrivateKey {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func newEd(tb testing.TB) ed25519.PrivateKey {
	tb.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// withJWKS is a tenants whose JWKS has been fetched, and is fetched again as
// soon as somebody asks.
func withJWKS(tb testing.TB, s *issuer) *tenants {
	tb.Helper()
	ts := testTenants(tb, TenantConfig{})
	ts.jwks = newJWKSPaused(s.URL, slog.New(slog.DiscardHandler), time.Millisecond)
	eventually(tb, "the JWKS is fetched", func() bool { return ts.jwks.current() != nil })
	return ts
}

func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatalf("after 10 s it is not so that %s", what)
		}
	}
}

func bearer(token string) *caller { return from("192.0.2.1", "Authorization", "Bearer "+token) }

func TestTokensAreCheckedAgainstTheJWKS(t *testing.T) {
	rsaKey, edKey := newRSA(t), newEd(t)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := ecKey.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	s := newIssuer(t, rsaJWK("r", rsaKey), edJWK("e", edKey),
		map[string]any{"kty": "EC", "crv": "P-256", "kid": "p", "x": b64(point[1:33]), "y": b64(point[33:])},
		map[string]any{"kty": "oct", "kid": "shared", "k": b64([]byte("a symmetric key in a public place"))},
		map[string]any{"kty": "OKP", "crv": "Ed448", "kid": "strange", "x": "AA"},
	)
	ts := withJWKS(t, s)
	hour := time.Now().Add(time.Hour).Unix()
	good := jwt.MapClaims{"sub": "ada", "exp": hour}
	want := ts.identify(bearer(signed(t, jwt.SigningMethodRS256, "r", rsaKey, good)))
	if !want.Verified || want.ID == "" || want.countsAddress() {
		t.Fatalf("a good token: %+v", want)
	}
	if ada := ts.identify(bearer(signed(t, jwt.SigningMethodRS256, "r", rsaKey, jwt.MapClaims{"sub": "bob", "exp": hour}))); ada.ID == want.ID {
		t.Error("two subjects are one tenant")
	}
	if ada := ts.identify(bearer(signed(t, jwt.SigningMethodRS256, "r", rsaKey, jwt.MapClaims{"sub": "ada", "iss": "x", "exp": hour}))); ada.ID == want.ID {
		t.Error("the same subject of two issuers is one tenant")
	}

	public, err := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	critical := jwt.NewWithClaims(jwt.SigningMethodRS256, good)
	critical.Header["kid"], critical.Header["crit"] = "r", []string{"b64"}
	criticalText, err := critical.SignedString(rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	whole := signed(t, jwt.SigningMethodRS256, "r", rsaKey, good)
	for name, c := range map[string]struct {
		token    string
		verified bool
	}{
		"EdDSA":              {signed(t, jwt.SigningMethodEdDSA, "e", edKey, good), true},
		"ES256":              {signed(t, jwt.SigningMethodES256, "p", ecKey, good), true},
		"PS256":              {signed(t, jwt.SigningMethodPS256, "r", rsaKey, good), true},
		"without a key's ID": {signed(t, jwt.SigningMethodEdDSA, "", edKey, good), true},
		"without exp":        {signed(t, jwt.SigningMethodEdDSA, "e", edKey, jwt.MapClaims{"sub": "ada"}), true},
		"alg none":           {unsignedToken(t, good), false},
		"HMAC with the public key": {
			signed(t, jwt.SigningMethodHS256, "r", public, good), false,
		},
		"HMAC with a key of the set": {
			signed(t, jwt.SigningMethodHS256, "shared", []byte("a symmetric key in a public place"), good), false,
		},
		"another's key":        {signed(t, jwt.SigningMethodRS256, "r", newRSA(t), good), false},
		"another kind of key":  {signed(t, jwt.SigningMethodEdDSA, "r", edKey, good), false},
		"expired":              {signed(t, jwt.SigningMethodEdDSA, "e", edKey, jwt.MapClaims{"sub": "ada", "exp": time.Now().Add(-time.Second).Unix()}), false},
		"not yet":              {signed(t, jwt.SigningMethodEdDSA, "e", edKey, jwt.MapClaims{"sub": "ada", "nbf": hour}), false},
		"an unknown extension": {criticalText, false},
		"cut":                  {whole[:len(whole)-10], false},
		"changed claims":       {whole[:strings.Index(whole, ".")+1] + b64([]byte(`{"sub":"ada","x":1}`)) + whole[strings.LastIndex(whole, "."):], false},
	} {
		for range 2 { // worked out, and remembered
			got := ts.identify(bearer(c.token))
			if got.Verified != c.verified || c.verified && got.ID != want.ID {
				t.Errorf("%s: %+v, want verified %v", name, got, c.verified)
			}
			if !c.verified && got.ID == want.ID {
				t.Errorf("%s: a claim has the ID of the verified name", name)
			}
		}
	}
	if got := ts.identify(bearer(signed(t, jwt.SigningMethodEdDSA, "e", edKey, jwt.MapClaims{"exp": hour}))); got.ID != got.Address {
		t.Errorf("a token without the claim: %+v", got)
	}
	if got := ts.identify(bearer("opaque")); got.ID != got.Address {
		t.Errorf("an opaque token: %+v", got)
	}
}

func TestKeysRotate(t *testing.T) {
	first, second := newEd(t), newEd(t)
	s := newIssuer(t, edJWK("1", first))
	ts := withJWKS(t, s)
	claims := jwt.MapClaims{"sub": "ada", "exp": time.Now().Add(time.Hour).Unix()}
	before, after := bearer(signed(t, jwt.SigningMethodEdDSA, "1", first, claims)), bearer(signed(t, jwt.SigningMethodEdDSA, "2", second, claims))
	if !ts.identify(before).Verified {
		t.Fatal("the first key")
	}
	s.publish(t, edJWK("2", second))
	// The token of an unknown key has the set fetched; nobody waits for it.
	eventually(t, "the second key is known", func() bool { return ts.identify(after).Verified })
	if ts.identify(before).Verified {
		t.Error("a key that was withdrawn is still good")
	}
	if ts.identify(before).ID == ts.identify(after).ID {
		t.Error("a claim has the ID of the verified name")
	}
}

func TestAVerifiedTokenIsForgottenWhenItExpires(t *testing.T) {
	key := newEd(t)
	ts := withJWKS(t, newIssuer(t, edJWK("1", key)))
	c := bearer(signed(t, jwt.SigningMethodEdDSA, "1", key, jwt.MapClaims{"sub": "ada", "exp": time.Now().Unix() + 2}))
	if !ts.identify(c).Verified {
		t.Fatal("before its expiry")
	}
	eventually(t, "it has expired", func() bool { return !ts.identify(c).Verified })
}

func TestAnIssuerThatIsDownLeavesTokensClaimed(t *testing.T) {
	key := newEd(t)
	var up atomic.Bool
	good := newIssuer(t, edJWK("1", key))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		http.Redirect(w, r, good.URL, http.StatusFound)
	}))
	defer server.Close()
	ts := testTenants(t, TenantConfig{JWKS: server.URL})
	c := bearer(signed(t, jwt.SigningMethodEdDSA, "1", key, jwt.MapClaims{"sub": "ada"}))
	if got := ts.identify(c); got.Verified || !got.countsAddress() {
		t.Errorf("%+v", got)
	}
	up.Store(true)
	eventually(t, "the keys are fetched", func() bool { return ts.identify(c).Verified })
}

func TestInventedKeyIDsDoNotFloodTheIssuer(t *testing.T) {
	key := newEd(t)
	s := newIssuer(t, edJWK("1", key))
	ts := testTenants(t, TenantConfig{JWKS: s.URL})
	eventually(t, "the JWKS is fetched", func() bool { return ts.jwks.current() != nil })
	for i := range 1000 {
		ts.identify(bearer(signed(t, jwt.SigningMethodEdDSA, fmt.Sprint("invented", i), key, jwt.MapClaims{"sub": "ada"})))
	}
	if n := s.fetches.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

func TestAnIssuerCannotFillMemory(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat(" ", jwksLimit+10)))
	}))
	defer server.Close()
	j := newJWKSPaused(server.URL, slog.New(slog.DiscardHandler), time.Millisecond)
	defer j.close()
	if err := j.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

func certificate(tb testing.TB, name string, uri string) *x509.Certificate {
	tb.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	if uri != "" {
		parsed, err := url.Parse(uri)
		if err != nil {
			tb.Fatal(err)
		}
		template.URIs = []*url.URL{parsed}
	}
	key := newEd(tb)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return leaf
}

func TestCertificatesCountOnlyWithAChain(t *testing.T) {
	ts := testTenants(t, TenantConfig{From: []string{"mtls", "address"}})
	with := func(leaf *x509.Certificate, chained bool) Tenant {
		c := from("192.0.2.1")
		c.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		if chained {
			c.TLS.VerifiedChains = [][]*x509.Certificate{{leaf}}
		}
		return ts.identify(c)
	}
	leaf := certificate(t, "gis", "")
	good, bad := with(leaf, true), with(leaf, false)
	if !good.Verified || bad.Verified || good.ID == bad.ID || !bad.countsAddress() {
		t.Errorf("with a chain %+v, without %+v", good, bad)
	}
	if again := with(certificate(t, "gis", ""), true); again.ID != good.ID {
		t.Error("a renewed certificate is another tenant")
	}
	workload := with(certificate(t, "gis", "spiffe://example.org/gis"), true)
	if other := with(certificate(t, "other", "spiffe://example.org/gis"), true); other.ID != workload.ID || other.ID == good.ID {
		t.Error("a URI does not come before the common name")
	}
	if nameless := with(certificate(t, "", ""), true); nameless.ID != nameless.Address {
		t.Errorf("a certificate without a name: %+v", nameless)
	}
	plain := from("192.0.2.1")
	plain.TLS = &tls.ConnectionState{}
	if got := ts.identify(plain); got.ID != got.Address {
		t.Errorf("without a certificate: %+v", got)
	}
}

func TestAKnownTenantCostsNoAllocation(t *testing.T) {
	key := newEd(t)
	ts := withJWKS(t, newIssuer(t, edJWK("1", key)))
	for name, c := range map[string]*caller{
		"key":     from("192.0.2.1", "X-Api-Key", "some key"),
		"token":   bearer(signed(t, jwt.SigningMethodEdDSA, "1", key, jwt.MapClaims{"sub": "ada"})),
		"address": from("2001:db8::1"),
	} {
		ts.identify(c)
		if n := testing.AllocsPerRun(100, func() { ts.identify(c) }); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzKeysFile(f *testing.F) {
	f.Add("- { sha256: 00, name: a }")
	f.Add("- &a { name: *a }\n- <<: *a")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = parseKeys("keys.yaml", []byte(text))
	})
}

// Whatever stands in the headers, naming the tenant ends, and the address
// counts unless something verified it.
func FuzzIdentify(f *testing.F) {
	f.Add("key", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", "apikey=x", "1.2.3.4, [::1]:80", `for="[::1]:80"`)
	f.Add("", "Basic x", "api%6bey=%zz", ",,", `for=;,"`)
	ts, err := newTenants(TenantConfig{
		From: []string{"header:X-Api-Key", "header:Authorization", "query:apikey", "jwt:sub", "address"}, TrustedProxies: []string{"0.0.0.0/0"}, Max: 1000,
	}, testSecret, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, authorization, query, forwardedFor, forwarded string) {
		c := from("192.0.2.1", "X-Api-Key", key, "Authorization", authorization, "Forwarded", forwarded)
		if forwardedFor != "" {
			c.Header.Set("X-Forwarded-For", forwardedFor)
		}
		c.Query = query
		got := ts.identify(c)
		if got.Verified || got.ID == "" || got.Address == "" || got.Factor != 1 {
			t.Errorf("%+v", got)
		}
		if again := ts.identify(c); again != got {
			t.Errorf("%+v, then %+v", got, again)
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	key := newEd(b)
	ts := withJWKS(b, newIssuer(b, edJWK("1", key)))
	ts.trusted = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for name, c := range map[string]*caller{
		"known key":   from("10.0.0.1", "X-Api-Key", "0123456789abcdef0123456789abcdef", "X-Forwarded-For", "203.0.113.9"),
		"known token": bearer(signed(b, jwt.SigningMethodEdDSA, "1", key, jwt.MapClaims{"sub": "ada", "x": strings.Repeat("x", 600)})),
		"address":     from("192.0.2.1"),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ts.identify(c)
			}
		})
	}
	b.Run("invented key", func(b *testing.B) {
		b.ReportAllocs()
		c := from("192.0.2.1", "X-Api-Key", "")
		for i := 0; b.Loop(); i++ {
			c.Header["X-Api-Key"][0] = fmt.Sprint(i)
			ts.identify(c)
		}
	})
}
