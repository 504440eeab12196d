package binary

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Proxy is a running `geoproxy serve`.
type Proxy struct {
	URL     string // of the proxy itself
	Address string // its host and port
	Health  string // URL of healthz, readyz and metrics
	Admin   string // URL of the admin listener

	fixed   string // the part of the config file that a test does not write
	file    string // the config file
	process *exec.Cmd
	log     *output
	done    chan struct{} // closed when the process has ended
	err     error         // how it ended
}

// Start runs a binary with a config of its own ports and data folder added, and
// waits until it is ready. It is stopped when the test ends; a data race that
// it reported, or an exit status other than 0, fails the test.
func Start(t *testing.T, binary, config string) *Proxy {
	t.Helper()
	dir := t.TempDir()
	p := &Proxy{
		fixed: fmt.Sprintf("listen: %[1]q\nhealth: %[1]q\nadmin: %[1]q\ndata_dir: %[2]q\n",
			"127.0.0.1:0", filepath.Join(dir, "data")),
		file: filepath.Join(dir, "geoproxy.yaml"),
		log:  &output{},
		done: make(chan struct{}),
	}
	if !strings.Contains(config, "limits:") {
		p.fixed += "limits: { drain_delay: 1ms }\n" // nobody watches readiness here
	}
	p.Write(t, config)
	p.process = exec.Command(binary, "serve", "--config", p.file)
	p.process.Stdout, p.process.Stderr = p.log, p.log
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.process.Wait()
		close(p.done)
	}()
	t.Cleanup(func() { p.Stop(t) })
	p.Eventually(t, "up", func() bool {
		p.Address = p.log.address("listen")
		return p.Address != ""
	})
	p.URL = "http://" + p.Address
	p.Health = "http://" + p.log.address("health")
	p.Admin = "http://" + p.log.address("admin")
	p.Eventually(t, "ready", func() bool { return p.get("/readyz") == http.StatusOK })
	return p
}

// Write replaces the config file in one step, as an editor or a ConfigMap does.
func (p *Proxy) Write(t *testing.T, config string) {
	t.Helper()
	next := p.file + ".next"
	if err := os.WriteFile(next, []byte(p.fixed+config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, p.file); err != nil {
		t.Fatal(err)
	}
}

// Signal sends a signal to the process.
func (p *Proxy) Signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the process with SIGTERM and waits for it. Stopping again does
// nothing.
func (p *Proxy) Stop(t *testing.T) {
	t.Helper()
	_ = p.process.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		_ = p.process.Process.Kill()
		<-p.done
		t.Errorf("still running a minute after SIGTERM")
	}
	if p.err != nil {
		t.Errorf("ended with %v", p.err)
	}
	const most = 8 << 10
	log := p.log.String()
	for _, trouble := range []string{"WARNING: DATA RACE", "panic: "} {
		if _, from, found := strings.Cut(log, trouble); found {
			t.Errorf("the process reported trouble: %s%s", trouble, from[:min(len(from), most)])
		}
	}
	if t.Failed() {
		t.Logf("what the process printed last:\n%s", log[max(0, len(log)-most):])
	}
}

// Log is what the process has printed so far.
func (p *Proxy) Log() string { return p.log.String() }

// Eventually waits until something holds, and fails the test if it does not
// within 30 seconds or the process ends.
func (p *Proxy) Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-p.done:
			t.Fatalf("ended (%v) before it was %s:\n%s", p.err, what, p.log)
		case <-deadline:
			t.Fatalf("not %s after 30 s:\n%s", what, p.log)
		}
	}
}

// Metric gives the sum of a metric's samples whose labels contain all of the
// given `name="value"` texts; 0 where there is none.
func (p *Proxy) Metric(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	answer, err := http.Get(p.Health + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
lines:
	for line := range strings.Lines(string(body)) {
		sample, value, found := strings.Cut(strings.TrimSpace(line), "} ")
		if !found {
			sample, value, found = strings.Cut(strings.TrimSpace(line), " ")
		}
		if !found || strings.HasPrefix(line, "#") || (sample != name && !strings.HasPrefix(sample, name+"{")) {
			continue
		}
		for _, label := range labels {
			if !strings.Contains(sample+",", label) {
				continue lines
			}
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric %q: %v", line, err)
		}
		sum += number
	}
	return sum
}

// Memory is the resident memory of the process in bytes, as Linux counts it.
func (p *Proxy) Memory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("no VmRSS in /proc/PID/status")
	return 0
}

// get gives the status of a path of the health listener, 0 where it does not answer.
func (p *Proxy) get(path string) int {
	answer, err := http.Get(p.Health + path)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// output keeps what a process prints while others read it.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// address finds where a listener is in the line that says that the process is
// up: the config leaves the port open.
func (o *output) address(listener string) string {
	found := regexp.MustCompile(`"?\b` + listener + `"?[=:]"?(127\.0\.0\.1:[0-9]+)`).FindStringSubmatch(o.String())
	if found == nil {
		return ""
	}
	return found[1]
}
