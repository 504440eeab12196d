package main

import (
	"errors"

	"github.com/geoproxy/geoproxy/config"
)

// checkCmd prints what is wrong with files, one finding a line, in the form
// that editors and CI read: file:line:column: path: message.
type checkCmd struct {
	Files []string `arg:"" name:"file" help:"Config files."`
}

// Run checks every file before it fails.
func (c *checkCmd) Run(s *session) error {
	var failed error
	for _, name := range c.Files {
		_, warnings, err := config.Load(name, s.env)
		var mistakes config.MistakesError
		switch {
		case errors.As(err, &mistakes):
			say(s.stdout, mistakes)
		case err != nil:
			say(s.stderr, "geoproxy:", err)
		}
		for _, w := range warnings {
			say(s.stdout, asWarning(w))
		}
		if err != nil {
			failed = errReported
			continue
		}
		say(s.stdout, name+": valid")
	}
	return failed
}
