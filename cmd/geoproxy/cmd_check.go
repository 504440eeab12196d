package main

import (
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/geoproxy/geoproxy/config"
	"github.com/geoproxy/geoproxy/proxy"
)

// checkCmd prints what is wrong with files, one finding a line, in the form
// that editors and CI read: file:line:column: path: message.
type checkCmd struct {
	Names bool     `help:"Open the files that the config names, too: keys and certificates."`
	Files []string `arg:"" name:"file" help:"Config files."`
}

// Run checks every file before it fails.
func (c *checkCmd) Run(s *session) error {
	var failed error
	for _, name := range c.Files {
		file, warnings, err := config.Load(name, s.env)
		for _, w := range warnings {
			say(s.stdout, asWarning(w))
		}
		if err == nil && c.Names {
			err = opens(file)
		}
		switch _, mistakes := errors.AsType[config.MistakesError](err); {
		case mistakes:
			say(s.stdout, err)
		case err != nil:
			say(s.stderr, "geoproxy:", err)
		default:
			say(s.stdout, name+": valid")
			continue
		}
		failed = errReported
	}
	return failed
}

// opens reads the files that f names, as a start would.
func opens(f *config.File) error {
	_, err := tlsOf(f.TLS)
	p, perr := offline(f)
	if perr == nil {
		p.Close()
	}
	return errors.Join(err, perr)
}

// offline makes a proxy that asks nobody over the network, so that it cannot
// verify tokens.
func offline(f *config.File) (*proxy.Proxy, error) {
	cfg := f.Config
	cfg.Tenant.JWKS = ""
	return proxy.New(cfg, proxy.Parts{
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Secret: make([]byte, secretBytes),
		Jobs: &proxy.JobParts{}, // possible, and none is served
	})
}
