package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/config"
)

// certificate writes a self-signed one for name.
func certificate(t *testing.T, dir, name string) config.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	files := config.TLS{Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key")}
	for path, block := range map[string]*pem.Block{
		files.Cert: {Type: "CERTIFICATE", Bytes: der},
		files.Key:  {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestReloadOfListeners: a reload takes new certificates and a new token while
// connections stay up, and the listener speaks HTTP/2.
func TestReloadOfListeners(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	dir := t.TempDir()
	file := config.Default(up.URL)
	file.Listen, file.Health, file.Admin, file.DataDir = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", dir
	file.TLS, file.AdminToken = certificate(t, dir, "first"), "the first token of the test"
	p, err := start(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop(0)

	name := func() string {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		res := fetch(t.Context(), t, transport, "https://"+p.listen.String(), "")
		if res.ProtoMajor != 2 {
			t.Errorf("the listener speaks %s", res.Proto)
		}
		return res.TLS.PeerCertificates[0].Subject.CommonName
	}
	admin := func(token string) int {
		t.Helper()
		return fetch(t.Context(), t, http.DefaultTransport, "http://"+p.admin.String()+"/geoproxy/explain?url=/x", token).StatusCode
	}
	if got := name(); got != "first" {
		t.Errorf("the certificate is %s", got)
	}
	if admin("") != http.StatusUnauthorized || admin("the first token of the test") != http.StatusOK {
		t.Error("the admin listener does not go by its token")
	}

	next := *file
	next.TLS, next.AdminToken = certificate(t, dir, "second"), "the second token of the test"
	p.reload(&next)
	if got := name(); got != "second" {
		t.Errorf("after the reload the certificate is %s", got)
	}
	if admin("the first token of the test") != http.StatusUnauthorized || admin("the second token of the test") != http.StatusOK {
		t.Error("after the reload the admin listener does not go by its new token")
	}

	broken := next
	broken.TLS.Cert = filepath.Join(dir, "none.pem")
	p.reload(&broken)
	if got := name(); got != "second" {
		t.Errorf("a broken reload changed the certificate to %s", got)
	}
}

func fetch(ctx context.Context, t *testing.T, via http.RoundTripper, url, token string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := via.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return res
}
