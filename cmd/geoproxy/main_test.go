package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binary is the program as it is shipped.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "geoproxy")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "geoproxy")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s\n%s\n", err, out)
			return 1
		}
		return m.Run()
	}())
}

// call runs the program to its end.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "TOKEN_OF_TEST=0123456789abcdef")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "geoproxy.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodes(t *testing.T) {
	valid := write(t, "upstream: http://127.0.0.1:7800\nadmin_token: ${TOKEN_OF_TEST}\n")
	warned := write(t, "upstream: http://127.0.0.1:7800\ngates: { gis: { seats: 8 } }\n")
	named := write(t, "upstream: http://127.0.0.1:7800\ntenant: { keys: keys.yaml }\n")
	wrong := write(t, "upstream: http://127.0.0.1:7800\nhealt: ':1'\nfront_timeout: 60\n")
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string // patterns
	}{
		{"--help", 0, `Usage: geoproxy <command>`, `^$`},
		{"check --help", 0, `Usage: geoproxy check <file> \.\.\.`, `^$`},
		{"", 2, `^$`, `expected one of`},
		{"sevre", 2, `^$`, `unexpected argument sevre`},
		{"check", 2, `^$`, `expected "<file> \.\.\."`},
		{"serve", 2, `^$`, `--config=FILE or --upstream=URL`},
		{"serve --upstream http://127.0.0.1:1 --config x", 2, `^$`, `can't be used together`},
		{"serve --config x --listen :1", 2, `^$`, `the file says listen`},
		{"explain --upstream http://127.0.0.1:1", 2, `^$`, `expected "<url>"`},
		{"completion tcsh", 2, `^$`, `must be one of "bash","zsh","fish"`},
		{"check " + valid, 0, `^` + valid + `: valid\n$`, `^$`},
		{"check " + warned, 0, warned + `:2:10: warning: gates.gis: nothing refers to this gate\n` + warned + `: valid\n$`, `^$`},
		{"check " + valid + " " + wrong, 1, `: valid\n` +
			wrong + `:2:1: healt: unknown key; did you mean "health"\?\n` + wrong + `:3:16: front_timeout: needs a unit: 60s, 60ms, 60m or 60h\n$`, `^$`},
		{"check " + named, 0, `: valid\n$`, `^$`},
		{"check --names " + named, 1, `^$`, `open .*/keys.yaml: no such file`},
		{"check /nowhere.yaml", 1, `^$`, `open /nowhere.yaml: no such file`},
		{"serve --config " + wrong, 1, `^$`, wrong + `:2:1: healt: unknown key`},
		{"serve --upstream localhost:7800", 1, `^$`, `^geoproxy: upstream: must begin with http://, https:// or unix:///\n$`},
		{"explain --upstream http://127.0.0.1:1 nonsense", 1, `^$`, `the URL must be`},
		{"explain --upstream http://127.0.0.1:1 --client me /", 1, `^$`, `--client must be an IP address`},
		{"explain --upstream http://127.0.0.1:1 -d @/nowhere /", 1, `^$`, `no such file`},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := call(t, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !regexp.MustCompile(c.stdout).MatchString(stdout) {
				t.Errorf("stdout %q does not match %q", stdout, c.stdout)
			}
			if !regexp.MustCompile(c.stderr).MatchString(stderr) {
				t.Errorf("stderr %q does not match %q", stderr, c.stderr)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	if code, stdout, _ := call(t, "version"); code != 0 || !regexp.MustCompile(`^geoproxy \S.* go1\.\d+\S* \w+/\w+\n$`).MatchString(stdout) {
		t.Error(code, stdout)
	}
	code, stdout, _ := call(t, "version", "--json")
	var v struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != 0 || v.Version == "" || v.Go == "" || v.Platform == "" {
		t.Error(code, stdout, err)
	}
}

func TestExplain(t *testing.T) {
	path := write(t, `
gates: { gis: { seats: 8, seat_seconds: 500ms, max_seats: 4 } }
routes:
- name: parcels
  upstream: http://127.0.0.1:7800
  gate: gis
  rules:
  - { op: heatmap, class: compute, when: 'request.path == "/heat" && request.headers["x-mode"] == "b"', seconds: 1.2 }
  - { op: posted, class: read, when: 'request.method == "POST"', seconds: 'double(body.bytes)' }
  rates:
  - { name: fair, tokens: 10, burst: 50, unit: second }
  - { name: reads, for: { class: read }, tokens: 10 }
`)
	explain := func(args ...string) map[string]any {
		t.Helper()
		code, stdout, stderr := call(t, append([]string{"explain", "--json", "--config", path}, args...)...)
		var e map[string]any
		if err := json.Unmarshal([]byte(stdout), &e); code != 0 || err != nil {
			t.Fatal(code, err, stdout, stderr)
		}
		return e
	}
	e := explain("-H", "X-Mode: b", "http://geo.example/heat?w=1;h=2")
	gate, _ := e["gate"].(map[string]any)
	policies, _ := e["policies"].([]any)
	if e["route"] != "parcels" || e["op"] != "heatmap" || e["class"] != "compute" || e["seconds"] != 1.2 || e["mode"] != "inline" ||
		gate["name"] != "gis" || gate["takes"] != 3.0 || len(policies) != 1 {
		t.Error(e)
	}
	body := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(body, []byte("1234567"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := explain("-d", "@"+body, "/x"); e["op"] != "posted" || e["seconds"] != 7.0 {
		t.Error(e)
	}
	code, stdout, _ := call(t, "explain", "--upstream", "http://127.0.0.1:7800", "/collections/a/items?limit=1000")
	if code != 0 || !regexp.MustCompile(`(?s)ogcapi items, class read.*mode +inline`).MatchString(stdout) {
		t.Error(code, stdout)
	}
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"":                 "check completion demo explain serve version",
		"ch":               "check",
		"completion ":      "bash fish zsh",
		"completion z":     "zsh",
		"explain --js":     "--json",
		"explain --json ":  "",
		"explain -X GET -": "--client --config --data --header --help --json --method --upstream",
		"serve --config ":  "",
		"nonsense ":        "check completion demo explain serve version",
	} {
		words := strings.Split(line, " ")
		_, stdout, _ := call(t, append([]string{"__complete", "--"}, words...)...)
		if got := strings.Join(strings.Fields(stdout), " "); got != want {
			t.Errorf("%q: got %s, want %s", line, got, want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, stdout, _ := call(t, "completion", shell); code != 0 || !strings.Contains(stdout, "__complete") {
			t.Error(shell, code, stdout)
		}
	}
	script := `source <("$0" completion bash); COMP_WORDS=("$0" completion b); COMP_CWORD=2; _geoproxy; echo "${COMPREPLY[@]}"`
	out, err := exec.Command("bash", "-c", script, binary).CombinedOutput()
	if err != nil || string(out) != "bash\n" {
		t.Errorf("%v %s", err, out)
	}
}

// The program serves, follows its file, and ends well when it is told to.
func TestServe(t *testing.T) {
	upstreams := make([]*httptest.Server, 2)
	for i := range upstreams {
		upstreams[i] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, i) }))
		defer upstreams[i].Close()
	}
	dir := t.TempDir()
	content := func(i int) string {
		return fmt.Sprintf("upstream: %s\nlisten: 127.0.0.1:0\nhealth: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: %s\nlimits: { drain_delay: 1ms }\n", upstreams[i].URL, dir)
	}
	path := write(t, content(0))
	cmd := exec.Command(binary, "serve", "--config", path)
	var log, errs lockedBuffer
	cmd.Stdout, cmd.Stderr = &log, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })

	var url string
	eventually(t, &log, func() bool {
		if m := regexp.MustCompile(`"listen":"([^"]+)"`).FindStringSubmatch(log.String()); m != nil {
			url = "http://" + m[1]
		}
		return url != ""
	})
	eventually(t, &log, func() bool { return get(t, url) == "0" })

	if err := os.WriteFile(path, []byte(content(0)+"nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, &log, func() bool { return strings.Contains(log.String(), "nonsense: unknown key") })
	if got := get(t, url); got != "0" {
		t.Errorf("an invalid file took the place of the running one: %s", got)
	}
	if err := os.WriteFile(path, []byte(content(1)), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, &log, func() bool { return get(t, url) == "1" })
	before := strings.Count(log.String(), "the config was reloaded")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, &log, func() bool { return strings.Count(log.String(), "the config was reloaded") > before })

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err, errs.String())
		}
	case <-time.After(20 * time.Second):
		t.Error("it does not end")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
