package integration_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

// Whoever takes nothing of an answer does not keep the process from ending: it
// stops within limits.drain and a little.
func TestDrainIsBounded(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	defer up.Close()
	proxy := binary.Start(t, binary.Path(t), fmt.Sprintf(`
upstream: %s
limits: { drain_delay: 1ms, drain: 1s }
`, up.URL))
	conn, err := net.Dial("tcp", proxy.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	proxy.Stop(t)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
}
