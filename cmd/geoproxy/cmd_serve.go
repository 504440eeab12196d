package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/geoproxy/geoproxy/config"
)

// serveCmd serves until it is told to stop.
type serveCmd struct {
	origin
	Listen  string `placeholder:"ADDRESS" help:"Without a file: the host:port of the proxy (${listen})."`
	Health  string `placeholder:"ADDRESS" help:"Without a file: the host:port of healthz, readyz and metrics (${health})."`
	Admin   string `placeholder:"ADDRESS" help:"Without a file: the host:port of pprof and explain (${admin})."`
	DataDir string `name:"data-dir" placeholder:"DIR" help:"Without a file: where state is kept (${data_dir})."`
}

// Validate keeps a file and flags from saying different things: a reload would
// have to choose between them.
func (c *serveCmd) Validate() error {
	if c.Config != "" && (c.Listen != "" || c.Health != "" || c.Admin != "" || c.DataDir != "") {
		return errors.New("with --config the file says listen, health, admin and data_dir")
	}
	c.override = func(f *config.File) {
		for field, flag := range map[*string]string{
			&f.Listen: c.Listen, &f.Health: c.Health, &f.Admin: c.Admin, &f.DataDir: c.DataDir,
		} {
			if flag != "" {
				*field = flag
			}
		}
	}
	return nil
}

// Run serves until the session ends, and drains then. The file is read again
// at a SIGHUP and whenever it changes.
func (c *serveCmd) Run(s *session) error {
	file, err := c.load(s)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(s.stdout, nil))
	p, err := start(s.ctx, file, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		err := config.Watch(ctx, file, hangup, func(next *config.File, warnings []config.Warning) {
			for _, w := range warnings {
				log.WarnContext(ctx, "config", slog.String("finding", w.String()))
			}
			p.reload(next)
		}, p.refuseReload)
		if err != nil {
			log.ErrorContext(ctx, "the config is not watched: only a restart reads it again", slog.Any("error", err))
		}
	}()
	select {
	case <-s.ctx.Done():
	case err = <-p.failed:
	}
	signal.Stop(hangup)
	cancel()
	<-watched // no reload while draining
	delay := file.Limits.DrainDelayOrDefault()
	if err != nil || interrupted(s.ctx) {
		delay = 0 // a broken listener is seen without waiting; at a terminal nobody has to see it
	}
	p.stop(delay)
	return err
}

// interrupted reports whether it was a person at a terminal who ended ctx.
func interrupted(ctx context.Context) bool {
	return strings.HasPrefix(context.Cause(ctx).Error(), os.Interrupt.String())
}
