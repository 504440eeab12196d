package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/geoproxy/geoproxy/jobs/sqlstore"
	"github.com/geoproxy/geoproxy/proxy"
)

// Options say where a stage listens. The zero value takes free loopback ports.
type Options struct {
	// Listen is the host:port of geoproxy.
	Listen string
	// Service is the host:port of the service behind it.
	Service string
	// Cancels stops the query of a client that has left.
	Cancels bool
}

// Stage is a service with geoproxy in front of it, both running.
type Stage struct {
	Service *Service
	// ServiceURL and URL are the service's and geoproxy's addresses, without a
	// slash at their end.
	ServiceURL, URL string

	front   *proxy.Proxy
	jobs    *sqlstore.Store
	folder  string         // of the jobs
	servers []*http.Server // the front's first
	failed  chan error
}

// Start starts both. The caller ends them with Close.
func Start(ctx context.Context, options Options) (*Stage, error) {
	s := &Stage{Service: NewService(), failed: make(chan error, 2)}
	s.Service.Cancels = options.Cancels
	behind := &http.Server{Handler: s.Service, ReadHeaderTimeout: 10 * time.Second}
	var err error
	if s.ServiceURL, err = s.serve(ctx, options.Service, behind); err != nil {
		s.Close()
		return nil, fmt.Errorf("the service: %w", err)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	if s.folder, err = os.MkdirTemp("", "geoproxy-demo-*"); err == nil {
		s.jobs, err = sqlstore.OpenSQLite(ctx, s.folder)
	}
	if err == nil {
		s.front, err = newFront(s.ServiceURL, secret, s.jobs)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	front := proxy.NewServer(s.front, proxy.LimitsConfig{}, nil)
	front.Handler = s.withCrowd(front.Handler)
	front.BaseContext = func(net.Listener) context.Context { return s.front.Context() }
	if s.URL, err = s.serve(ctx, options.Listen, front); err != nil {
		s.Close()
		return nil, fmt.Errorf("geoproxy: %w", err)
	}
	return s, nil
}

func (s *Stage) serve(ctx context.Context, address string, server *http.Server) (string, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	s.servers = append([]*http.Server{server}, s.servers...)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- err
		}
	}()
	bound, _ := l.Addr().(*net.TCPAddr) // tcp listeners have no other
	if bound.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", bound.Port), nil
	}
	return "http://" + bound.String(), nil
}

// Wait returns when ctx ends, or with an error when a listener breaks.
func (s *Stage) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	}
}

// Close ends both at once, with what they are doing.
func (s *Stage) Close() {
	s.Service.Close()
	for _, server := range s.servers {
		_ = server.Close() // nothing is left to save
	}
	if s.front != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.front.Drain(ctx)
		s.front.Close()
	}
	if s.jobs != nil {
		_ = s.jobs.Close() // nothing is left to save
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder) // a folder that stays is in a place that is emptied
	}
}
