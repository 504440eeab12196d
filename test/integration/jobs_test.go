package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/binary"
)

// A process that is killed with jobs queued and running is followed by one that
// ends every one of them, without a word from anybody.
func TestJobsSurviveAKill(t *testing.T) {
	up := slowUpstream(t, 300*time.Millisecond)
	dir := t.TempDir()
	config := filepath.Join(dir, "geoproxy.yaml")
	text := fmt.Sprintf("listen: 127.0.0.1:0\nhealth: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: %q\nroutes:\n- upstream: %s\n  jobs: { workers: 2 }\n", filepath.Join(dir, "data"), up.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var locations []string
	for round := range 3 {
		cmd := exec.CommandContext(t.Context(), binary.Path(t), "serve", "--config", config)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		base := ""
		lines := bufio.NewScanner(out)
		for base == "" && lines.Scan() {
			var entry struct{ Listen string }
			if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Listen != "" {
				base = "http://" + entry.Listen
			}
		}
		go func() {
			for lines.Scan() { // so that it is never held up
			}
		}()
		ask := func(method, path string) (int, string, string) {
			r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Prefer", "respond-async")
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, res.Header.Get("Location"), string(body)
		}
		if round < 2 {
			for i := range 4 {
				status, location, body := ask(http.MethodGet, fmt.Sprintf("/round/%d/%d", round, i))
				if status != http.StatusAccepted {
					t.Fatalf("%d: %s", status, body)
				}
				locations = append(locations, location)
			}
			time.Sleep(400 * time.Millisecond) // some have ended, some run, some wait
		} else {
			for _, location := range locations {
				for end := time.Now().Add(30 * time.Second); ; {
					_, _, body := ask(http.MethodGet, location+"?wait=10")
					if strings.Contains(body, `"status":"successful"`) {
						break
					}
					if !strings.Contains(body, `"action":"wait_job"`) || time.Now().After(end) {
						t.Fatalf("%s: %s", location, body)
					}
				}
				if status, _, body := ask(http.MethodGet, location+"/results"); status != http.StatusOK || body == "" {
					t.Errorf("%s: %d %q", location, status, body)
				}
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
}
