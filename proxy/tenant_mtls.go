package proxy

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
)

// byCertificate names the tenant of a client certificate: verified where the
// handshake built a chain to a trusted authority, otherwise claimed.
func (t *tenants) byCertificate(cred credential, state *tls.ConnectionState, now int64) (Tenant, bool) {
	leaf := state.PeerCertificates[0]
	cred.digest = sha256.Sum256(leaf.Raw)
	cred.checked = len(state.VerifiedChains) > 0 && leaf.NotAfter.Unix() > now
	if n, ok := t.known(cred, now, nil); ok {
		return n.Tenant, true
	}
	name := certificateName(leaf)
	if name == "" {
		return Tenant{}, false
	}
	n := named{Tenant: Tenant{ID: t.id(kindMTLSClaim, name), Factor: 1}, until: never}
	if cred.checked {
		n.Tenant = Tenant{ID: t.id(kindMTLS, name), Factor: 1, Verified: true}
		n.until = leaf.NotAfter.Unix()
	}
	return t.remember(cred, n), true
}

// certificateName is whom a certificate names: its first URI (a SPIFFE ID is
// one), else its common name.
func certificateName(leaf *x509.Certificate) string {
	if len(leaf.URIs) > 0 {
		return leaf.URIs[0].String()
	}
	return leaf.Subject.CommonName
}
