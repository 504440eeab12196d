package proxy

import (
	"cmp"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// TooBig says what happens to a request that is too big to wait for and for
// which no job is possible.
type TooBig string

// What may happen to it.
const (
	TooBigWait   TooBig = "wait"   // it runs inline, as batch, under the class's deadline
	TooBigRefuse TooBig = "refuse" // 422, unless the estimate is of low confidence
)

// classPolicy is what a class does on a route.
type classPolicy struct {
	admission   time.Duration
	deadline    time.Duration
	inline      float64 // seconds
	alwaysQueue float64 // seconds
	tooBig      TooBig
	shadow      bool
	async       bool // who sends it counts as having asked for a job
}

const (
	defaultInline      = 2 * time.Second
	defaultAlwaysQueue = 30 * time.Second
	// ownTimeoutSlack is granted beyond a request's own timeout, so that the
	// upstream can be the one to report that it passed.
	ownTimeoutSlack = 5 * time.Second
)

// classDefaults holds the defaults of every class. A class's absence is a
// fault that TestEveryClassHasDefaults finds.
var classDefaults = map[classify.Class]ClassConfig{
	classify.Metadata:  {Admission: 5 * time.Second, Deadline: 30 * time.Second, TooBig: string(TooBigWait)},
	classify.Tile:      {Admission: 2 * time.Second, Deadline: 10 * time.Second, TooBig: string(TooBigRefuse)},
	classify.Map:       {Admission: 3 * time.Second, Deadline: 30 * time.Second, TooBig: string(TooBigRefuse)},
	classify.Typeahead: {Admission: 200 * time.Millisecond, Deadline: 2 * time.Second, TooBig: string(TooBigRefuse)},
	classify.Read:      {Admission: 1500 * time.Millisecond, Deadline: 30 * time.Second, TooBig: string(TooBigRefuse)},
	classify.Download:  {Admission: 30 * time.Second, Deadline: 10 * time.Minute, TooBig: string(TooBigWait)},
	classify.Compute:   {Admission: 5 * time.Second, Deadline: 60 * time.Second, TooBig: string(TooBigWait)},
	classify.Async:     {Admission: 5 * time.Second, Deadline: 30 * time.Second, TooBig: string(TooBigWait)},
	classify.Range:     {Admission: 2 * time.Second, Deadline: 30 * time.Second, TooBig: string(TooBigWait)},
	classify.MCP:       {Admission: 1500 * time.Millisecond, Deadline: 45 * time.Second, TooBig: string(TooBigRefuse)},
	classify.Write:     {Admission: 1500 * time.Millisecond, Deadline: 60 * time.Second, TooBig: string(TooBigWait)},
}

// compileClass merges what a route says of a class over its defaults.
func compileClass(class classify.Class, said ClassConfig, shadow bool) classPolicy {
	base := classDefaults[class]
	p := classPolicy{
		admission: cmp.Or(said.Admission, base.Admission),
		deadline:  cmp.Or(said.Deadline, base.Deadline),
		tooBig:    TooBig(cmp.Or(said.TooBig, base.TooBig)),
		async:     said.Async,
		shadow:    shadow || (said.Enforce != nil && !*said.Enforce),
	}
	alwaysQueue := cmp.Or(said.AlwaysQueue, min(defaultAlwaysQueue, p.deadline))
	p.alwaysQueue = alwaysQueue.Seconds()
	p.inline = cmp.Or(said.Inline, min(defaultInline, alwaysQueue)).Seconds()
	return p
}

// deadlineFor is the class's deadline for a request with a timeout of its own:
// that and a little, where the class computes, so that the upstream reports it.
func (p *classPolicy) deadlineFor(est *classify.Estimate) time.Duration {
	if est.Class == classify.Compute && est.Timeout > 0 {
		return est.Timeout + ownTimeoutSlack
	}
	return p.deadline
}
