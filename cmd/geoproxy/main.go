// Command geoproxy prices, admits and sheds requests to spatial APIs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/geoproxy/geoproxy/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	code := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands is the command line.
type commands struct {
	Serve      serveCmd      `cmd:"" help:"Serve in front of an upstream."`
	Demo       demoCmd       `cmd:"" help:"Start a small spatial service with geoproxy in front, and say what to try."`
	Check      checkCmd      `cmd:"" help:"Print every mistake and warning of config files."`
	Explain    explainCmd    `cmd:"" help:"Price a request and say what would happen to it, without running it."`
	Version    versionCmd    `cmd:"" help:"Print what this program was built from."`
	Completion completionCmd `cmd:"" help:"Print a script that completes commands in a shell."`
	Complete   completeCmd   `cmd:"" hidden:"" name:"__complete" passthrough:"" help:"Print what may come next."`
}

// session is what a command is given beside its own flags.
type session struct {
	ctx            context.Context //nolint:containedctx // it lives as long as one call of run
	env            func(string) (string, bool)
	stdout, stderr io.Writer
	model          *kong.Application
}

// say prints a line for whoever reads. Where nobody does, as with a closed pipe,
// there is nobody to tell.
func say(w io.Writer, words ...any) { _, _ = fmt.Fprintln(w, words...) }

// errReported ends a command that failed and has said why.
var errReported = errors.New("failed")

// run is the program: everything but the process around it.
func run(ctx context.Context, args []string, env func(string) (string, bool), stdout, stderr io.Writer) int {
	exited := -1 // set where --help has ended the program
	parser, err := kong.New(&commands{},
		kong.Name("geoproxy"),
		kong.Description("A proxy in front of spatial APIs that prices each request before it runs, admits what the upstream can bear, and sheds the rest."),
		kong.Vars{
			"listen": config.DefaultListen, "health": config.DefaultHealth,
			"admin": config.DefaultAdmin, "data_dir": config.DefaultDataDir,
		},
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
	)
	if err != nil {
		say(stderr, "geoproxy:", err)
		return exitFailed
	}
	parsed, err := parser.Parse(args)
	switch {
	case exited >= 0:
		return exited
	case err != nil:
		say(stderr, "geoproxy:", err)
		say(stderr, "See: geoproxy --help")
		return exitUsage
	}
	err = parsed.Run(&session{ctx: ctx, env: env, stdout: stdout, stderr: stderr, model: parser.Model})
	if err != nil && !errors.Is(err, errReported) {
		say(stderr, "geoproxy:", err)
	}
	if err != nil {
		return exitFailed
	}
	return exitOK
}
