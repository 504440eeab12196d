package classify

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The profiles of rates.
const (
	profileFitted = "fitted"
	profileGuide  = "guide"
)

// The defaults of [Config], [Assume] and [BodyConfig].
const (
	defaultCost     = 100 * time.Millisecond
	defaultFeatures = 1000
	defaultVertices = 52
	defaultLimit    = 10
	defaultMaxLimit = 10_000

	// DefaultBodyBytes and DefaultBodyWait bound what is read of a body before
	// the decision where [BodyConfig] does not say otherwise.
	DefaultBodyBytes = 64 << 10
	DefaultBodyWait  = 2 * time.Second
)

func (c Config) defaultCost() time.Duration {
	if c.DefaultCost > 0 {
		return c.DefaultCost
	}
	return defaultCost
}

func (a Assume) withDefaults() Assume {
	if a.Features == 0 {
		a.Features = defaultFeatures
	}
	if a.Vertices == 0 {
		a.Vertices = defaultVertices
	}
	if a.MaxLimit == 0 {
		a.MaxLimit = max(defaultMaxLimit, a.Limit)
	}
	if a.Limit == 0 {
		a.Limit = min(defaultLimit, a.MaxLimit)
	}
	return a
}

// WithDefaults fills in what is not set.
func (b BodyConfig) WithDefaults() BodyConfig {
	if b.Bytes == 0 {
		b.Bytes = DefaultBodyBytes
	}
	if b.Wait == 0 {
		b.Wait = DefaultBodyWait
	}
	return b
}

// Check reports every mistake, each with its path from the BodyConfig.
func (b BodyConfig) Check(report func(path, message string)) {
	if b.Bytes < 0 || b.Bytes > 64<<20 {
		report("body", "must be between 0 and 64MiB")
	}
	if b.Wait < 0 || b.Wait > time.Minute {
		report("wait", "must be between 0 and 1m")
	}
}

// Check reports every mistake, each with its path from the route: "rules[0].when".
func (c Config) Check(report func(path, message string)) {
	known := append([]string{familyAuto, familyHTTP}, Families()...)
	if c.Family != "" && !slices.Contains(known, c.Family) {
		report("family", fmt.Sprintf("%q is no family: one of %s", c.Family, strings.Join(known, ", ")))
	}
	if c.Profile != "" && c.Profile != profileFitted && c.Profile != profileGuide {
		report("profile", fmt.Sprintf("%q is no profile: fitted or guide", c.Profile))
	}
	if c.DefaultCost < 0 || c.DefaultCost > maxSeconds*time.Second {
		report("default_cost", "must be between 0 and 1h")
	}
	c.Assume.check(report)
	c.checkCosts(report)
	if len(c.Rules) == 0 {
		return
	}
	env, err := newRuleEnv()
	if err != nil {
		report("rules", err.Error())
		return
	}
	for i := range c.Rules {
		_, mistakes := env.compile(&c.Rules[i])
		for _, m := range mistakes {
			report(fmt.Sprintf("rules[%d].%s", i, m.key), m.message)
		}
		if c.Rules[i].When == "" && i < len(c.Rules)-1 {
			report(fmt.Sprintf("rules[%d].when", i), "matches everything, so that the rules after it never match")
		}
	}
}

func (a Assume) check(report func(path, message string)) {
	for _, f := range []struct {
		key   string
		value int
	}{{"features", a.Features}, {"vertices", a.Vertices}, {"limit", a.Limit}, {"max_limit", a.MaxLimit}} {
		if f.value < 0 || f.value > maxInput {
			report("assume."+f.key, "must be between 0 and 1000000000")
		}
	}
	if a.MaxLimit > 0 && a.Limit > a.MaxLimit {
		report("assume.limit", "must not be above max_limit")
	}
}

func (c Config) checkCosts(report func(path, message string)) {
	ops := make([]string, 0, len(c.Costs))
	for op := range c.Costs {
		ops = append(ops, op)
	}
	slices.Sort(ops)
	for _, op := range ops {
		_, known := fitted[op]
		ofRule := slices.ContainsFunc(c.Rules, func(r Rule) bool { return r.Op == op })
		if !known && !ofRule && op != opUnknown {
			report("costs."+op, "no family and no rule has an operation of this name")
		}
		cost := c.Costs[op]
		for _, f := range []struct {
			key   string
			value time.Duration
		}{
			{"base", cost.Base},
			{"per_feature", cost.PerFeature},
			{"per_vertex", cost.PerVertex},
			{"per_cell", cost.PerCell},
			{"per_byte", cost.PerByte},
		} {
			if f.value < 0 || f.value > maxSeconds*time.Second {
				report("costs."+op+"."+f.key, "must be between 0 and 1h")
			}
		}
	}
}
