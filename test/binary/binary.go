// Package binary builds geoproxy and runs it as its users do: a process with a
// config file, ports and signals. Tests of the whole program start here.
package binary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// path is where Main has put the binary.
var path string

// Main builds the binary, runs a package's tests with it, and gives their exit
// status: `func TestMain(m *testing.M) { os.Exit(binary.Main(m)) }`. Under the
// race detector the binary is built with it too.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "geoproxy-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path = filepath.Join(dir, "geoproxy")
	if err := build(path, raceFlags...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Path gives the binary that Main built.
func Path(t *testing.T) string {
	t.Helper()
	if path == "" {
		t.Fatal("the package's TestMain does not call binary.Main")
	}
	return path
}

// Plain builds the binary without the race detector, for tests that measure
// memory or speed.
func Plain(t *testing.T) string {
	t.Helper()
	plain := filepath.Join(t.TempDir(), "geoproxy")
	if err := build(plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

func build(to string, flags ...string) error {
	args := append([]string{"build", "-o", to}, flags...)
	out, err := exec.Command("go", append(args, "github.com/geoproxy/geoproxy/cmd/geoproxy")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build geoproxy: %w\n%s", err, out)
	}
	return nil
}
