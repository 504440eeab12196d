package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// idleConnections is how many unused connections to an upstream are kept.
	// The default of net/http is 2, and dialling costs more than all else
	// that a proxy does for a small request.
	idleConnections = 1024
	// idleConnection is how long one is kept unused.
	idleConnection = 90 * time.Second
	// continueWait is how long a body is held back for an upstream that leaves
	// "Expect: 100-continue" unanswered (RFC 9110 10.1.1).
	continueWait = time.Second
	// upstreamHeader is the largest header an upstream may send.
	upstreamHeader = 1 << 20
	// streamWindow is how much of one HTTP/2 stream is taken in before it is
	// read. The transport's own 4 MiB would be held for every slow caller.
	streamWindow = 256 << 10
)

// cancels reports whether the upstream stops when its connection is closed.
func (u *upstream) cancels() bool { return u.config.Cancels == nil || *u.config.Cancels }

// upstream is a compiled backend: its address and its transports. It serves
// any number of exchanges at once.
type upstream struct {
	config        UpstreamConfig
	scheme, host  string
	path, rawPath string // put before every path, plain and escaped; mostly empty
	query         string // put before every query; mostly empty
	// keepHost passes the Host on as it came, so that the URLs a map server
	// writes into its answers point back here. A TLS upstream gets its own
	// name instead: certificates and virtual hosts go by it.
	keepHost bool

	http1 *http.Transport // or what TLS negotiates
	h2c   *http.Transport // plain upstreams only, nil where protocol is http1
	// onlyH2C sends everything but upgrades over h2c; otherwise gRPC alone,
	// because HTTP/2 costs more for everything else.
	onlyH2C bool

	proxy  httputil.ReverseProxy
	alarms sync.Pool // of *alarm
	own    streams   // of exchanges that do not bring the process's
}

// newUpstream compiles cfg. Its files are read once, here.
func newUpstream(cfg UpstreamConfig) (*upstream, error) {
	target, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", errors.Unwrap(err)) // without the URL: it may hold a password
	}
	u := &upstream{config: cfg, scheme: target.Scheme, host: target.Host, keepHost: true}
	dialer := &net.Dialer{Timeout: orDefault(cfg.Connect, 5*time.Second)}
	dial := dialer.DialContext

	switch target.Scheme {
	case "http", "https":
		if target.Host == "" {
			return nil, errors.New("url: no host")
		}
		if target.User != nil {
			return nil, errors.New("url: a name and password do not belong here")
		}
		u.keepHost = target.Scheme == "http"
		u.path = strings.TrimSuffix(target.Path, "/")
		u.rawPath = strings.TrimSuffix(target.EscapedPath(), "/")
		u.query = target.RawQuery
	case "unix":
		if target.Host != "" || target.Path == "" {
			return nil, errors.New("url: a socket is written unix:///path/to/socket")
		}
		u.scheme, u.host = "http", "localhost"
		socket := target.Path
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		}
	default:
		return nil, fmt.Errorf("url: %q is none of http, https and unix", target.Scheme)
	}

	u.http1 = newTransport(dial, dialer.Timeout)
	u.http1.Protocols = new(http.Protocols)
	u.http1.Protocols.SetHTTP1(true)
	switch cfg.Protocol {
	case "", "auto":
		u.http1.Protocols.SetHTTP2(u.scheme == "https")
	case "http1":
	case "h2c":
		if u.scheme == "https" {
			return nil, errors.New("protocol: h2c is for plain upstreams; TLS negotiates HTTP/2 by itself")
		}
		u.onlyH2C = true
	default:
		return nil, fmt.Errorf("protocol: %q is none of auto, http1 and h2c", cfg.Protocol)
	}
	if u.scheme == "http" && cfg.Protocol != "http1" {
		u.h2c = newTransport(dial, dialer.Timeout)
		u.h2c.Protocols = new(http.Protocols)
		u.h2c.Protocols.SetUnencryptedHTTP2(true)
	}
	if u.scheme == "https" {
		if u.http1.TLSClientConfig, err = cfg.TLS.client(); err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
	} else if cfg.TLS != (UpstreamTLS{}) {
		return nil, errors.New("tls: the upstream's url is not https")
	}

	u.alarms.New = newAlarm
	u.proxy = httputil.ReverseProxy{
		Rewrite:        u.rewrite,
		Transport:      u,
		BufferPool:     chunkPool{},
		ModifyResponse: answered,
		ErrorHandler:   failed,
		// What goes wrong is in the exchange, for one line in one log.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return u, nil
}

// newTransport passes bodies as they are: it neither asks for compression nor
// undoes it, and takes no proxy from the environment.
func newTransport(dial func(context.Context, string, string) (net.Conn, error), connect time.Duration) *http.Transport {
	return &http.Transport{
		DialContext:            dial,
		TLSHandshakeTimeout:    connect,
		MaxIdleConnsPerHost:    idleConnections,
		IdleConnTimeout:        idleConnection,
		DisableCompression:     true,
		ExpectContinueTimeout:  continueWait,
		MaxResponseHeaderBytes: upstreamHeader,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow},
	}
}

// client reads the files of t.
func (t UpstreamTLS) client() (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, //nolint:gosec // the operator asks for it by name, and is warned
	}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca: no certificate in %s", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("cert and key go together")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("cert: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// RoundTrip sends r over the protocol that it needs.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.h2c != nil && (u.onlyH2C && len(r.Header["Upgrade"]) == 0 || isGRPC(r.Header)) {
		return u.h2c.RoundTrip(r)
	}
	return u.http1.RoundTrip(r)
}

// close lets go of the connections that nobody uses; those in use end with
// their exchanges.
func (u *upstream) close() {
	u.http1.CloseIdleConnections()
	if u.h2c != nil {
		u.h2c.CloseIdleConnections()
	}
}

// orDefault is v, or def where v is zero.
func orDefault[T int64 | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
