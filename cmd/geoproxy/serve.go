package main

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/geoproxy/geoproxy/config"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
	"github.com/geoproxy/geoproxy/proxy"
	"github.com/geoproxy/geoproxy/ratelimit/redis"
)

// process is a running geoproxy: its listeners and what they serve.
type process struct {
	file     *config.File
	log      *slog.Logger
	registry *prometheus.Registry
	reloads  *reloads
	ready    proxy.Readiness
	proxy    *proxy.Proxy
	buckets  *redis.Buckets  // nil where the buckets are this process's own
	jobs     *sqlstore.Store // nil where no route may answer with a job

	// What a reload may change of the listeners.
	tls        atomic.Pointer[tls.Config]
	adminToken atomic.Pointer[string]

	servers []*http.Server // the proxy's first
	failed  chan error     // a listener that broke
	// Addresses listened on, which differ from the file's where that says port 0.
	listen, health, admin net.Addr
}

// start listens and serves. The caller ends it with stop.
func start(ctx context.Context, file *config.File, log *slog.Logger) (*process, error) {
	p := &process{file: file, log: log, registry: prometheus.NewRegistry(), failed: make(chan error, 3)}
	p.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.reloads = newReloads(p.registry)
	secret, err := secretOf(file)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := p.listenerTLS(file)
	if err != nil {
		return nil, err
	}
	parts := proxy.Parts{Registry: p.registry, Log: log, Secret: secret}
	if file.Redis != "" {
		if p.buckets, err = redis.New(redis.Config{
			URL: file.Redis, Secret: secret, Max: file.Tenant.MaxOrDefault(), Registry: p.registry, Log: log,
		}); err != nil {
			return nil, err
		}
		parts.Buckets = p.buckets
	}
	if file.NeedsJobs() {
		parts.Jobs = &proxy.JobParts{}
		if p.jobs, parts.Jobs.Key, err = openJobs(ctx, file); err != nil {
			p.closeStores()
			return nil, err
		}
		parts.Jobs.Store = p.jobs
	}
	if p.proxy, err = proxy.New(file.Config, parts); err != nil {
		p.closeStores()
		return nil, err
	}
	p.adminToken.Store(&file.AdminToken)
	front := proxy.NewServer(p.proxy, file.Limits, tlsConfig)
	front.BaseContext = func(net.Listener) context.Context { return p.proxy.Context() }
	health := &http.Server{Handler: p.proxy.NewHealth(&p.ready, p.registry), ReadHeaderTimeout: 10 * time.Second}
	admin := &http.Server{Handler: withToken(&p.adminToken, p.proxy.NewAdmin()), ReadHeaderTimeout: 10 * time.Second}
	for _, l := range []struct {
		what   string
		addr   string
		server *http.Server
		bound  *net.Addr
	}{{"listen", file.Listen, front, &p.listen}, {"health", file.Health, health, &p.health}, {"admin", file.Admin, admin, &p.admin}} {
		if err := p.serve(ctx, l.addr, l.server, l.bound); err != nil {
			p.stop(0)
			return nil, fmt.Errorf("%s: %w", l.what, err)
		}
	}
	log.InfoContext(ctx, "geoproxy is up", slog.String("listen", p.listen.String()),
		slog.String("health", p.health.String()), slog.String("admin", p.admin.String()))
	return p, nil
}

func (p *process) serve(ctx context.Context, addr string, server *http.Server, bound *net.Addr) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	*bound = l.Addr()
	l = proxy.Guard(l, p.file.Stream.Idle)
	p.servers = append(p.servers, server)
	go func() {
		run := func() error { return server.Serve(l) }
		if server.TLSConfig != nil {
			run = func() error { return server.ServeTLS(l, "", "") }
		}
		if err := run(); !errors.Is(err, http.ErrServerClosed) {
			p.failed <- err
		}
	}()
	return nil
}

// stop drains: it says that it is not ready, waits for that to be seen, stops
// accepting, lets what is under way end, and cancels the rest when
// limits.drain is over; jobs that have not ended by then go back to the queue.
// A delay of 0 skips the first wait.
func (p *process) stop(delay time.Duration) {
	p.ready.Set("draining", "geoproxy is stopping")
	if delay > 0 {
		p.log.Info("draining: not ready any more, and waiting for that to be seen", slog.Duration("delay", delay))
		timer := time.NewTimer(delay)
		<-timer.C
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.file.Limits.DrainOrDefault())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if len(p.servers) > 0 {
			_ = p.servers[0].Shutdown(ctx) // it fails when ctx ends; Close below ends the rest
		}
	}()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.proxy.StopJobs(ctx)
	}()
	p.proxy.Drain(ctx)
	<-stopped
	<-done
	for _, s := range p.servers {
		_ = s.Close() // nothing is left to save
	}
	p.proxy.Close()
	p.closeStores()
	p.log.Info("stopped")
}

func (p *process) closeStores() {
	if p.buckets != nil {
		_ = p.buckets.Close() // nothing is left to save
	}
	if p.jobs != nil {
		_ = p.jobs.Close() // every commit is on disk
	}
}

// reload puts the config that was read into the place of the running one.
func (p *process) reload(next *config.File) {
	if keys := config.NeedsRestart(p.file, next); len(keys) > 0 {
		p.refuseReload(fmt.Errorf("a change of %v needs a restart", keys))
		return
	}
	tlsConfig, err := tlsOf(next.TLS)
	if err == nil {
		err = p.proxy.Reload(next.Config)
	}
	if err != nil {
		p.refuseReload(err)
		return
	}
	p.tls.Store(tlsConfig)
	p.adminToken.Store(&next.AdminToken)
	p.file = next
	p.reloads.done(nil)
	p.log.Info("the config was reloaded")
}

// refuseReload says that the running config stays as it is.
func (p *process) refuseReload(err error) {
	p.reloads.done(err)
	p.log.Error("the config was not reloaded; the running one stays", slog.Any("error", err))
}

// reloads counts reloads by their result.
type reloads struct {
	total *prometheus.CounterVec
	last  prometheus.Gauge
}

func newReloads(reg prometheus.Registerer) *reloads {
	r := &reloads{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "geoproxy_config_reloads_total", Help: "Reloads of the config. result: ok, failed.",
		}, []string{"result"}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "geoproxy_config_reload_ok", Help: "1 where the last reload succeeded or there was none, 0 where it failed.",
		}),
	}
	r.last.Set(1)
	reg.MustRegister(r.total, r.last)
	return r
}

func (r *reloads) done(err error) {
	if err != nil {
		r.total.WithLabelValues("failed").Inc()
		r.last.Set(0)
		return
	}
	r.total.WithLabelValues("ok").Inc()
	r.last.Set(1)
}

// listenerTLS is the TLS of the listener, which asks for the latest at every
// handshake, so that a reload takes new certificates; nil where it has none.
func (p *process) listenerTLS(file *config.File) (*tls.Config, error) {
	first, err := tlsOf(file.TLS)
	if first == nil || err != nil {
		return nil, err
	}
	p.tls.Store(first)
	outer := first.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return p.tls.Load(), nil }
	return outer, nil
}

// tlsOf makes the listener's TLS; nil where it has none. A client's
// certificate is asked for where there is an authority to check it against,
// and not required: whether it names a tenant is tenant.from's to say.
func tlsOf(cfg config.TLS) (*tls.Config, error) {
	if cfg.Cert == "" {
		return nil, nil //nolint:nilnil // no TLS is no config
	}
	cert, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if cfg.ClientCA != "" {
		pem, err := os.ReadFile(cfg.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls.client_ca: %s holds no certificate", cfg.ClientCA)
		}
	}
	return c, nil
}

// withToken lets only requests with the token through; every one where there
// is no token, which the config allows on loopback alone.
func withToken(token *atomic.Pointer[string], h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := *token.Load()
		if want != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+want)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the admin listener wants its token", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
