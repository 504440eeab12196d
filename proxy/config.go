package proxy

import (
	"cmp"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// Config is what the proxy does, as written. Its zero value lacks an upstream.
type Config struct {
	// Upstream is short for one route, to this URL, with every default.
	Upstream string `yaml:"upstream"`

	Tenant    TenantConfig               `yaml:"tenant"`
	Gates     map[string]shed.GateConfig `yaml:"gates"`
	Upstreams map[string]UpstreamConfig  `yaml:"upstreams"`
	Routes    []RouteConfig              `yaml:"routes"`

	Classify classify.BodyConfig `yaml:"classify"`
	Stream   StreamConfig        `yaml:"stream"`
	Limits   LimitsConfig        `yaml:"limits"`

	// Public says where callers find geoproxy.
	Public PublicConfig `yaml:"public"`

	// FrontTimeout is when whoever stands in front gives up; it shortens every
	// deadline. 0 is off.
	FrontTimeout time.Duration `yaml:"front_timeout"`
	// Secret keys the HMAC of tenants: 16 bytes or more. Without it one is
	// kept in a 0600 file under data_dir.
	Secret string `yaml:"secret"`
	// AccessLog writes one JSON line a request, its values redacted. Off by default.
	AccessLog bool `yaml:"access_log"`
}

// UpstreamConfig is a backend. In the file it may be just its URL.
type UpstreamConfig struct {
	// URL: http, https, or unix:///path of a socket. Required.
	URL string `yaml:"url"`
	// Gate names one of gates, or is one.
	Gate GateRef `yaml:"gate"`
	// Protocol: auto (the default: HTTP/1.1 to plain upstreams but HTTP/2 for
	// gRPC, whatever TLS negotiates to others), http1 or h2c.
	Protocol string `yaml:"protocol"`
	// TLS of an https upstream.
	TLS UpstreamTLS `yaml:"tls"`
	// Cancels false says that the upstream does not stop working when its
	// connection is closed (MapServer and pg_tileserv do not). A call whose
	// caller has left is then read to its end, at most until its deadline, and
	// keeps its seat until then. Defaults to true.
	Cancels *bool `yaml:"cancels"`
	// Connect is the longest a connection may take to be made. Defaults to 5s.
	Connect time.Duration `yaml:"connect"`
}

// UpstreamTLS is how an https upstream is trusted and how it trusts us.
type UpstreamTLS struct {
	CA         string `yaml:"ca"`          // PEM file; defaults to the system's roots
	Cert       string `yaml:"cert"`        // PEM file of a client certificate
	Key        string `yaml:"key"`         // its key
	ServerName string `yaml:"server_name"` // defaults to the URL's host
	Insecure   bool   `yaml:"insecure"`    // do not verify: warned about
}

// GateRef names a gate or is one of its own: `gate: gis`, `gate: { seats: 8 }`.
type GateRef struct {
	Name            string `yaml:"-"`
	shed.GateConfig `yaml:",inline"`
}

// RouteConfig is a match with its upstream and its policy.
type RouteConfig struct {
	// Name is required with more than one route: the identity of its state.
	Name  string `yaml:"name"`
	Match Match  `yaml:"match"`
	// Upstream names one of upstreams, or is a URL. Required.
	Upstream string `yaml:"upstream"`
	// Gate overrides the upstream's.
	Gate GateRef `yaml:"gate"`

	classify.Config `yaml:",inline"`

	// Classes change single defaults of a class, by its name.
	Classes map[string]ClassConfig `yaml:"classes"`
	Rates   []ratelimit.Rate       `yaml:"rates"`
	// RedisDown decides on the rates while Redis does not answer: local (the
	// default: this replica's share of each limit), allow, or deny (503).
	RedisDown string `yaml:"redis_down"`

	Shed   shed.BodyConfig `yaml:"shed"`
	Jobs   JobsConfig      `yaml:"jobs"`
	Exempt Exempt          `yaml:"exempt"`

	// Interactive says that somebody waits for the answers. Defaults to true.
	Interactive *bool `yaml:"interactive"`
	// Enforce false decides in shadow: counted, never refused. Defaults to true.
	Enforce *bool `yaml:"enforce"`
	// CORS: "mirror" (the default: what the upstream sends), "off", or the
	// origins to allow.
	CORS []string `yaml:"cors"`
	// Headers: auto (the default: not on answers for shared caches), always,
	// or refusals.
	Headers string `yaml:"headers"`
	// Disclose: full (the default), coarse or none.
	Disclose string `yaml:"disclose"`
	// MaxBody is the largest request body, 413 above it. 0 is no limit.
	MaxBody int64 `yaml:"max_body" unit:"bytes"`
}

// Match selects requests: exact hosts before "*.suffix" before "*", then the
// longest path ending at a "/", then file order.
type Match struct {
	Host string `yaml:"host"` // defaults to "*"
	Path string `yaml:"path"` // defaults to "/"
}

// ClassConfig changes the defaults of a class. Zero fields keep them.
type ClassConfig struct {
	// Admission is the longest a request waits for tokens and seats together.
	Admission time.Duration `yaml:"admission"`
	// Deadline is the longest until the upstream's header; admission used up is gone.
	Deadline time.Duration `yaml:"deadline"`
	// Inline is the estimate up to which a request is always run at once.
	// Defaults to min(2s, AlwaysQueue).
	Inline time.Duration `yaml:"inline"`
	// AlwaysQueue is the estimate from which it is too big to wait for.
	// Defaults to min(30s, Deadline).
	AlwaysQueue time.Duration `yaml:"always_queue"`
	// TooBig: wait or refuse.
	TooBig string `yaml:"too_big"`
	// Enforce false decides in shadow for this class. Defaults to true.
	Enforce *bool `yaml:"enforce"`
	// Async says that whoever sends this class follows a 202, asked or not.
	// Defaults to false.
	Async bool `yaml:"async"`
}

// Exempt are requests that draw no tokens, take no seat and are never refused.
type Exempt struct {
	// Paths match whole, or as a prefix where they end in "/".
	Paths []string `yaml:"paths"`
}

// TenantConfig says whom a request counts against.
type TenantConfig struct {
	// From lists where tenants are named, in order: header:NAME, query:NAME,
	// jwt:CLAIM, mtls, address. Defaults to [header:X-Api-Key, jwt:sub, address].
	From []string `yaml:"from"`
	// Keys is the keys file.
	Keys string `yaml:"keys"`
	// JWKS is the URL of the issuer's key set.
	JWKS string `yaml:"jwks"`
	// Trust takes what From names for verified: something in front has checked it.
	Trust bool `yaml:"trust"`
	// TrustedProxies are the networks whose X-Forwarded-For counts.
	TrustedProxies []string `yaml:"trusted_proxies"`
	// Max is how many tenants have state of their own. Defaults to 100000.
	Max int `yaml:"max"`
}

// StreamConfig bounds an exchange after the upstream's header.
type StreamConfig struct {
	// Idle is the longest without a byte either way. Defaults to 60s.
	Idle time.Duration `yaml:"idle"`
	// MinRate is the slowest that a client holding a seat may be, in bytes a
	// second over 30 s. Defaults to 4KiB.
	MinRate int64 `yaml:"min_rate" unit:"bytes"`
	// Max is the longest an exchange lasts. 0, the default, is no limit.
	Max time.Duration `yaml:"max"`
	// Buffer is how much of an answer is read ahead of a slow client.
	// Defaults to 256KiB.
	Buffer int64 `yaml:"response_buffer" unit:"bytes"`
	// BufferTotal bounds all of those together. Defaults to 64MiB.
	BufferTotal int64 `yaml:"response_buffer_total" unit:"bytes"`
}

// PublicConfig says where callers find geoproxy.
type PublicConfig struct {
	// URL is what callers' URLs begin with, without a slash at its end, where
	// something in front changes host or path: links begin with it. Without it
	// they are paths.
	URL string `yaml:"url"`
}

// LimitsConfig bounds what a client may send.
type LimitsConfig struct {
	// Header is the largest request header, 431 above it. Defaults to 64KiB.
	Header int64 `yaml:"header" unit:"bytes"`
	// HeaderWait is the longest that sending it may take. Defaults to 10s.
	HeaderWait time.Duration `yaml:"header_wait"`
	// Idle is how long an unused connection is kept. Defaults to 120s.
	Idle time.Duration `yaml:"idle"`
	// Drain is the longest that ending requests are waited for. Defaults to 30s.
	Drain time.Duration `yaml:"drain"`
	// DrainDelay is how long readiness is false before connections are no
	// longer accepted. Defaults to 5s.
	DrainDelay time.Duration `yaml:"drain_delay"`
}

// MaxOrDefault is Max with its default.
func (t *TenantConfig) MaxOrDefault() int { return cmp.Or(t.Max, defaultTenants) }

const (
	defaultDrain      = 30 * time.Second
	defaultDrainDelay = 5 * time.Second
)

// DrainOrDefault is Drain with its default.
func (l *LimitsConfig) DrainOrDefault() time.Duration { return orDefault(l.Drain, defaultDrain) }

// DrainDelayOrDefault is DrainDelay with its default.
func (l *LimitsConfig) DrainDelayOrDefault() time.Duration {
	return orDefault(l.DrainDelay, defaultDrainDelay)
}
