package classify

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Classifier prices the requests of one route. It is immutable, and safe for
// concurrent use.
type Classifier struct {
	rules      []rule
	rulesBody  bool     // some rule reads the body
	rulesQuery bool     // some rule reads the query
	families   []family // those that are asked, in their order
	settings   settings
	model      model
}

// New compiles a config. The error joins everything that [Config.Check] reports.
func New(cfg Config) (*Classifier, error) {
	var mistakes []error
	cfg.Check(func(path, message string) { mistakes = append(mistakes, fmt.Errorf("%s: %s", path, message)) })
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	c := &Classifier{model: newModel(cfg), settings: settings{assume: cfg.Assume.withDefaults(), sure: sure{
		features: cfg.Assume.Features > 0,
		vertices: cfg.Assume.Vertices > 0,
		limit:    cfg.Assume.Limit > 0,
	}}}
	for _, f := range families {
		switch cfg.Family {
		case f.name:
			c.families, c.settings.forced = []family{f}, true
		case "", familyAuto:
			c.families = append(c.families, f)
		}
	}
	if len(cfg.Rules) > 0 {
		env, err := newRuleEnv()
		if err != nil {
			return nil, err
		}
		for i := range cfg.Rules {
			r, mistakes := env.compile(&cfg.Rules[i])
			if len(mistakes) > 0 {
				return nil, fmt.Errorf("rules[%d].%s: %s", i, mistakes[0].key, mistakes[0].message)
			}
			r.based = cfg.Costs[r.op].Base > 0
			c.rules = append(c.rules, r)
			c.rulesBody = c.rulesBody || r.body
			c.rulesQuery = c.rulesQuery || r.query
		}
	}
	return c, nil
}

// NeedsBody reports whether the body of r changes its price, so that the front
// end has to read the beginning of it before it asks for the estimate: creates
// and queries of OGC API collections, GeoJSON, XML and forms to upstreams of any
// kind, and
// whatever a rule that mentions the body may match. It looks at r without its
// body, and is false for streams whose caller waits for an answer before it
// sends more.
func (c *Classifier) NeedsBody(r *Request) bool {
	if method := MethodOverride(r.Header); method != "" {
		other := *r
		other.Method = strings.ToUpper(method)
		if c.needsBody(&other) {
			return true
		}
	}
	return c.needsBody(r)
}

func (c *Classifier) needsBody(r *Request) bool {
	if r.Body.empty() || r.streams() {
		return false
	}
	if c.rulesBody {
		return true
	}
	if r.read() { // no family reads the body of a GET
		return false
	}
	v := c.view(r)
	defer done(v)
	v.split(r.Path)
	body, recognised := false, false
	c.recognise(v, func(a answer) {
		body, recognised = body || a.body, true
	})
	return body || !recognised && r.mayCarryGeometry()
}

// Estimate prices r. It never fails: what it cannot read is priced as the
// dearest that it could be, and what nothing recognises at the config's default
// cost.
//
// A path or a query that upstreams read in several ways, and a method that a
// header asks them to take for another, is priced in each.
func (c *Classifier) Estimate(r *Request) Estimate {
	best := c.estimate(r)
	if method := MethodOverride(r.Header); method != "" {
		other := *r
		other.Method = strings.ToUpper(method)
		best = dearer(best, c.estimate(&other))
	}
	return best
}

func (c *Classifier) estimate(r *Request) Estimate {
	v := c.view(r)
	defer done(v)
	var in *ruleInput
	if len(c.rules) > 0 {
		in = &ruleInput{request: r}
	}
	best := c.price(v, in, r.Path)
	also := func(path string) { best = dearer(best, c.price(v, in, path)) }
	PathReadings(r.Path, also)
	if c.rulesQuery {
		queryReadings(r.Query, func(query map[string]string) {
			in.query = query
			also(r.Path)
			PathReadings(r.Path, also)
		})
	}
	return best
}

// price prices one reading of the path: by the first rule that matches, else by
// the dearest of what the families recognise in it.
func (c *Classifier) price(v *view, in *ruleInput, reading string) Estimate {
	for i := range c.rules {
		in.path = reading
		if e, matched := c.rules[i].estimate(in, c.model); matched {
			return e
		}
	}
	v.split(reading)
	var best Estimate
	c.recognise(v, func(a answer) {
		if e := c.model.price(a); best.Family == "" {
			best = e
		} else {
			best = dearer(best, e)
		}
	})
	if best.Family == "" {
		return c.model.price(unknown(v.Request))
	}
	return best
}

// views are kept, for the families are called through a table and so have the
// view on the heap.
var views = sync.Pool{New: func() any { return new(view) }}

func (c *Classifier) view(r *Request) *view {
	v := views.Get().(*view) //nolint:forcetypeassert // the pool holds nothing else
	v.Request, v.settings = r, c.settings
	return v
}

// done gives a view back. It keeps nothing of the request.
func done(v *view) {
	*v = view{}
	views.Put(v)
}

// recognise gives what the families read. Several may: what a query or an XML
// body asks of one service is nothing to an upstream that goes by the path, or
// that takes another of two values of SERVICE=. So each of the families that go
// by the query is heard, and one of those that go by the path, the first.
func (c *Classifier) recognise(v *view, heard func(answer)) {
	if v.n < 0 {
		return
	}
	for i := range c.families {
		f := &c.families[i]
		a, ok := f.recognise(v)
		if !ok {
			continue
		}
		a.Family = f.name
		heard(a)
		if f.rank >= rankPath {
			return
		}
	}
}

// dearer is what two readings of one request come to: the dearer price, under
// the name of the reading that has it, or of the first where the second is not
// recognised. If either is a write, or not to be repeated, so is the request.
func dearer(a, b Estimate) Estimate {
	keep, price := a, a
	if b.Seconds > a.Seconds {
		price = b
		if b.Op != opUnknown || a.Op == opUnknown {
			keep = b
		}
	}
	if keep.Class != Write && b.Class == Write {
		keep = b
	} else if keep.Class != Write && a.Class == Write {
		keep = a
	}
	keep.Seconds, keep.Low, keep.Basis = price.Seconds, price.Low, price.Basis
	keep.Replayable = a.Replayable && b.Replayable
	keep.Forbidden = cmp.Or(a.Forbidden, b.Forbidden)
	return keep
}
