package main

import (
	"github.com/geoproxy/geoproxy/config"
)

// origin is where a command takes the config from.
type origin struct {
	Config   string `short:"c" placeholder:"FILE" required:"" xor:"origin" help:"The config file."`
	Upstream string `short:"u" placeholder:"URL" required:"" xor:"origin" help:"Do without a file: one route to this URL, with every default."`

	override func(*config.File) // what other flags say of a config without a file
}

// load reads and checks the config, and prints its warnings.
func (o *origin) load(s *session) (*config.File, error) {
	if o.Config == "" {
		file := config.Default(o.Upstream)
		if o.override != nil {
			o.override(file)
		}
		var mistakes config.MistakesError
		file.Check(
			func(path, message string) {
				mistakes = append(mistakes, config.Finding{Path: path, Message: message})
			},
			func(path, message string) { warn(s, config.Warning{Path: path, Message: message}) })
		if len(mistakes) > 0 {
			return nil, mistakes
		}
		return file, nil
	}
	file, warnings, err := config.Load(o.Config, s.env)
	for _, w := range warnings {
		warn(s, w)
	}
	return file, err
}

func warn(s *session, w config.Warning) {
	say(s.stderr, asWarning(w))
}

// asWarning marks a finding as one that does no harm, as compilers do.
func asWarning(w config.Warning) config.Finding {
	if w.Path == "" {
		w.Message = "warning: " + w.Message
	} else {
		w.Path = "warning: " + w.Path
	}
	return w
}
