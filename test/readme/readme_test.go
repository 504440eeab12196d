package readme_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/test/readme"
)

// The notes that a block may carry, in a comment on the line before it.
const (
	noteTest = "test command"             // what .ci/run runs; here only its targets are looked up
	noteRuns = "runs until interrupted: " // the URL that answers 200 when it is up follows
	noteFile = "the file "                // the block is the content of that file
)

// root is the folder that the README's commands are run in.
const root = "../.."

// Every command of the README is run from top to bottom, as its reader would,
// and prints what the README says that it prints. What runs until it is
// interrupted goes on beside the commands that follow, until the next such.
func TestREADME(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := readme.Blocks(string(page))
	if err != nil {
		t.Fatal(err)
	}
	service := spatialService(t)

	stop := func() {}
	defer func() { stop() }()
	printed, ran, tests := "", 0, 0
	for _, block := range blocks {
		if block.Language == "sh" {
			block.Text = strings.ReplaceAll(block.Text, "http://127.0.0.1:7800", service)
		}
		runs, isRuns := strings.CutPrefix(block.Note, noteRuns)
		file, isFile := strings.CutPrefix(block.Note, noteFile)
		switch {
		case isFile:
			content, err := os.ReadFile(filepath.Join(root, file))
			if err != nil || string(content) != block.Text {
				t.Errorf("README.md:%d: not what %s holds (%v)", block.Line, file, err)
			}
		case block.Language == "text":
			checkPrinted(t, block, printed)
		case block.Language != "sh":
		case block.Note == noteTest:
			tests++
			for word := range strings.FieldsSeq(strings.TrimPrefix(block.Text, "make ")) {
				shell(t, block, "make -n "+word+" >/dev/null")
			}
		case isRuns:
			ran++
			stop()
			stop = start(t, block, runs)
		default:
			ran++
			printed = shell(t, block, block.Text)
		}
	}
	if ran == 0 || tests != 1 {
		t.Errorf("README.md: %d blocks were run, and %d are the test command, want 1", ran, tests)
	}
}

// spatialService starts what the README's commands are put in front of, where
// they have http://127.0.0.1:7800.
func spatialService(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/geo+json")
		_, _ = w.Write([]byte(`{"type":"FeatureCollection","features":[]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// shell runs a block to its end and gives what it printed.
func shell(t *testing.T, block readme.Block, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	command.Dir = root
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("README.md:%d: %v\n%s%s", block.Line, err, script, out)
	}
	return string(out)
}

// start runs a block until the function that it gives is called, and waits
// until its URL answers.
func start(t *testing.T, block readme.Block, url string) (stop func()) {
	t.Helper()
	var out bytes.Buffer
	command := exec.Command("bash", "-euo", "pipefail", "-c", block.Text)
	command.Dir = root
	command.Stdout, command.Stderr = &out, &out
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that make's children are reached too
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var failed error // read when ended is closed
	ended := make(chan struct{})
	go func() {
		failed = command.Wait()
		close(ended)
	}()
	interrupt := func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			<-ended
			t.Errorf("README.md:%d: still running a minute after it was interrupted", block.Line)
		}
	}
	deadline := time.After(3 * time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			t.Fatalf("README.md:%d: ended with %v\n%s", block.Line, failed, out.String())
		case <-deadline:
			interrupt()
			t.Fatalf("README.md:%d: %s does not answer\n%s", block.Line, url, out.String())
		case <-tick.C:
			answer, err := http.Get(url)
			if err != nil {
				continue
			}
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return interrupt
			}
		}
	}
}

// checkPrinted holds what a block printed against the README's word for it,
// line by line; "..." stands for anything.
func checkPrinted(t *testing.T, block readme.Block, printed string) {
	t.Helper()
	for line := range strings.Lines(block.Text) {
		rest := printed
		for i, part := range strings.Split(strings.TrimSpace(line), "...") {
			at := strings.Index(rest, part)
			if at < 0 {
				t.Errorf("README.md:%d: %q (its part %d) was not printed:\n%s", block.Line, line, i, printed)
				break
			}
			rest = rest[at+len(part):]
		}
	}
}
