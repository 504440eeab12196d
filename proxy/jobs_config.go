package proxy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// JobsConfig says who may be answered with a job on a route, and bounds them.
type JobsConfig struct {
	// When: asked (the default: who asked for a job, by Prefer: respond-async
	// or otherwise), allowed (also callers that did not ask and can follow a
	// 202), or never.
	When string `yaml:"when"`
	// Workers is how many jobs of the route this process runs at once, within
	// the gate's batch share. Defaults to 2.
	Workers int `yaml:"workers"`
	// MaxDepth is how many may be queued and running, of all replicas. Defaults to 200.
	MaxDepth int `yaml:"max_depth"`
	// MaxWait is the longest projected wait of a new one, its own estimate
	// included. Defaults to 10m.
	MaxWait time.Duration `yaml:"max_wait"`
	// Timeout is the longest that one attempt may take. Defaults to 30m.
	Timeout time.Duration `yaml:"timeout"`
	// Keep is how long results are kept, and how long a job may wait to be
	// started. Defaults to 24h.
	Keep time.Duration `yaml:"keep"`
	// Attempts is how often a job is started at most. Defaults to 3.
	Attempts int `yaml:"attempts"`
	// MaxBody is the largest request body that is kept for a job. Defaults to 64MiB.
	MaxBody int64 `yaml:"max_body" unit:"bytes"`
	// MaxResult is the largest result. Defaults to 1GiB; a store in Postgres
	// takes 256MiB.
	MaxResult int64 `yaml:"max_result" unit:"bytes"`
	// MaxStored is what all results of the route may take. Above it those that
	// were fetched are deleted, oldest first, and then no new job is accepted.
	// Defaults to 10GiB.
	MaxStored int64 `yaml:"max_stored" unit:"bytes"`
}

// The values of JobsConfig.When.
const (
	jobsAsked   = "asked"
	jobsAllowed = "allowed"
	jobsNever   = "never"
)

// withDefaults fills in what was not written.
func (c JobsConfig) withDefaults() JobsConfig {
	c.When = cmp.Or(c.When, jobsAsked)
	c.Workers = cmp.Or(c.Workers, 2)
	c.MaxDepth = cmp.Or(c.MaxDepth, 200)
	c.MaxWait = cmp.Or(c.MaxWait, 10*time.Minute)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Minute)
	c.Keep = cmp.Or(c.Keep, 24*time.Hour)
	c.Attempts = cmp.Or(c.Attempts, 3)
	c.MaxBody = cmp.Or(c.MaxBody, 64<<20)
	c.MaxResult = cmp.Or(c.MaxResult, 1<<30)
	c.MaxStored = cmp.Or(c.MaxStored, 10<<30)
	return c
}

func (c JobsConfig) limits() jobs.Limits { return jobs.Limits{Depth: c.MaxDepth, Wait: c.MaxWait} }

// NeedsJobs reports whether any route may answer with a job.
func (c *Config) NeedsJobs() bool {
	return c.Upstream != "" || slices.ContainsFunc(c.Routes, func(r RouteConfig) bool { return r.Jobs.When != jobsNever })
}

func (k *checker) jobs(path string, c JobsConfig) {
	k.oneOf(path+".when", c.When, jobsAsked, jobsAllowed, jobsNever)
	for _, b := range []struct {
		key           string
		value, lo, hi int64
		unit          string
	}{
		{"workers", int64(c.Workers), 1, 1000, ""},
		{"max_depth", int64(c.MaxDepth), 1, 100_000, ""},
		{"attempts", int64(c.Attempts), 1, 20, ""},
		{"max_body", c.MaxBody, 1 << 10, 1 << 40, " bytes"},
		{"max_result", c.MaxResult, 1 << 10, 1 << 50, " bytes"},
		{"max_stored", c.MaxStored, 1 << 10, 1 << 60, " bytes"},
	} {
		if b.value != 0 && (b.value < b.lo || b.value > b.hi) {
			k.mistake(path+"."+b.key, fmt.Sprintf("must be %d to %d%s", b.lo, b.hi, b.unit))
		}
	}
	d := c.withDefaults()
	if d.MaxResult > d.MaxStored {
		k.mistake(path+".max_result", fmt.Sprintf("is larger than max_stored (%d), the bound of all together", d.MaxStored))
	}
	if d.Keep < time.Minute {
		k.warn(path+".keep", "is so short that results may be deleted before they are fetched")
	}
	if d.When == jobsAllowed {
		k.warn(path+".when", "answers 202 to callers that did not ask: software that does not know it takes it for success")
	}
}
