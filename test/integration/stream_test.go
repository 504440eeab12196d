package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/geoproxy/geoproxy/test/binary"
)

// shortDeadline has a gate of eight and a deadline that streams outlive.
const shortDeadline = `
gates: { gis: { seats: 8 } }
upstreams: { all: { url: %s, gate: gis } }
routes:
- name: all
  upstream: all
  family: http
  classes:
    read: { admission: 500ms, deadline: 1s, inline: 500ms }
    write: { admission: 500ms, deadline: 1s, inline: 500ms }
`

// pastDeadline is how long streams are kept open to outlive it.
const pastDeadline = 1500 * time.Millisecond

func TestWebSocketsPassAndHoldNoSeat(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		connection, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		defer connection.CloseNow()
		for {
			kind, message, err := connection.Read(r.Context())
			if err != nil {
				return
			}
			if err := connection.Write(r.Context(), kind, message); err != nil {
				return
			}
		}
	}))
	t.Cleanup(up.Close)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(shortDeadline, up.URL))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	sockets := make([]*websocket.Conn, 8)
	for i := range sockets {
		socket, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(proxy.URL, "http")+"/live", nil)
		if err != nil {
			t.Fatalf("socket %d: %v", i, err)
		}
		defer socket.CloseNow()
		sockets[i] = socket
	}
	echo := func(when string) {
		for i, socket := range sockets {
			want := fmt.Sprintf("%s, socket %d", when, i)
			if err := socket.Write(ctx, websocket.MessageText, []byte(want)); err != nil {
				t.Fatalf("%s: %v", want, err)
			}
			if _, got, err := socket.Read(ctx); err != nil || string(got) != want {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
	}
	echo("at once")
	// Eight sockets are open before a gate of eight.
	if got := call(client(t), proxy.URL+"/"); got.status != http.StatusOK || got.took > 400*time.Millisecond {
		t.Errorf("beside eight sockets: status %d after %v: %s", got.status, got.took, got.body)
	}
	time.Sleep(pastDeadline)
	echo("past the deadline")
	for i, socket := range sockets {
		if err := socket.Close(websocket.StatusNormalClosure, "done"); err != nil {
			t.Errorf("close socket %d: %v", i, err)
		}
	}
}

func TestEventsPassWithoutDelayAndPastTheDeadline(t *testing.T) {
	const apart = 250 * time.Millisecond
	events := int(2*pastDeadline/apart) + 1
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range events {
			_, _ = fmt.Fprintf(w, "data: %d\n\n", time.Now().UnixNano())
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			select {
			case <-time.After(apart):
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(up.Close)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(shortDeadline, up.URL))

	got, err := client(t).Get(proxy.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	seen := 0
	lines := bufio.NewScanner(got.Body)
	for lines.Scan() {
		var sent int64
		if _, err := fmt.Sscanf(lines.Text(), "data: %d", &sent); err != nil {
			continue
		}
		seen++
		if late := time.Since(time.Unix(0, sent)); late > apart {
			t.Errorf("event %d came %v after it was sent", seen, late)
		}
	}
	if err := lines.Err(); err != nil || seen != events {
		t.Errorf("%d events, error %v, want %d", seen, err, events)
	}
}

// An answer that fits the response buffer frees its seat, however slowly the
// client reads it.
func TestSlowReadersDoNotCloseTheGate(t *testing.T) {
	const size = 200 << 10
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, size))
		}
	}))
	t.Cleanup(up.Close)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(shortDeadline, up.URL))

	for i := range 8 {
		connection := dialSmall(t, proxy.Address)
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET /large HTTP/1.1\r\nHost: slow\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		// One read shows that the answer has begun; then 2 KB a second.
		if _, err := io.ReadFull(connection, make([]byte, 2<<10)); err != nil {
			t.Fatalf("slow reader %d: %v", i, err)
		}
		go func() {
			for {
				time.Sleep(time.Second)
				if _, err := io.ReadFull(connection, make([]byte, 2<<10)); err != nil {
					return
				}
			}
		}()
	}
	c := client(t)
	for range 20 {
		if got := call(c, proxy.URL+"/"); got.status != http.StatusOK || got.took > 400*time.Millisecond {
			t.Fatalf("beside eight slow readers: status %d after %v: %s", got.status, got.took, got.body)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
