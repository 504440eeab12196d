package integration_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

const gigabyte = 1 << 30

// zeros reads as endless zero bytes.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// large sends and takes a gigabyte.
func large(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/download":
		w.Header().Set("Content-Length", strconv.Itoa(gigabyte))
		_, _ = io.CopyN(w, zeros{}, gigabyte)
	case "/upload":
		n, err := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%d %v", n, err)
	}
}

func TestGigabytesPassInLittleMemory(t *testing.T) {
	const room = 64 << 20
	up := httptest.NewServer(http.HandlerFunc(large))
	t.Cleanup(up.Close)
	proxy := binary.Start(t, binary.Plain(t), fmt.Sprintf("upstream: %s\n", up.URL))
	c := client(t)
	c.Timeout = 5 * time.Minute
	if got := call(c, proxy.URL+"/"); got.status != http.StatusOK {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	idle := proxy.Memory(t)

	for _, test := range []struct {
		name string
		pass func() error
	}{
		{"download", func() error {
			answer, err := c.Get(proxy.URL + "/download")
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			n, err := io.Copy(io.Discard, answer.Body)
			if err != nil || n != gigabyte {
				return fmt.Errorf("%d bytes came, error %w", n, err)
			}
			return nil
		}},
		{"upload", func() error {
			request, err := http.NewRequest(http.MethodPost, proxy.URL+"/upload", io.LimitReader(zeros{}, gigabyte))
			if err != nil {
				return err
			}
			request.ContentLength = gigabyte
			answer, err := c.Do(request)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err != nil || string(body) != fmt.Sprintf("%d <nil>", gigabyte) {
				return fmt.Errorf("status %d, the upstream got %q, error %w", answer.StatusCode, body, err)
			}
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			passed := make(chan error, 1)
			began := time.Now()
			go func() { passed <- test.pass() }()
			most := idle
			for tick := time.Tick(10 * time.Millisecond); ; {
				select {
				case <-tick:
					most = max(most, proxy.Memory(t))
					continue
				case err := <-passed:
					if err != nil {
						t.Fatal(err)
					}
				}
				break
			}
			t.Logf("1 GiB in %v, %d MiB above the idle %d", time.Since(began), (most-idle)>>20, idle>>20)
			if most-idle > room {
				t.Errorf("%d MiB above idle, want at most %d", (most-idle)>>20, room>>20)
			}
		})
	}
}
