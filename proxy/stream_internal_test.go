package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a network of net.Pipes: no kernel buffer hides that a peer does not
// read, and a synctest bubble knows when everybody waits.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// bubble is forward between two pipes, in fake time.
type bubble struct {
	t        *testing.T
	front    *pipes
	streams  streams
	released atomic.Int64
	ended    chan *exchange
	began    time.Time
	clients  sync.WaitGroup
}

// inBubble runs body with a front that forwards to h.
func inBubble(t *testing.T, h http.HandlerFunc, set exchangeOf, body func(b *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, front: newPipes(), ended: make(chan *exchange, 32), began: time.Now()}
		back := newPipes()
		u, err := newUpstream(UpstreamConfig{URL: "http://up"})
		if err != nil {
			t.Fatal(err)
		}
		u.http1.DialContext, u.h2c.DialContext = back.dial, back.dial
		backend := NewServer(h, LimitsConfig{}, nil)
		front := NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var once sync.Once
			x := &exchange{streams: &b.streams, stream: &StreamConfig{}, owner: hooks{onRelease: func() { once.Do(func() { b.released.Add(1) }) }}}
			if set != nil {
				set(x)
			}
			defer func() { b.ended <- x }()
			u.forward(w, r, x)
			if !x.sent {
				w.WriteHeader(map[fault]int{faultDeadline: 504, faultSlow: 408, faultGone: 499, faultUnreachable: 502}[x.fault])
			}
		}), LimitsConfig{}, nil)
		var servers sync.WaitGroup
		servers.Go(func() { _ = backend.Serve(back) })
		servers.Go(func() { _ = front.Serve(Guard(b.front, 0)) })
		body(b)
		_ = front.Close()
		u.close()
		_ = backend.Close()
		servers.Wait()
		b.clients.Wait()
		time.Sleep(time.Minute) // net/http's connections linger
	})
}

// send opens a connection and writes a request, without reading the answer.
func (b *bubble) send(request string) (net.Conn, *bufio.Reader) {
	b.t.Helper()
	conn, err := b.front.dial(b.t.Context(), "", "")
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		b.t.Fatal(err)
	}
	return conn, bufio.NewReaderSize(conn, 64)
}

// get sends a GET and gives the answer's body, of which nothing was read.
func (b *bubble) get() (net.Conn, io.Reader) {
	b.t.Helper()
	conn, r := b.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, body := b.answer(r)
	return conn, body
}

// answer reads an answer's header. Its body goes with its connection, which
// the end of the bubble closes.
func (b *bubble) answer(r *bufio.Reader) (int, io.Reader) {
	b.t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, res.Body
}

// end waits until the exchange is over and says how long after the bubble
// began that was.
func (b *bubble) end() (*exchange, time.Duration) {
	x := <-b.ended
	return x, time.Since(b.began)
}

// slowly reads r at rate bytes a second until it ends.
func slowly(r io.Reader, rate int) (int, error) {
	buf := make([]byte, rate)
	for n := 0; ; {
		got, err := io.ReadFull(r, buf)
		n += got
		if err != nil {
			return n, err
		}
		time.Sleep(time.Second)
	}
}

func sized(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(n))
		_, _ = io.Copy(w, io.LimitReader(pattern{}, int64(n)))
	}
}

// pattern is an endless body that shows where a byte was lost or doubled, for
// reads that are multiples of 8.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte('a' + i%8)
	}
	return len(p), nil
}

func TestSlowReaderHoldsNoSeat(t *testing.T) {
	const size = 200 << 10
	inBubble(t, sized(size), nil, func(b *bubble) {
		conn, body := b.get()
		time.Sleep(time.Second)
		synctest.Wait()
		if b.released.Load() != 1 {
			t.Error("the seat is still held, though the body fits the buffer")
		}
		if got := b.streams.buffered.Load(); got == 0 || got > defaultBuffer {
			t.Errorf("%d bytes set aside", got)
		}
		n, err := slowly(body, 4<<10)
		if n != size || !errors.Is(err, io.EOF) {
			t.Errorf("%d bytes, %v", n, err)
		}
		_ = conn.Close()
		if x, _ := b.end(); x.fault != faultNone || x.downBytes != size {
			t.Errorf("%+v", x)
		}
		if b.streams.buffered.Load() != 0 {
			t.Error("the buffer was not given back")
		}
	})
}

func TestSlowReadersAreCut(t *testing.T) {
	inBubble(t, sized(64<<20), nil, func(b *bubble) {
		for range 8 {
			_, body := b.get()
			b.clients.Go(func() { _, _ = slowly(body, 2<<10) })
		}
		for range 8 {
			x, after := b.end()
			if x.fault != faultSlow || !errors.Is(x.err, errSlowDown) || after < slowWindow || after > slowWindow+2*longestTick {
				t.Errorf("after %v: %v %v", after, x.fault, x.err)
			}
		}
		synctest.Wait()
		if b.released.Load() != 8 || b.streams.buffered.Load() != 0 {
			t.Errorf("%d released, %d buffered", b.released.Load(), b.streams.buffered.Load())
		}
	})
}

func TestFairReaderIsNotCut(t *testing.T) {
	const size = 2 << 20
	inBubble(t, sized(size), nil, func(b *bubble) {
		_, body := b.get()
		if n, _ := slowly(body, 6<<10); n != size {
			t.Errorf("%d bytes", n)
		}
	})
}

func TestTrickleLastsForHours(t *testing.T) {
	for _, length := range []string{"", "100"} {
		testTrickle(t, length)
	}
}

func testTrickle(t *testing.T, length string) {
	t.Helper()
	deadline := func(x *exchange) { x.deadline = time.Now().Add(10 * time.Second) }
	inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
		if length != "" {
			w.Header().Set("Content-Length", length)
		}
		for range 100 {
			_, _ = io.WriteString(w, "x")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Second)
		}
	}, deadline, func(b *bubble) {
		_, body := b.get()
		for i := range 100 {
			if i == 99 && b.released.Load() != 0 {
				t.Error("the seat was given back while the upstream worked")
			}
			at := time.Now()
			one := make([]byte, 1)
			if _, err := io.ReadFull(body, one); err != nil {
				t.Fatal(err)
			}
			if wait := time.Since(at); wait%(50*time.Second) != 0 {
				t.Fatalf("a byte came %v late", wait)
			}
		}
		if _, err := io.ReadAll(body); err != nil {
			t.Error(err)
		}
		if x, after := b.end(); x.fault != faultNone || after < time.Hour || x.waited < time.Hour {
			t.Errorf("after %v: %+v", after, x)
		}
	})
}

func TestSilenceIsCut(t *testing.T) {
	silent := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	t.Run("the upstream's", func(t *testing.T) {
		inBubble(t, silent, nil, func(b *bubble) {
			_, body := b.get()
			if _, err := io.ReadAll(body); err == nil {
				t.Error("the answer looks complete")
			}
			if x, after := b.end(); x.fault != faultBroken || !errors.Is(x.err, errIdle) || after != defaultIdle {
				t.Errorf("after %v: %v %v", after, x.fault, x.err)
			}
		})
	})
	t.Run("the caller's, who holds no seat", func(t *testing.T) {
		inBubble(t, sized(100<<10), nil, func(b *bubble) {
			b.get()
			if x, after := b.end(); x.fault != faultSlow || !errors.Is(x.err, errIdle) || after < defaultIdle || after > defaultIdle+time.Second {
				t.Errorf("after %v: %v %v", after, x.fault, x.err)
			}
		})
	})
	t.Run("the caller's, of a small answer", func(t *testing.T) {
		inBubble(t, sized(100), nil, func(b *bubble) {
			conn, _ := b.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			b.end()
			time.Sleep(defaultIdle + 2*time.Second)
			if _, err := conn.Write([]byte("x")); err == nil {
				t.Error("the connection is still open")
			}
		})
	})
	t.Run("max", func(t *testing.T) {
		inBubble(t, silent, func(x *exchange) { x.stream.Max = 10 * time.Second }, func(b *bubble) {
			_, body := b.get()
			_, _ = io.ReadAll(body)
			if x, after := b.end(); x.fault == faultNone || !errors.Is(x.err, errMax) || after != 10*time.Second {
				t.Errorf("after %v: %v %v", after, x.fault, x.err)
			}
		})
	})
}

func TestEventStream(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for i := range 10 {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(45 * time.Second)
		}
	}, func(x *exchange) { x.deadline = time.Now().Add(time.Second) }, func(b *bubble) {
		_, body := b.get()
		synctest.Wait()
		if b.released.Load() != 1 || b.streams.open.Load() != 1 {
			t.Error("an event stream holds a seat")
		}
		r := bufio.NewReader(body)
		for i := range 10 {
			line, err := r.ReadString('\n')
			_, _ = r.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", i); line != want || err != nil || time.Since(b.began) != time.Duration(i)*45*time.Second {
				t.Fatalf("%v: %q %v", time.Since(b.began), line, err)
			}
		}
		if _, err := io.ReadAll(r); err != nil {
			t.Error(err)
		}
		if x, _ := b.end(); x.fault != faultNone || b.streams.open.Load() != 0 {
			t.Errorf("%+v", x)
		}
	})
}

// TestUploads has callers and upstreams of different speeds.
func TestUploads(t *testing.T) {
	const size = 400 << 10
	type speeds struct {
		name         string
		caller, back int // bytes a second; 0 is at once
		status       int
		fault        fault
		after        time.Duration
	}
	for _, c := range []speeds{
		{"a fair caller, past the deadline", 6 << 10, 0, 200, faultNone, 66 * time.Second},
		{"a slow caller", 2 << 10, 0, 408, faultSlow, slowWindow},
		{"a slow upstream that moves", 0, 100 << 10, 200, faultNone, 4 * time.Second},
		{"an upstream that takes nothing", 0, 1, 504, faultDeadline, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w http.ResponseWriter, r *http.Request) {
				if c.back == 1 {
					time.Sleep(20 * time.Second) // net/http sees no caller leave whose body is unread
					return
				}
				if c.back > 0 {
					_, _ = slowly(r.Body, c.back)
				} else {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				_, _ = io.WriteString(w, "ok")
			}, func(x *exchange) { x.deadline = time.Now().Add(10 * time.Second) }, func(b *bubble) {
				conn, r := b.send(fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size))
				b.clients.Go(func() {
					body := io.LimitReader(pattern{}, size)
					for {
						n := int64(c.caller)
						if n == 0 {
							n = size
						}
						if n, err := io.CopyN(conn, body, n); n == 0 || err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				})
				if status, _ := b.answer(r); status != c.status {
					t.Errorf("%d, want %d", status, c.status)
				}
				x, after := b.end()
				if x.fault != c.fault || after < c.after || after > c.after+2*time.Second || b.released.Load() != 1 {
					t.Errorf("after %v: %v %v", after, x.fault, x.err)
				}
				if c.fault == faultNone && x.waited > 2*time.Second {
					t.Errorf("the upload counts as waiting for the upstream: %v", x.waited)
				}
			})
		})
	}
}

func TestBufferTotal(t *testing.T) {
	inBubble(t, sized(200<<10), func(x *exchange) {
		x.stream.BufferTotal = defaultBuffer
		x.stream.MinRate = 1
	}, func(b *bubble) {
		_, first := b.get()
		time.Sleep(time.Second)
		_, second := b.get()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := b.streams.buffered.Load(); got > defaultBuffer {
			t.Errorf("%d bytes set aside", got)
		}
		if b.released.Load() != 1 {
			t.Errorf("%d seats given back, want the first's", b.released.Load())
		}
		for _, answer := range []io.Reader{first, second} {
			body, err := io.ReadAll(answer)
			if err != nil || string(body) != strings.Repeat("abcdefgh", 200<<10/8) {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		}
		synctest.Wait()
		if b.released.Load() != 2 || b.streams.buffered.Load() != 0 {
			t.Errorf("%d released, %d buffered", b.released.Load(), b.streams.buffered.Load())
		}
	})
}

// TestPanicReleases has a hook of the front end fail.
func TestPanicReleases(t *testing.T) {
	inBubble(t, sized(1<<20), func(x *exchange) {
		h, ok := x.owner.(hooks)
		if !ok {
			t.Fatal("another owner")
		}
		h.onAnswer = func(*http.Response) { panic(http.ErrAbortHandler) }
		x.owner = h
	}, func(b *bubble) {
		_, r := b.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, err := http.ReadResponse(r, nil); err == nil {
			t.Error("an answer")
		}
		b.end()
		if b.released.Load() != 1 {
			t.Error("the seat was not given back")
		}
	})
}

func TestAnswersFollowOneAnother(t *testing.T) {
	inBubble(t, sized(100), nil, func(b *bubble) {
		conn, r := b.send("")
		for range 20 {
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			_, answer := b.answer(r)
			if body, err := io.ReadAll(answer); len(body) != 100 || err != nil {
				t.Fatal(len(body), err)
			}
			b.end()
			time.Sleep(time.Second)
		}
		if got := b.released.Load(); got != 20 {
			t.Errorf("%d released", got)
		}
	})
}

// TestSlowCallersOverHTTP2 stalls streams of a connection that others share.
func TestSlowCallersOverHTTP2(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		sized(64<<20)(w, r)
	}, nil, func(b *bubble) {
		tr := &http.Transport{DialContext: b.front.dial, Protocols: new(http.Protocols), DisableCompression: true}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()

		r, _ := http.NewRequestWithContext(b.t.Context(), http.MethodGet, "http://x/", nil)
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		b.clients.Go(func() {
			_, _ = slowly(res.Body, 2<<10)
			_ = res.Body.Close()
		})
		if x, after := b.end(); x.fault != faultSlow || !errors.Is(x.err, errSlowDown) || after < slowWindow || after > slowWindow+2*longestTick {
			t.Errorf("after %v: %v %v", after, x.fault, x.err)
		}

		begun := time.Now()
		body, more := io.Pipe()
		b.clients.Go(func() {
			for {
				if _, err := more.Write(make([]byte, 2<<10)); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		r, _ = http.NewRequestWithContext(b.t.Context(), http.MethodPost, "http://x/", body)
		res, err = tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		_ = body.Close()
		if x, _ := b.end(); x.fault != faultSlow || res.StatusCode != http.StatusRequestTimeout || time.Since(begun) > slowWindow+2*longestTick {
			t.Errorf("after %v: %s %v %v", time.Since(begun), res.Status, x.fault, x.err)
		}
		if b.released.Load() != 2 {
			t.Errorf("%d released", b.released.Load())
		}
	})
}

// An alarm may still ring for the call before when it gets the next one, and
// looks at that one while it is armed.
func TestAnAlarmThatRingsLateLooksAtTheNextCall(t *testing.T) {
	u, err := newUpstream(UpstreamConfig{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer u.close()
	u.proxy.Transport = late{func() time.Duration { return 0 }}
	a, _ := newAlarm().(*alarm)
	u.alarms.New = func() any { return a }
	done := make(chan struct{})
	var ringing sync.WaitGroup
	ringing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if c := a.call.Load(); c != nil {
				c.look()
			}
		}
	})
	for range 1000 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		x := &exchange{owner: &nobody{}, deadline: time.Now().Add(time.Minute)}
		u.forward(&counter{header: http.Header{}}, r, x)
		if !x.sent || x.fault != faultNone {
			t.Fatalf("sent %v, fault %d", x.sent, x.fault)
		}
	}
	close(done)
	ringing.Wait()
}
