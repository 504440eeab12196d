package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
	"weak"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// compiled is a Config made ready: what a request needs, found without
// parsing anything. A request keeps the one it began with.
type compiled struct {
	config       Config
	tenants      *tenants
	routes       *routeTable
	gates        map[string]*shed.Gate              // living ones, by name; those that decide in shadow too
	left         map[string]weak.Pointer[shed.Gate] // those of earlier configs, while requests hold on to them
	upstreams    map[string]*upstream
	body         classify.BodyConfig
	stream       StreamConfig
	frontTimeout time.Duration
	redact       *redactor
}

const (
	// onlyGate names the gate that stands in, in shadow, where the config has none.
	onlyGate = "default"
	// shadowGates are named after the gate whose place they take.
	shadowGates = "shadow:"
)

// compile makes cfg ready. What lives on over a reload is taken from old,
// which is nil at the start: gates by their name, upstreams and tenants whose
// config is the same, what was learned of origins.
func compile(cfg Config, old *compiled, secret []byte, m *metrics, log *slog.Logger) (*compiled, error) {
	c := &compiled{
		config: cfg, body: cfg.Classify, stream: cfg.Stream, frontTimeout: cfg.FrontTimeout,
		redact: newRedactor(cfg.Tenant, false),
		gates:  make(map[string]*shed.Gate), upstreams: make(map[string]*upstream),
	}
	c.body.Bytes = cmp.Or(c.body.Bytes, 64<<10)
	c.body.Wait = cmp.Or(c.body.Wait, 2*time.Second)
	if old == nil {
		old = &compiled{}
	}
	if err := c.keepTenants(cfg.Tenant, old, secret, log); err != nil {
		return nil, err
	}
	routes := cfg.Routes
	if cfg.Upstream != "" {
		routes = []RouteConfig{{Upstream: cfg.Upstream}}
	}
	var errs []error
	var compiledRoutes []*route
	for i := range routes {
		r, err := c.compileRoute(&routes[i], old, m)
		if err != nil {
			errs = append(errs, fmt.Errorf("routes[%d]: %w", i, err))
			continue
		}
		compiledRoutes = append(compiledRoutes, r)
	}
	if len(routes) == 0 {
		errs = append(errs, errors.New("no upstream and no routes"))
	}
	if err := errors.Join(errs...); err != nil {
		if c.tenants != old.tenants {
			c.tenants.close()
		}
		return nil, err
	}
	c.routes = newRouteTable(compiledRoutes)
	c.keepLeft(old)
	if !c.hasGates() {
		log.Warn("no gate is configured: one stands in, in shadow: it counts and refuses nothing",
			slog.Int("seats", c.gates[onlyGate].Stats().Seats))
	}
	return c, nil
}

// commit makes the living gates follow the config, once nothing can fail.
func (c *compiled) commit() {
	for name, g := range c.gates {
		g.Reconfigure(c.gateConfig(name))
	}
}

// keepLeft remembers the gates that this config does not have, for one that has
// them again while requests of an earlier config are still behind them: another
// gate of the same name would let in as many once more.
func (c *compiled) keepLeft(old *compiled) {
	c.left = make(map[string]weak.Pointer[shed.Gate])
	for name, g := range old.left {
		if c.gates[name] == nil && g.Value() != nil {
			c.left[name] = g
		}
	}
	for name, g := range old.gates {
		if c.gates[name] == nil {
			c.left[name] = weak.Make(g)
		}
	}
}

func (c *compiled) keepTenants(cfg TenantConfig, old *compiled, secret []byte, log *slog.Logger) error {
	if old.tenants != nil && reflect.DeepEqual(cfg, old.config.Tenant) {
		c.tenants = old.tenants
		return c.tenants.reload()
	}
	t, err := newTenants(cfg, secret, log)
	if err != nil {
		return fmt.Errorf("tenant: %w", err)
	}
	c.tenants = t
	return nil
}

func (c *compiled) compileRoute(cfg *RouteConfig, old *compiled, m *metrics) (*route, error) {
	r := &route{
		name: cmp.Or(cfg.Name, "default"), config: *cfg,
		classes:     make(map[classify.Class]*classPolicy),
		interactive: cfg.Interactive == nil || *cfg.Interactive,
		headers:     headerPolicy(cmp.Or(cfg.Headers, string(headersAuto))),
		disclose:    disclosure(cmp.Or(cfg.Disclose, string(discloseFull))),
		policyText:  make(map[*ratelimit.Policy]string),
		jobs:        cfg.Jobs.withDefaults(),
	}
	r.series = newRouteSeries(m, r.name)
	var err error
	if r.classifier, err = classify.New(cfg.Config); err != nil {
		return nil, err
	}
	if r.cors, err = old.corsOf(r.name, cfg.CORS); err != nil {
		return nil, err
	}
	if r.outage, err = ratelimit.ParseOutage(cfg.RedisDown); err != nil {
		return nil, fmt.Errorf("redis_down: %w", err)
	}
	routeShadow := cfg.Enforce != nil && !*cfg.Enforce
	for _, class := range classify.Classes() {
		p := compileClass(class, cfg.Classes[class.String()], routeShadow)
		r.classes[class] = &p
	}
	for _, rate := range cfg.Rates {
		p, err := ratelimit.Compile(r.name, rate)
		if err != nil {
			return nil, fmt.Errorf("rates: %w", err)
		}
		r.policies = append(r.policies, p)
		r.policyText[p] = describePolicy(p)
	}
	name, up := c.upstreamOf(cfg)
	if r.upstream, err = c.upstream(name, up, old); err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	c.attachGate(r, name, up, old)
	r.shadowed = r.onlyShadow || slices.ContainsFunc(r.policies, func(p *ratelimit.Policy) bool { return p.Shadow })
	return r, nil
}

// upstreamOf gives the upstream of a route and its name: a configured one, or
// one of the route's own where it gives a URL.
func (c *compiled) upstreamOf(cfg *RouteConfig) (string, UpstreamConfig) {
	if up, ok := c.config.Upstreams[cfg.Upstream]; ok {
		return cfg.Upstream, up
	}
	return cfg.Upstream, UpstreamConfig{URL: cfg.Upstream}
}

func (c *compiled) upstream(name string, cfg UpstreamConfig, old *compiled) (*upstream, error) {
	if u := c.upstreams[name]; u != nil {
		return u, nil
	}
	if u := old.upstreams[name]; u != nil && reflect.DeepEqual(u.config, cfg) {
		c.upstreams[name] = u
		return u, nil
	}
	u, err := newUpstream(cfg)
	if err != nil {
		return nil, err
	}
	c.upstreams[name] = u
	return u, nil
}

// attachGate gives a route its gate: its own, its upstream's, or the one that
// stands in for all where the config has none.
func (c *compiled) attachGate(r *route, upstreamName string, up UpstreamConfig, old *compiled) {
	var name string
	switch {
	case r.config.Gate.Name != "":
		name = r.config.Gate.Name
	case r.config.Gate.Seats > 0:
		name = "route " + r.name
	case up.Gate.Name != "":
		name = up.Gate.Name
	case up.Gate.Seats > 0:
		name = "upstream " + upstreamName
	case !c.hasGates():
		r.onlyShadow = true
		r.shadowGate = c.gate(onlyGate, shed.GateConfig{Seats: 2 * runtime.GOMAXPROCS(0)}, old)
		return
	default:
		return
	}
	cfg := c.gateConfig(name)
	r.gate = c.gate(name, cfg, old)
	r.shadowGate = c.gate(shadowGates+name, cfg, old)
}

func (c *compiled) gate(name string, cfg shed.GateConfig, old *compiled) *shed.Gate {
	if g := c.gates[name]; g != nil {
		return g
	}
	g := old.gates[name]
	if g == nil {
		g = old.left[name].Value()
	}
	if g == nil {
		g = shed.NewGate(name, cfg)
	}
	c.gates[name] = g
	return g
}

// gateConfig finds the config of a gate by its name.
func (c *compiled) gateConfig(name string) shed.GateConfig {
	name = strings.TrimPrefix(name, shadowGates)
	if g, ok := c.config.Gates[name]; ok {
		return g
	}
	if up, ok := strings.CutPrefix(name, "upstream "); ok {
		return c.config.Upstreams[up].Gate.GateConfig
	}
	if rt, ok := strings.CutPrefix(name, "route "); ok {
		for i := range c.config.Routes {
			if cmp.Or(c.config.Routes[i].Name, "default") == rt {
				return c.config.Routes[i].Gate.GateConfig
			}
		}
	}
	return shed.GateConfig{Seats: 2 * runtime.GOMAXPROCS(0)}
}

func (c *compiled) hasGates() bool {
	if len(c.config.Gates) > 0 {
		return true
	}
	for _, up := range c.config.Upstreams {
		if up.Gate.Seats > 0 {
			return true
		}
	}
	return slices.ContainsFunc(c.config.Routes, func(r RouteConfig) bool { return r.Gate.Seats > 0 })
}

// corsOf keeps what a route has learned of origins where its setting is the same.
func (c *compiled) corsOf(name string, allow []string) (*cors, error) {
	if c.routes != nil {
		for _, r := range c.routes.all {
			if r.name == name && slices.Equal(r.config.CORS, allow) {
				return r.cors, nil
			}
		}
	}
	return newCORS(allow)
}

// retire closes what next does not use.
func (c *compiled) retire(next *compiled) {
	kept := maps.Values(next.upstreams)
	living := slices.Collect(kept)
	for _, u := range c.upstreams {
		if !slices.Contains(living, u) {
			u.close()
		}
	}
	if c.tenants != next.tenants {
		c.tenants.close()
	}
}
