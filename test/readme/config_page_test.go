package readme_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/shed"
	"github.com/geoproxy/geoproxy/test/readme"
)

//go:generate go test . -run TestConfigPageIsUpToDate -update

var update = flag.Bool("update", false, "write docs/config.md anew")

func TestConfigPageIsUpToDate(t *testing.T) {
	schema, err := os.ReadFile(filepath.Join(root, "config", "schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := readme.ConfigPage(schema)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "docs", "config.md")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("docs/config.md is not what config/schema.json makes of it (%v): run make generate", err)
	}
}

// Problem documents link to a section by their reason.
func TestEveryReasonIsDescribed(t *testing.T) {
	problems, err := os.ReadFile(filepath.Join(root, "docs", "problems.md"))
	if err != nil {
		t.Fatal(err)
	}
	wire, err := os.ReadFile(filepath.Join(root, "docs", "wire.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range shed.Reasons() {
		if !strings.Contains(string(problems), "\n## "+string(reason)+"\n") {
			t.Errorf("docs/problems.md has no section %q", reason)
		}
		// Nobody is blocked yet.
		if reason != shed.Blocked && !strings.Contains(string(wire), "`"+string(reason)+"`") {
			t.Errorf("docs/wire.md does not name %q", reason)
		}
	}
}
