package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker in releases; go install leaves it to the build
// info.
var version string

// built is what the program was made from.
type built struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func buildInfo() built {
	b := built{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// versionCmd prints what the program was built from.
type versionCmd struct {
	JSON bool `name:"json" help:"Print it as JSON."`
}

// Run prints one line, or one JSON document.
func (c *versionCmd) Run(s *session) error {
	b := buildInfo()
	if c.JSON {
		return printJSON(s, b)
	}
	line := "geoproxy " + b.Version
	if b.Commit != "" {
		line += " (" + b.Commit
		if b.Modified {
			line += ", modified"
		}
		line += ")"
	}
	_, err := fmt.Fprintln(s.stdout, line, b.Go, b.Platform)
	return err
}

func printJSON(s *session, v any) error {
	encoder := json.NewEncoder(s.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(v)
}
