package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// rig is forward behind a real server, before a real upstream.
type rig struct {
	url      string
	addr     string
	upstream *upstream
	streams  streams
	released atomic.Int64 // exchanges that gave their seat back
	ended    chan *exchange
	server   *http.Server
	stop     context.CancelFunc // of the server's base context
}

// quiet lets the server say what it likes.
func (g *rig) quiet() { g.server.ErrorLog.SetOutput(io.Discard) }

// failing fails a test with what is written to it.
type failing struct{ t *testing.T }

func (f failing) Write(p []byte) (int, error) {
	f.t.Errorf("the server says: %s", p)
	return len(p), nil
}

// hooks owns an exchange with functions; those that are nil do nothing.
type hooks struct {
	onRelease func()
	onAnswer  func(*http.Response)
}

func (h hooks) release() {
	if h.onRelease != nil {
		h.onRelease()
	}
}

func (h hooks) answered(res *http.Response) {
	if h.onAnswer != nil {
		h.onAnswer(res)
	}
}

// exchangeOf is what a test changes of every exchange.
type exchangeOf func(*exchange)

// newRig forwards to the server at url.
func newRig(t *testing.T, cfg UpstreamConfig, set exchangeOf) *rig {
	t.Helper()
	u, err := newUpstream(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(u.close)
	g := &rig{upstream: u, ended: make(chan *exchange, 64)}
	s := NewServer(g.serve(set), LimitsConfig{}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.BaseContext = func(net.Listener) context.Context { return ctx }
	// What net/http has to say of a request is a fault of ours.
	s.ErrorLog = log.New(failing{t}, "", 0)
	go func() { _ = s.Serve(Guard(l, 0)) }()
	t.Cleanup(func() {
		cancel()
		_ = s.Close()
	})
	g.addr, g.server, g.stop = l.Addr().String(), s, cancel
	g.url = "http://" + g.addr
	return g
}

func (g *rig) serve(set exchangeOf) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var once atomic.Bool
		x := &exchange{streams: &g.streams, owner: hooks{onRelease: func() {
			if once.CompareAndSwap(false, true) {
				g.released.Add(1)
			}
		}}}
		if set != nil {
			set(x)
		}
		defer func() {
			select {
			case g.ended <- x:
			default:
			}
		}()
		g.upstream.forward(w, r, x)
		if x.sent {
			return
		}
		status := map[fault]int{faultDeadline: 504, faultUnreachable: 502, faultSlow: 408, faultBody: 413, faultGone: 499}[x.fault]
		w.WriteHeader(status)
	}
}

// end waits for an exchange to be over.
func (g *rig) end(t *testing.T) *exchange {
	t.Helper()
	select {
	case x := <-g.ended:
		return x
	case <-time.After(10 * time.Second):
		t.Fatal("the exchange is not over")
		return nil
	}
}

func newBackend(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// client is one that changes nothing by itself.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// reply is an answer that was read to its end.
type reply struct {
	StatusCode      int
	Header, Trailer http.Header
}

func get(t *testing.T, url string) (reply, string) {
	t.Helper()
	return do(t, newRequest(t.Context(), t, http.MethodGet, url, nil))
}

func newRequest(ctx context.Context, t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func do(t *testing.T, r *http.Request) (reply, string) {
	t.Helper()
	res, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, res.Trailer}, string(b)
}

// raw sends bytes and gives what comes back until the connection is closed, or
// nothing comes for longer than a body is held back for a 100 Continue, or more
// than half a second after something did.
func raw(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, request)
	var all []byte
	buf := make([]byte, 4096)
	for wait := continueWait + time.Second; ; wait = 500 * time.Millisecond {
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return string(all)
		}
	}
}

// targets are request targets that httputil or net/url would change.
var targets = []string{
	"/",
	"/a?",
	"/a?b",
	"/wps?service=WPS&DataInputs=distance=35;unit=km&x=1",
	"/wms?layers=100%&styles=",
	"/wms?a=%zz;b=%&&&=;;",
	"/q?bbox=1,2,3,4&bbox-crs=http://www.opengis.net/def/crs/EPSG/0/3857",
	"/q?z=1&a=2&z=3",
	"/q?filter=name%20LIKE%20'%25%C3%A4%25'&x=+a+%2B",
	"/q?x=\"<>{}|^`[]",
	"/a//b///c",
	"//double/first",
	"/a%2Fb/%2e%2e/c",
	"/a%2fb;v=1/c;d=2",
	"/tiles/{z}/{x}/{y}.png",
	"/a|b\"<>^`",
	"/a/../b/./c",
	"/\xc3\xa4/\xff",
	"/a%C3%A4%20b+c@d:e,f$g!h*i(j)'k",
	"/%00",
	"/q?" + strings.Repeat("k=v&", 3000),
}

func TestTargetPassesByteForByte(t *testing.T) {
	seen := make(chan string, 1)
	up := rawUpstream(t, func(conn net.Conn, head string) {
		line, _, _ := strings.Cut(head, "\r\n")
		seen <- line
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
	})
	for _, prefix := range []string{"", "/base"} {
		g := newRig(t, UpstreamConfig{URL: "http://" + up + prefix}, nil)
		for _, target := range targets {
			if prefix == "/base" && strings.HasPrefix(target, "//") {
				continue
			}
			raw(t, g.addr, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			select {
			case got := <-seen:
				if want := "GET " + prefix + target + " HTTP/1.1"; got != want {
					t.Errorf("the upstream got %q, want %q", got, want)
				}
			case <-time.After(time.Second):
				t.Errorf("%q did not arrive", target)
			}
		}
	}
}

// rawUpstream answers each connection's first request by hand, with the head
// of the request.
func rawUpstream(t *testing.T, answer func(conn net.Conn, head string)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				head, err := readHead(bufio.NewReader(conn))
				if err == nil {
					answer(conn, head)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func readHead(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for !strings.HasSuffix(b.String(), "\r\n\r\n") {
		c, err := r.ReadByte()
		if err != nil {
			return b.String(), err
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

func TestUpstreamQueryComesFirst(t *testing.T) {
	up := newBackend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.RawQuery) })
	g := newRig(t, UpstreamConfig{URL: up.URL + "/?map=/a.map"}, nil)
	if _, got := get(t, g.url+"/x?b=1;c"); got != "map=/a.map&b=1;c" {
		t.Errorf("got %q", got)
	}
	if _, got := get(t, g.url+"/x"); got != "map=/a.map" {
		t.Errorf("got %q", got)
	}
}

func TestForwardedHeaders(t *testing.T) {
	header := make(chan *http.Request, 1)
	up := newBackend(t, func(_ http.ResponseWriter, r *http.Request) { header <- r })
	said := http.Header{
		"X-Forwarded-For":    {"203.0.113.7", "10.0.0.2"},
		"X-Forwarded-Host":   {"maps.example.org"},
		"X-Forwarded-Proto":  {"https"},
		"X-Forwarded-Prefix": {"/gis"},
		"X-Real-Ip":          {"203.0.113.7"},
		"Forwarded":          {"for=203.0.113.7"},
	}
	for _, c := range []struct {
		name    string
		trusted bool
		want    map[string]string
	}{
		{"a stranger's word is dropped", false, map[string]string{
			"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "api.example.org:8080", "X-Forwarded-Proto": "http",
			"X-Forwarded-Prefix": "", "X-Real-Ip": "", "Forwarded": `for=127.0.0.1;host="api.example.org:8080";proto=http`,
		}},
		{"a trusted peer's is kept and appended to", true, map[string]string{
			"X-Forwarded-For": "203.0.113.7, 10.0.0.2, 127.0.0.1", "X-Forwarded-Host": "maps.example.org", "X-Forwarded-Proto": "https",
			"X-Forwarded-Prefix": "/gis", "X-Real-Ip": "203.0.113.7",
			"Forwarded": `for=203.0.113.7, for=127.0.0.1;host="api.example.org:8080";proto=http`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, UpstreamConfig{URL: up.URL}, func(x *exchange) { x.trusted = c.trusted })
			r := newRequest(t.Context(), t, http.MethodGet, g.url, nil)
			r.Host = "api.example.org:8080"
			r.Header = said.Clone()
			do(t, r)
			got := <-header
			if got.Host != "api.example.org:8080" {
				t.Errorf("Host %q", got.Host)
			}
			if ua := got.Header["User-Agent"]; len(ua) != 1 || !strings.HasPrefix(ua[0], "Go-http-client") {
				t.Errorf("User-Agent %q", ua)
			}
			for k, want := range c.want {
				if got := strings.Join(got.Header[k], "|"); got != want {
					t.Errorf("%s: %q, want %q", k, got, want)
				}
			}
		})
	}
}

func TestForwardedElement(t *testing.T) {
	for _, c := range [][4]string{
		{"192.0.2.1", "a.example", "https", `for=192.0.2.1;host="a.example";proto=https`},
		{"2001:db8::1", "[::1]:80", "http", `for="[2001:db8::1]";host="[::1]:80";proto=http`},
		{"fe80::1%eth0", "", "http", `for="[fe80::1]";proto=http`},
		{"unknown", `a"b`, "http", `for=unknown;proto=http`},
	} {
		if got := forwardedElement(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%q, want %q", got, c[3])
		}
	}
}

// TestHopByHop checks RFC 9110 7.6.1, both ways.
func TestHopByHop(t *testing.T) {
	header := make(chan http.Header, 1)
	up := newBackend(t, func(w http.ResponseWriter, r *http.Request) {
		header <- r.Header
		h := w.Header()
		h.Set("Connection", "X-Down")
		h.Set("X-Down", "1")
		h.Set("Keep-Alive", "timeout=5")
		h.Set("Proxy-Authenticate", "Basic")
		h.Set("X-Kept", "1")
	})
	g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
	r := newRequest(t.Context(), t, http.MethodGet, g.url, nil)
	r.Header = http.Header{"Connection": {"X-Up, close"}, "X-Up": {"1"}, "Keep-Alive": {"5"}, "Proxy-Connection": {"x"}, "Te": {"gzip, trailers"}, "X-Stays": {"1"}}
	res, _ := do(t, r)
	got := <-header
	for _, k := range []string{"Connection", "X-Up", "Keep-Alive", "Proxy-Connection"} {
		if got.Get(k) != "" {
			t.Errorf("the upstream got %s: %s", k, got.Get(k))
		}
	}
	if got.Get("Te") != "trailers" || got.Get("X-Stays") != "1" {
		t.Errorf("TE %q, X-Stays %q", got.Get("Te"), got.Get("X-Stays"))
	}
	for _, k := range []string{"X-Down", "Keep-Alive", "Proxy-Authenticate"} {
		if res.Header.Get(k) != "" {
			t.Errorf("the caller got %s: %s", k, res.Header.Get(k))
		}
	}
	if res.Header.Get("X-Kept") != "1" {
		t.Error("X-Kept was lost")
	}
}

func TestAnswersPassAsTheyAre(t *testing.T) {
	for _, c := range []struct {
		name, method, answer string
		status               int
		header               map[string]string
		body                 string
	}{
		{"empty reason phrase", "GET", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", 200, nil, "ok"},
		{"no reason phrase", "GET", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, nil, "ok"},
		{"HTTP/1.0, to the end", "GET", "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold", 200, nil, "old"},
		{"unknown status", "GET", "HTTP/1.1 799 Odd\r\nContent-Length: 1\r\n\r\nx", 799, nil, "x"},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 12345\r\nETag: \"a\"\r\n\r\n", 200, map[string]string{"Content-Length": "12345", "Etag": `"a"`}, ""},
		{"not modified", "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n", 304, map[string]string{"Etag": `"a"`}, ""},
		{"range", "GET", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nab", 206, map[string]string{"Content-Range": "bytes 0-1/9"}, "ab"},
		{"compressed", "GET", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x00", 200, map[string]string{"Content-Encoding": "gzip"}, "\x1f\x8b\x00"},
		{"redirect", "GET", "HTTP/1.1 302 Found\r\nLocation: //else/where\r\nContent-Length: 0\r\n\r\n", 302, map[string]string{"Location": "//else/where"}, ""},
		{"chunks and trailers", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nab\r\n1;ext=1\r\nc\r\n0\r\nX-Sum: 6\r\n\r\n", 200, nil, "abc"},
		{"repeated headers", "GET", "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n", 200, map[string]string{"Set-Cookie": "a=1|b=2"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			up := rawUpstream(t, func(conn net.Conn, _ string) { _, _ = io.WriteString(conn, c.answer) })
			g := newRig(t, UpstreamConfig{URL: "http://" + up}, nil)
			r := newRequest(t.Context(), t, c.method, g.url, nil)
			res, body := do(t, r)
			if res.StatusCode != c.status || body != c.body {
				t.Errorf("%d %q, want %d %q", res.StatusCode, body, c.status, c.body)
			}
			for k, want := range c.header {
				if got := strings.Join(res.Header[k], "|"); got != want {
					t.Errorf("%s: %q, want %q", k, got, want)
				}
			}
			if c.name == "chunks and trailers" && res.Trailer.Get("X-Sum") != "6" {
				t.Errorf("trailers %v", res.Trailer)
			}
			x := g.end(t)
			if x.fault != faultNone || x.status != c.status || x.downBytes != int64(len(c.body)) || g.released.Load() != 1 {
				t.Errorf("%+v, %d released", x, g.released.Load())
			}
		})
	}
}

func TestEarlyHints(t *testing.T) {
	up := newBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "done")
	})
	g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
	var hints []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, h["Link"]))
		return nil
	}}
	r := newRequest(httptrace.WithClientTrace(t.Context(), trace), t, http.MethodGet, g.url, nil)
	if res, body := do(t, r); body != "done" || res.Header.Get("Link") != "" {
		t.Errorf("%q, Link %q", body, res.Header.Get("Link"))
	}
	if want := []string{"103 [</a.css>; rel=preload]"}; !slices.Equal(hints, want) {
		t.Errorf("hints %q, want %q", hints, want)
	}
}

func TestExpectContinue(t *testing.T) {
	t.Run("asked for", func(t *testing.T) {
		up := newBackend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
		g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
		got := raw(t, g.addr, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello")
		if strings.Count(got, "HTTP/1.1 100 Continue\r\n\r\n") != 1 || !strings.HasSuffix(got, "hello") {
			t.Errorf("%q", got)
		}
	})
	t.Run("refused before the body", func(t *testing.T) {
		up := newBackend(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusExpectationFailed) })
		g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
		got := raw(t, g.addr, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 417 ") || strings.Contains(got, "100 Continue") {
			t.Errorf("%q", got)
		}
	})
}

func TestRequestTrailers(t *testing.T) {
	up := newBackend(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.Trailer.Get("X-Sum"))
	})
	g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
	got := raw(t, g.addr, "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\na\r\n0\r\nX-Sum: 6\r\n\r\n")
	if !strings.HasSuffix(got, "\r\n\r\n6") {
		t.Errorf("%q", got)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "up.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	up := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+r.URL.Path)
	})}}
	up.Start()
	t.Cleanup(up.Close)
	g := newRig(t, UpstreamConfig{URL: "unix://" + path}, nil)
	if _, got := get(t, g.url+"/a"); got != g.addr+"/a" {
		t.Errorf("got %q", got)
	}
}

func TestTLSUpstream(t *testing.T) {
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Proto, " ", r.Host, " ", r.Header.Get("X-Forwarded-Host"))
	}))
	up.EnableHTTP2 = true
	up.StartTLS()
	t.Cleanup(up.Close)
	g := newRig(t, UpstreamConfig{URL: up.URL, TLS: UpstreamTLS{Insecure: true}}, nil)
	if _, got := get(t, g.url); got != "HTTP/2.0 "+up.Listener.Addr().String()+" "+g.addr {
		t.Errorf("got %q", got)
	}
	g = newRig(t, UpstreamConfig{URL: up.URL, Protocol: "http1", TLS: UpstreamTLS{Insecure: true}}, nil)
	if _, got := get(t, g.url); !strings.HasPrefix(got, "HTTP/1.1 ") {
		t.Errorf("got %q", got)
	}
	g = newRig(t, UpstreamConfig{URL: up.URL}, nil)
	if res, _ := get(t, g.url); res.StatusCode != http.StatusBadGateway {
		t.Errorf("an unknown authority: %d", res.StatusCode)
	}
	var unknown *tls.CertificateVerificationError
	if x := g.end(t); x.fault != faultUnreachable || !errors.As(x.err, &unknown) {
		t.Errorf("%+v", x)
	}
}

func TestBadUpstreams(t *testing.T) {
	for _, c := range []struct {
		cfg  UpstreamConfig
		want string
	}{
		{UpstreamConfig{}, `url: "" is none of http, https and unix`},
		{UpstreamConfig{URL: "ftp://a"}, `url: "ftp" is none of http, https and unix`},
		{UpstreamConfig{URL: "http://"}, "url: no host"},
		{UpstreamConfig{URL: "http://u:p@h"}, "url: a name and password do not belong here"},
		{UpstreamConfig{URL: "http://u:secret@h:port"}, `url: invalid port ":port" after host`},
		{UpstreamConfig{URL: "unix://a/b"}, "url: a socket is written unix:///path/to/socket"},
		{UpstreamConfig{URL: "http://a", Protocol: "h3"}, `protocol: "h3" is none of auto, http1 and h2c`},
		{UpstreamConfig{URL: "https://a", Protocol: "h2c"}, "protocol: h2c is for plain upstreams; TLS negotiates HTTP/2 by itself"},
		{UpstreamConfig{URL: "http://a", TLS: UpstreamTLS{CA: "x"}}, "tls: the upstream's url is not https"},
		{UpstreamConfig{URL: "https://a", TLS: UpstreamTLS{Cert: "x"}}, "tls: cert and key go together"},
		{UpstreamConfig{URL: "https://a", TLS: UpstreamTLS{CA: "/nowhere"}}, "tls: ca: open /nowhere: no such file or directory"},
	} {
		if _, err := newUpstream(c.cfg); err == nil || err.Error() != c.want {
			t.Errorf("%+v: %v, want %s", c.cfg, err, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	t.Run("no header by the deadline", func(t *testing.T) {
		gone := make(chan struct{})
		up := newBackend(t, func(w http.ResponseWriter, r *http.Request) { hang(w, r); close(gone) })
		g := newRig(t, UpstreamConfig{URL: up.URL}, func(x *exchange) { x.deadline = time.Now().Add(50 * time.Millisecond) })
		if res, _ := get(t, g.url); res.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("%d", res.StatusCode)
		}
		<-gone
		if x := g.end(t); x.fault != faultDeadline || x.sent || g.released.Load() != 1 {
			t.Errorf("%+v", x)
		}
	})
	t.Run("the deadline had passed", func(t *testing.T) {
		up := newBackend(t, func(http.ResponseWriter, *http.Request) { t.Error("the upstream was touched") })
		g := newRig(t, UpstreamConfig{URL: up.URL}, func(x *exchange) { x.deadline = time.Now().Add(-time.Second) })
		if res, _ := get(t, g.url); res.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("%d", res.StatusCode)
		}
	})
	t.Run("the deadline does not bound the body", func(t *testing.T) {
		up := newBackend(t, func(w http.ResponseWriter, _ *http.Request) {
			for range 4 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(40 * time.Millisecond)
			}
		})
		g := newRig(t, UpstreamConfig{URL: up.URL}, func(x *exchange) { x.deadline = time.Now().Add(60 * time.Millisecond) })
		if _, body := get(t, g.url); body != "xxxx" {
			t.Errorf("%q", body)
		}
	})
	t.Run("unreachable", func(t *testing.T) {
		g := newRig(t, UpstreamConfig{URL: "http://127.0.0.1:1"}, nil)
		if res, _ := get(t, g.url); res.StatusCode != http.StatusBadGateway {
			t.Errorf("%d", res.StatusCode)
		}
		if x := g.end(t); x.fault != faultUnreachable || x.err == nil || x.sent {
			t.Errorf("%+v", x)
		}
	})
	t.Run("the caller leaves", func(t *testing.T) {
		here, gone := make(chan struct{}), make(chan struct{})
		up := newBackend(t, func(w http.ResponseWriter, r *http.Request) { close(here); hang(w, r); close(gone) })
		g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-here; cancel() }()
		r := newRequest(ctx, t, http.MethodGet, g.url, nil)
		if _, err := client(t).Do(r); err == nil {
			t.Error("an answer")
		}
		<-gone
		if x := g.end(t); x.fault != faultGone || g.released.Load() != 1 {
			t.Errorf("%+v", x)
		}
	})
	t.Run("the caller leaves amid the answer", func(t *testing.T) {
		gone := make(chan struct{})
		up := newBackend(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begun")
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
			close(gone)
		})
		g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		r := newRequest(ctx, t, http.MethodGet, g.url, nil)
		res, err := client(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = res.Body.Close()
		<-gone
		if x := g.end(t); x.fault != faultGone || !x.sent || g.released.Load() != 1 {
			t.Errorf("%+v", x)
		}
	})
	for name, answer := range map[string]string{
		"broken off, with a length": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
		"broken off, in chunks":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			up := rawUpstream(t, func(conn net.Conn, _ string) { _, _ = io.WriteString(conn, answer) })
			g := newRig(t, UpstreamConfig{URL: "http://" + up}, nil)
			r := newRequest(t.Context(), t, http.MethodGet, g.url, nil)
			res, err := client(t).Do(r)
			if err == nil {
				_, err = io.ReadAll(res.Body)
				_ = res.Body.Close()
			}
			if err == nil {
				t.Error("the answer looks complete")
			}
			if x := g.end(t); x.fault != faultBroken || x.err == nil || !x.sent || g.released.Load() != 1 {
				t.Errorf("%+v", x)
			}
		})
	}
	t.Run("garbage for a header", func(t *testing.T) {
		for _, answer := range []string{"SSH-2.0\r\n\r\n", "HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", ""} {
			up := rawUpstream(t, func(conn net.Conn, _ string) { _, _ = io.WriteString(conn, answer) })
			g := newRig(t, UpstreamConfig{URL: "http://" + up}, nil)
			if res, _ := get(t, g.url); res.StatusCode != http.StatusBadGateway {
				t.Errorf("%q: %d", answer, res.StatusCode)
			}
		}
	})
}

func TestMaxBody(t *testing.T) {
	up := newBackend(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n, err)
	})
	g := newRig(t, UpstreamConfig{URL: up.URL}, func(x *exchange) { x.maxBody = 10 })
	for _, c := range []struct {
		n       int
		chunked bool
		want    int
	}{{10, false, 200}, {11, false, 413}, {10, true, 200}, {11, true, 413}, {1 << 20, true, 413}} {
		var body io.Reader = strings.NewReader(strings.Repeat("x", c.n))
		if c.chunked {
			body = io.MultiReader(body) // of unknown length
		}
		res, _ := do(t, newRequest(t.Context(), t, http.MethodPost, g.url, body))
		if x := g.end(t); res.StatusCode != c.want || (c.want == 413) != (x.fault == faultBody) {
			t.Errorf("%+v: %d %+v", c, res.StatusCode, x)
		}
	}
}

// TestEarlyAnswer has the upstream answer while the caller still sends.
func TestEarlyAnswer(t *testing.T) {
	up := newBackend(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Connection", "close") // or net/http reads on while the body is still read
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "no")
	})
	g := newRig(t, UpstreamConfig{URL: up.URL}, nil)
	got := raw(t, g.addr, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc")
	if !strings.HasPrefix(got, "HTTP/1.1 403 ") || !strings.Contains(got, "Connection: close\r\n") || !strings.HasSuffix(got, "no") {
		t.Errorf("%q", got)
	}
	if x := g.end(t); x.fault != faultNone || g.released.Load() != 1 {
		t.Errorf("%+v", x)
	}
}
