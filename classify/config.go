package classify

import "time"

// Config is how a route's requests are recognised and priced. Its zero value
// detects the family of each request and uses the rates fitted on a real
// PostGIS.
type Config struct {
	// Family names the protocol: auto (the default: detected for each request),
	// one family, or http (nothing but Rules).
	Family string `yaml:"family"`
	// Rules recognise requests before any family does; the first match wins.
	Rules []Rule `yaml:"rules"`
	// Profile names the rates that Costs change: "fitted" (the default: those
	// measured on a PostGIS) or "guide" (round ones).
	Profile string `yaml:"profile"`
	// Costs change the rates of single operations, by the operation's name.
	Costs map[string]Cost `yaml:"costs"`
	// DefaultCost prices what is not recognised. Defaults to 100ms.
	DefaultCost time.Duration `yaml:"default_cost"`
	// Assume gives the inputs that requests do not carry.
	Assume Assume `yaml:"assume"`
}

// Cost are the rates of one operation. A zero field keeps the profile's rate.
type Cost struct {
	Base       time.Duration `yaml:"base"`
	PerFeature time.Duration `yaml:"per_feature"`
	PerVertex  time.Duration `yaml:"per_vertex"`
	PerCell    time.Duration `yaml:"per_cell"`
	PerByte    time.Duration `yaml:"per_byte"`
}

// Assume are the quantities taken for what a request does not say. An estimate
// that owes most of its seconds to a default of these is of low confidence; a
// quantity that is written here is known.
type Assume struct {
	// Features of a read without a limit, and rows behind what is counted or
	// sorted in a small bbox; up to MaxLimit of them in the whole world.
	// Defaults to 1000.
	Features int `yaml:"features"`
	// Vertices per feature. Defaults to 52.
	Vertices int `yaml:"vertices"`
	// Limit is the upstream's own page size where the request names none. Defaults to 10.
	Limit int `yaml:"limit"`
	// MaxLimit is where the upstream clamps a larger limit. Defaults to 10000.
	MaxLimit int `yaml:"max_limit"`
}

// Rule recognises requests by a CEL expression and prices them by others.
//
// Expressions see request.method, request.host, request.path (in each reading
// that an upstream may make of its escapes and dot segments; the dearest
// counts) and request.headers (names in lower case), query (one value of each
// key: the last, and where that differs the first, and with pairs that end at
// ';', in turn; again the dearest counts), and body.bytes, body.features,
// body.vertices and body.bbox (four numbers). They do not see headers and query
// keys that hold credentials. One that takes more than 100,000 of CEL's steps
// fails.
type Rule struct {
	Op    string `yaml:"op"`    // the operation's name in metrics and costs; required
	Class string `yaml:"class"` // defaults to read for GET and HEAD, write otherwise
	When  string `yaml:"when"`  // CEL, bool; empty matches everything; one that fails does not match

	// Seconds, or the inputs: each a number or CEL giving one. One that fails
	// prices the request at default_cost with low confidence, as does a rule
	// without any, unless costs give the operation a base.
	Seconds  string `yaml:"seconds"`
	Features string `yaml:"features"`
	Vertices string `yaml:"vertices"`
	Cells    string `yaml:"cells"`

	// Replayable defaults to true for GET and HEAD that are no writes, false otherwise.
	Replayable *bool `yaml:"replayable"`
}

// BodyConfig bounds how much of a body is read before the decision.
type BodyConfig struct {
	// Bytes of it, at most. Defaults to 64KiB.
	Bytes int64 `yaml:"body" unit:"bytes"`
	// Wait is the longest that reading it may take. Defaults to 2s.
	Wait time.Duration `yaml:"wait"`
}
