package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
)

// BenchmarkForward compares forward with a ReverseProxy that is tuned the same
// and does nothing, and with one as it comes. Client and upstream allocate
// nothing, so that what is counted is the proxy's.
func BenchmarkForward(b *testing.B) {
	answers := []struct{ name, request, answer string }{
		{"2KiB", "GET /collections/a/items?limit=10 HTTP/1.1\r\n", plainAnswer(2 << 10)},
		{"2KiBchunked", "GET /collections/a/items?limit=10 HTTP/1.1\r\n", chunkedAnswer(2 << 10)},
		{"50KiB", "GET /tiles/1/2/3 HTTP/1.1\r\n", plainAnswer(50 << 10)},
		{"post", "POST /processes/a/execution HTTP/1.1\r\nContent-Length: 2048\r\n", plainAnswer(2 << 10)},
	}
	for _, a := range answers {
		request := a.request + "Host: api.example.org\r\nAccept: application/json\r\nX-Api-Key: 0123456789abcdef\r\nUser-Agent: bench/1\r\n\r\n"
		body := 0
		if strings.HasPrefix(request, "POST") {
			body = 2048
			request += strings.Repeat("x", body)
		}
		up := cannedUpstream(b, body, a.answer)
		target, err := url.Parse("http://" + up)
		if err != nil {
			b.Fatal(err)
		}
		u, err := newUpstream(UpstreamConfig{URL: target.String()})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(u.close)
		tunedTransport, bareTransport := newTransport((&net.Dialer{}).DialContext, time.Second), &http.Transport{}
		b.Cleanup(tunedTransport.CloseIdleConnections)
		b.Cleanup(bareTransport.CloseIdleConnections)
		tuned := &httputil.ReverseProxy{
			Rewrite:    func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host; p.SetXForwarded() },
			Transport:  tunedTransport,
			BufferPool: chunkPool{},
		}
		bare := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, Transport: bareTransport}
		shared := new(streams)
		config := new(StreamConfig)
		for _, h := range []struct {
			name string
			http.Handler
		}{
			{"bare", bare},
			{"tuned", tuned},
			{"forward", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				x := exchange{deadline: time.Now().Add(30 * time.Second), stream: config, streams: shared, owner: hooks{}}
				u.forward(w, r, &x)
			})},
		} {
			b.Run(a.name+"/"+h.name, func(b *testing.B) { benchmarkProxy(b, h.Handler, request, a.answer) })
		}
	}
}

func plainAnswer(n int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nEtag: \"a\"\r\nDate: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\n%s", n, strings.Repeat("x", n))
}

func chunkedAnswer(n int) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nEtag: \"a\"\r\nDate: Mon, 30 Nov 2026 00:00:00 GMT\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", n, strings.Repeat("x", n))
}

// cannedUpstream answers every request, whose body has so many bytes, the same.
func cannedUpstream(b *testing.B, body int, answer string) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buf, out := make([]byte, 16<<10), []byte(answer)
				for {
					for n, end := 0, -1; end < 0 || n < end; {
						got, err := conn.Read(buf[n:])
						if err != nil {
							return
						}
						n += got
						if i := bytes.Index(buf[:n], []byte("\r\n\r\n")); i >= 0 {
							end = i + 4 + body
						}
					}
					if _, err := conn.Write(out); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func benchmarkProxy(b *testing.B, h http.Handler, request, answer string) {
	b.Helper()
	s := NewServer(h, LimitsConfig{}, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 128<<10)
	out := []byte(request)
	// Every answer is as long as the first.
	if _, err := conn.Write(out); err != nil {
		b.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	_, _ = r.Peek(1)
	n := r.Buffered()
	_, _ = r.Discard(n)
	if n < strings.Count(answer, "x") {
		b.Fatalf("%d bytes for an answer", n)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Discard(n); err != nil {
			b.Fatal(err)
		}
	}
}
