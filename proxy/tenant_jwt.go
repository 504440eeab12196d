package proxy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// maxToken is the largest token that is looked into. Proxies and servers
	// take headers of 8 KiB.
	maxToken = 8 << 10
	// recheck is how soon a token that failed its check is checked again, in
	// seconds: its time may come, or a clock be set right.
	recheck = 30
)

// signatures are the algorithms that a JWKS's public keys check. Neither none
// nor the HMACs are among them: with those whoever knows the public key could
// sign (RFC 8725, sections 2.1 and 3.1).
var signatures = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

var (
	strictParser = jwt.NewParser(jwt.WithValidMethods(signatures))
	looseParser  = jwt.NewParser()
)

var errCritical = errors.New("the token has extensions that must be understood, and are not")

// byToken names the tenant of a JWT by a claim of it. A token without the
// claim names nobody. Two issuers may share a key set, so the issuer is part
// of the name.
func (t *tenants) byToken(cred credential, token string, now int64) (Tenant, bool) {
	if !looksLikeJWT(token) {
		return Tenant{}, false
	}
	cred.digest = digestOf(token)
	keys := t.jwks.current()
	if n, ok := t.known(cred, now, keys); ok {
		return n.Tenant, n.ID != ""
	}
	claim := t.sources[cred.source].name
	n := named{until: now + recheck, by: keys}
	claims, err := keys.verify(token)
	switch {
	case err == nil:
		if name := claimText(claims, claim); name != "" {
			n.Tenant = Tenant{ID: t.id(kindJWT, claim, claimText(claims, "iss"), name), Factor: 1, Verified: true}
		}
		n.until = unixOf(claims.GetExpirationTime())
	case errors.Is(err, jwkset.ErrKeyNotFound):
		t.jwks.refresh() // the issuer may have a new key
		fallthrough
	default:
		n.Tenant = t.claimedToken(cred, token, claims)
	}
	return t.remember(cred, n), n.ID != ""
}

// claimedToken names the tenant of a token that was not verified: by what it
// says of itself, or where that cannot be read by the whole token.
func (t *tenants) claimedToken(cred credential, token string, claims jwt.MapClaims) Tenant {
	claim := t.sources[cred.source].name
	name, issuer := claimText(claims, claim), claimText(claims, "iss")
	if name == "" {
		name = token
	}
	if cred.checked {
		return Tenant{ID: t.id(kindJWT, claim, issuer, name), Factor: 1, Verified: true}
	}
	return Tenant{ID: t.id(kindJWTClaim, claim, issuer, name), Factor: 1}
}

// looksLikeJWT reports whether a token has the form of a signed JWT (RFC 7515,
// section 3.1): three parts, the first a JSON object in base64url.
func looksLikeJWT(token string) bool {
	return len(token) <= maxToken && strings.HasPrefix(token, "ey") && strings.Count(token, ".") == 2
}

// verify checks a token's signature and times, and gives its claims: also
// where the check fails and they can be read.
func (v *verification) verify(token string) (jwt.MapClaims, error) {
	claims := jwt.MapClaims{}
	if v == nil {
		_, _, err := looseParser.ParseUnverified(token, claims)
		if err == nil {
			err = jwt.ErrTokenUnverifiable
		}
		return claims, err
	}
	parsed, err := strictParser.ParseWithClaims(token, claims, v.keys.Keyfunc)
	if err != nil {
		return claims, fmt.Errorf("checking a token: %w", err)
	}
	if _, critical := parsed.Header["crit"]; critical {
		return claims, errCritical
	}
	return claims, nil
}

// claimText gives a claim as text: strings, and numbers that are whole.
func claimText(claims jwt.MapClaims, name string) string {
	switch value := claims[name].(type) {
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
	return ""
}

// unixOf is the Unix time of an optional date of a token.
func unixOf(date *jwt.NumericDate, err error) int64 {
	if err != nil || date == nil {
		return never
	}
	return date.Truncate(time.Second).Unix()
}
