package integration_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

// What geoproxy prices it does not rewrite: the target and the body of a
// request arrive byte for byte.
func TestRequestsArriveAsTheyWereSent(t *testing.T) {
	type arrival struct{ method, target, body string }
	arrivals := make(chan arrival, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte(err.Error())
		}
		arrivals <- arrival{r.Method, r.RequestURI, string(body)}
	}))
	t.Cleanup(up.Close)
	// Whatever a request is estimated at, it is to go on.
	config := fmt.Sprintf(`
upstreams: { all: { url: %s, gate: { seats: 64 } } }
routes:
- name: all
  upstream: all
  classes:
    tile: { too_big: wait }
    map: { too_big: wait }
    typeahead: { too_big: wait }
    read: { too_big: wait }
    mcp: { too_big: wait }
`, up.URL)
	proxy := binary.Start(t, binary.Path(t), config)

	lines, err := os.ReadFile("testdata/requests.txt")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for line := range strings.Lines(string(lines)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sent++
		method, rest, _ := strings.Cut(line, " ")
		target, body, _ := strings.Cut(rest, " ")
		status := send(t, proxy.Address, method, target, body)
		if status != http.StatusOK {
			t.Errorf("%s: status %d", line, status)
			continue
		}
		want := arrival{method, target, body}
		if got := <-arrivals; got != want {
			t.Errorf("arrived as %q\nwas sent as %q", got, want)
		}
	}
	if sent < 80 {
		t.Errorf("the list has %d requests, want 80 or more", sent)
	}
}

// send writes a request by hand, since a client library tidies it up, and
// gives the status of the answer.
func send(t *testing.T, address, method, target, body string) int {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, target, address)
	if body != "" {
		kind := "application/x-www-form-urlencoded"
		switch body[0] {
		case '{':
			kind = "application/json"
		case '<':
			kind = "text/xml"
		}
		head += fmt.Sprintf("Content-Type: %s\r\nContent-Length: %d\r\n", kind, len(body))
	}
	if _, err := io.WriteString(connection, head+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
