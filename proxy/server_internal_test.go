package proxy

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// probes are requests over whose end two servers may disagree. smuggled is
// what must never become a request of its own.
const smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

var probes = map[string]string{
	"length and chunks":             "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"chunks and length":             "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 38\r\n\r\n0\r\n\r\n",
	"two lengths":                   "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 38\r\n\r\n",
	"a list of lengths":             "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 38\r\n\r\n",
	"a negative length":             "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	"a signed length":               "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: +0\r\n\r\n",
	"a length in hex":               "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0x0\r\n\r\n",
	"a length beyond numbers":       "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
	"an unknown coding":             "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n",
	"chunked twice":                 "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\nContent-Length: 0\r\n\r\n",
	"identity, then chunked":        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"chunked in quotes":             "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \"chunked\"\r\nContent-Length: 0\r\n\r\n",
	"a tab before chunked":          "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\tchunked\r\nContent-Length: 38\r\n\r\n0\r\n\r\n",
	"a vertical tab before chunked": "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0bchunked\r\nContent-Length: 0\r\n\r\n",
	"a blank before the colon":      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n",
	"a folded header":               "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 38\r\n\r\n0\r\n\r\n",
	"a folded length":               "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n 0\r\n\r\n",
	"bare line feeds":               "POST /a HTTP/1.1\nHost: x\nContent-Length: 0\n\n",
	"a bare carriage return":        "POST /a HTTP/1.1\r\nHost: x\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
	"a NUL in a value":              "POST /a HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n",
	"a chunk's extension":           "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b\r\nx\r\n0\r\n\r\n",
	"a line feed in an extension":   "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n0\r\n\r\n",
	"a chunk size with a sign":      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n",
	"a chunk size with 0x":          "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
	"a chunk size that wraps":       "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\nx\r\n0\r\n\r\n",
	"a chunk longer than told":      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
	"line breaks in the path":       "GET /a%0d%0aX-Injected:%201%0d%0a%0d%0aGET%20/smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
	"line breaks in the query":      "GET /a?x=%0d%0aX-Injected:%201 HTTP/1.1\r\nHost: x\r\n\r\n",
	"a body on a GET":               "GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
	"a length on Connection":        "POST /a HTTP/1.1\r\nHost: x\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc",
	"two hosts":                     "GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
	"no host":                       "GET /a HTTP/1.1\r\n\r\n",
	"a blank first line":            "\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n",
	"a blank in the target":         "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
	"HTTP/1.0 in chunks":            "POST /a HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 38\r\n\r\n0\r\n\r\n",
	"a trailer that frames":         "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 38\r\n\r\n",
	"an expectation":                "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
}

// TestSmuggling sends every probe with a request behind it, and reads what
// reaches the upstream as bytes: each probe is refused, or arrives as one
// request that a strict reader finds framed in one way.
func TestSmuggling(t *testing.T) {
	for name, probe := range probes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newWiretap(t)
			g := newRig(t, UpstreamConfig{URL: "http://" + up.addr}, nil)
			g.quiet()
			answers := raw(t, g.addr, probe+smuggled)
			var targets []string
			for _, conn := range up.heard() {
				if strings.Contains(conn, "\nX-Injected") {
					t.Errorf("an injected header: %q", conn)
				}
				targets = append(targets, strictRequests(t, conn)...)
			}
			// The request behind the probe is an honest one where the probe was.
			if len(targets) > 2 || strings.Count(answers, " 200 OK\r\n") != len(targets) || len(targets) > 0 && targets[0] == "/smuggled" {
				t.Errorf("upstream: %q\nanswers: %q", up.heard(), answers)
			}
		})
	}
}

// wiretap is an upstream that remembers what each of its connections carried.
type wiretap struct {
	addr  string
	mu    sync.Mutex
	conns []*strings.Builder
}

func (w *wiretap) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, c := range w.conns {
		all = append(all, c.String())
	}
	return all
}

func newWiretap(t *testing.T) *wiretap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	w := &wiretap{addr: l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(conn)
		}
	}()
	return w
}

func (w *wiretap) serve(conn net.Conn) {
	defer conn.Close()
	var all strings.Builder
	w.mu.Lock()
	w.conns = append(w.conns, &all)
	w.mu.Unlock()
	r := bufio.NewReader(io.TeeReader(conn, lockedWriter{&w.mu, &all}))
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// strictRequests takes bytes apart that must be whole requests, each framed in
// exactly one way, and gives their targets. An incomplete last one is a request
// that was given up.
func strictRequests(t *testing.T, b string) []string {
	t.Helper()
	var targets []string
	for b != "" {
		head, rest, whole := strings.Cut(b, "\r\n\r\n")
		if !whole {
			return targets
		}
		lines := strings.Split(head, "\r\n")
		length, chunked, framings := 0, false, 0
		for _, line := range lines[1:] {
			name, value, ok := strings.Cut(line, ": ")
			if !ok || strings.ContainsAny(line, "\r\n\x00") || strings.TrimSpace(name) != name {
				t.Errorf("a header that is none: %q", line)
			}
			switch strings.ToLower(name) {
			case "content-length":
				framings++
				for _, d := range value {
					length = 10*length + int(d-'0')
				}
			case "transfer-encoding":
				framings++
				chunked = value == "chunked"
				if !chunked {
					t.Errorf("Transfer-Encoding: %s", value)
				}
			}
		}
		if framings > 1 {
			t.Errorf("framed in more than one way: %q", head)
		}
		if chunked {
			i := strings.Index(rest, "0\r\n\r\n")
			if i < 0 {
				return targets
			}
			rest = rest[i+5:]
		} else {
			if length > len(rest) {
				return targets
			}
			rest = rest[length:]
		}
		targets = append(targets, strings.Fields(lines[0])[1])
		b = rest
	}
	return targets
}

func TestServerLimits(t *testing.T) {
	s := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), LimitsConfig{Header: 8 << 10, HeaderWait: 50 * time.Millisecond}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	addr := l.Addr().String()
	if got := raw(t, addr, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 20<<10)+"\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("a header too large: %q", got)
	}
	if got := raw(t, addr, "GET / HTTP/1.1\r\nHost"); strings.HasPrefix(got, "HTTP/1.1 2") {
		t.Errorf("a header too slow: %q", got)
	}
}

// TestServerProtocols speaks HTTP/1.1, h2c and HTTP/2 over TLS.
func TestServerProtocols(t *testing.T) {
	proto := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS()
	defer cert.Close()
	for _, c := range []struct {
		name, scheme, want string
		set                func(*http.Protocols)
	}{
		{"HTTP/1.1", "http", "HTTP/1.1", func(p *http.Protocols) { p.SetHTTP1(true) }},
		{"h2c", "http", "HTTP/2.0", func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }},
		{"TLS", "https", "HTTP/2.0", func(p *http.Protocols) { p.SetHTTP2(true); p.SetHTTP1(true) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var config *tls.Config
			if c.scheme == "https" {
				config = &tls.Config{Certificates: cert.TLS.Certificates, MinVersion: tls.VersionTLS12}
			}
			s := NewServer(proto, LimitsConfig{}, config)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if config != nil {
					_ = s.ServeTLS(Guard(l, 0), "", "")
				} else {
					_ = s.Serve(Guard(l, 0))
				}
			}()
			t.Cleanup(func() { _ = s.Close() })
			tr := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			c.set(tr.Protocols)
			t.Cleanup(tr.CloseIdleConnections)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.scheme+"://"+l.Addr().String(), nil)
			res, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got, _ := io.ReadAll(res.Body); string(got) != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
