package ratelimit

import "time"

// Rate is a policy as written: who may spend how much of what, and how fast.
type Rate struct {
	// Name is required beside another rate and unique in its route: the
	// identity of its state, and its name in the RateLimit headers.
	Name string `yaml:"name"`
	// For narrows the policy to some requests. Empty: all of the route's.
	For For `yaml:"for"`
	// Per says whose bucket is drawn: tenant, route, address, global, or a
	// list (a bucket for each combination). Defaults to tenant.
	Per []string `yaml:"per"`
	// Tokens refilled each Every; at least 0.001, at most 1e9.
	Tokens float64 `yaml:"tokens"`
	// Every is the time in which Tokens refill: 1ms to 1h. Defaults to 1s.
	Every time.Duration `yaml:"every"`
	// Burst is the most the bucket holds. Defaults to Tokens.
	Burst float64 `yaml:"burst"`
	// Unit is what one token buys: request (the default), second (estimated),
	// feature, vertex, cell or byte.
	Unit string `yaml:"unit"`
	// Enforce false decides in shadow: counted, never refused. Defaults to true.
	Enforce *bool `yaml:"enforce"`
}

// For narrows a policy. Each field lists what matches; an empty one matches all.
type For struct {
	Class      []string `yaml:"class"`
	Op         []string `yaml:"op"`
	Collection []string `yaml:"collection"`
	Layer      []string `yaml:"layer"`
	Format     []string `yaml:"format"`
	// Tenant lists names and classes of verified tenants from the keys file.
	Tenant []string `yaml:"tenant"`
}
