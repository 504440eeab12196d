package main

import (
	"errors"
	"fmt"

	"github.com/geoproxy/geoproxy/cmd/geoproxy/demo"
)

// demoCmd runs a small spatial service with geoproxy in front, to try it.
type demoCmd struct {
	Listen  string `placeholder:"ADDRESS" help:"The host:port of geoproxy (127.0.0.1:8080; a free port with --once and --storm)."`
	Service string `placeholder:"ADDRESS" help:"The host:port of the service behind it (a free port)."`
	Once    bool   `xor:"what" help:"Make each of the requests that the demo prints, show the answers, and stop: 0 where all were as promised."`
	Storm   bool   `xor:"what" help:"Send an agent's burst at the service, without geoproxy and with it, compare, and stop, in about half a minute."`
	JSON    bool   `name:"json" help:"Print what --once or --storm found as JSON."`
	Cancels bool   `help:"Let the service stop the query of a client that has left; most do not."`
}

// Validate keeps --json to what has a result.
func (c *demoCmd) Validate() error {
	if c.JSON && !c.Once && !c.Storm {
		return errors.New("--json needs --once or --storm")
	}
	return nil
}

// Run ends with the session, or when what was asked for has been shown.
func (c *demoCmd) Run(s *session) error {
	options := demo.Options{Listen: c.Listen, Service: c.Service, Cancels: c.Cancels}
	if c.Storm {
		return c.storm(s, options)
	}
	if options.Listen == "" && !c.Once {
		options.Listen = "127.0.0.1:8080"
	}
	stage, err := demo.Start(s.ctx, options)
	if err != nil {
		return fmt.Errorf("%w (--listen and --service name other addresses)", err)
	}
	defer stage.Close()
	if c.Once {
		faults, err := stage.Once(s.ctx, s.stdout, c.JSON)
		if err == nil && faults > 0 {
			err = fmt.Errorf("%d of the demo's promises were not kept", faults)
		}
		return err
	}
	if err := stage.Introduce(s.stdout); err != nil {
		return err
	}
	return stage.Wait(s.ctx)
}

func (c *demoCmd) storm(s *session, options demo.Options) error {
	report, err := demo.Storm(s.ctx, options, func(line string) { say(s.stderr, line) })
	if err != nil {
		return err
	}
	if c.JSON {
		return report.WriteJSON(s.stdout)
	}
	say(s.stdout)
	return report.Write(s.stdout)
}
