//go:build soak

package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

// Twelve minutes of one byte every five seconds: past the route's deadline and
// past everything that bounds a stream, but never idle.
func TestSoakTrickle(t *testing.T) {
	const bytes, apart = 144, 5 * time.Second
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range bytes {
			_, _ = io.WriteString(w, ".")
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			select {
			case <-time.After(apart):
			case <-r.Context().Done():
				t.Errorf("cancelled: %v", r.Context().Err())
				return
			}
		}
	}))
	t.Cleanup(up.Close)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(shortDeadline, up.URL))
	idle := proxy.Memory(t)

	began := time.Now()
	answer, err := http.Get(proxy.URL + "/trickle")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil || len(got) != bytes {
		t.Errorf("%d bytes came in %v, error %v, want %d", len(got), time.Since(began), err, bytes)
	}
	if grown := proxy.Memory(t) - idle; grown > 64<<20 {
		t.Errorf("%d MiB above idle", grown>>20)
	}
	t.Logf("%d bytes in %v", len(got), time.Since(began))
}

// Clients slower than stream.min_rate lose the exchange once their answer does
// not fit the buffer, and with it the seat.
func TestSoakSlowReadersOfLargeAnswersLoseTheirSeats(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, 16<<20))
		}
	}))
	t.Cleanup(up.Close)
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(shortDeadline, up.URL))
	for range 8 {
		connection := dialSmall(t, proxy.Address)
		defer connection.Close()
		if _, err := io.WriteString(connection, "GET /large HTTP/1.1\r\nHost: slow\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(connection, make([]byte, 2<<10)); err != nil {
			t.Fatal(err)
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
	began := time.Now()
	if got := call(c, proxy.URL+"/"); got.status != http.StatusServiceUnavailable {
		t.Fatalf("status %d beside eight answers that fit no buffer, want 503", got.status)
	}
	for call(c, proxy.URL+"/").status != http.StatusOK {
		if time.Since(began) > 2*time.Minute {
			t.Fatal("eight slow readers still hold the gate after two minutes")
		}
		time.Sleep(time.Second)
	}
	t.Logf("a seat was free after %v", time.Since(began))
}
