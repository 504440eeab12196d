package ratelimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// Unit is what one token of a policy buys.
type Unit uint8

// The units.
const (
	Request Unit = iota // one request, whatever it costs
	Second              // a second of estimated work
	Feature
	Vertex
	Cell
	Byte

	unitEnd
)

var unitNames = [unitEnd]string{
	Request: "request", Second: "second", Feature: "feature", Vertex: "vertex", Cell: "cell", Byte: "byte",
}

// String gives the unit's name as it stands in the config file.
func (u Unit) String() string {
	if u < unitEnd {
		return unitNames[u]
	}
	return "unknown"
}

// ParseUnit reads a unit's name; an empty one is request.
func ParseUnit(name string) (Unit, error) {
	if name == "" {
		return Request, nil
	}
	if i := slices.Index(unitNames[:], name); i >= 0 {
		return Unit(i), nil //nolint:gosec // below unitEnd
	}
	return 0, fmt.Errorf("%q is no unit: request, second, feature, vertex, cell or byte", name)
}

const (
	// maxTokens bounds what a bucket holds and what refills, so that the
	// arithmetic keeps its precision.
	maxTokens = 1e9
	// maxCost stands for costs above all buckets.
	maxCost = Milli(1) << 60
)

// Policy is a compiled [Rate]. It is not changed once made.
type Policy struct {
	// Name of the rate; "default" where it has none.
	Name string
	Unit Unit
	// Limit is that of a tenant whose factor is 1; see [Policy.LimitFor].
	Limit Limit
	// Shadow says that the policy only counts: it never refuses.
	Shadow bool
	// PerTenant says that each tenant has a bucket. A claimed tenant's requests
	// then also draw from the bucket of its address as if that were a tenant.
	PerTenant bool
	// PerAddress says that each address has a bucket; together with PerTenant,
	// each pair. With neither there is one bucket.
	PerAddress bool

	state string // names the policy's buckets
	match match
}

// match is a compiled For.
type match struct {
	classes                                    uint32 // one bit each; 0 is all
	ops, collections, layers, formats, tenants []string
}

// Compile makes a policy of a rate of a route. The route's name is part of the
// name of its buckets unless they are global. The error is the first mistake
// that [Rate.Check] reports.
func Compile(route string, r Rate) (*Policy, error) {
	var mistake error
	r.Check(func(path, message string) {
		if mistake == nil {
			mistake = fmt.Errorf("%s: %s", path, message)
		}
	})
	if mistake != nil {
		return nil, mistake
	}
	unit, err := ParseUnit(r.Unit)
	if err != nil {
		return nil, err
	}
	per := r.Per
	if len(per) == 0 {
		per = []string{perTenant}
	}
	p := &Policy{
		Name: cmp.Or(r.Name, "default"),
		Unit: unit,
		Limit: Limit{
			Tokens: milli(r.Tokens),
			Every:  cmp.Or(r.Every, time.Second),
			Burst:  milli(cmp.Or(r.Burst, r.Tokens)),
		},
		Shadow:     r.Enforce != nil && !*r.Enforce,
		PerTenant:  slices.Contains(per, perTenant),
		PerAddress: slices.Contains(per, perAddress),
		match: match{
			ops: r.For.Op, collections: r.For.Collection, layers: r.For.Layer,
			formats: r.For.Format, tenants: r.For.Tenant,
		},
	}
	for _, name := range r.For.Class {
		class, err := classify.ParseClass(name)
		if err != nil {
			return nil, err
		}
		p.match.classes |= 1 << class
	}
	// No route is called "*".
	if slices.Contains(per, perGlobal) {
		route = "*"
	}
	p.state = route + "/" + p.Name
	return p, nil
}

// Equal reports whether two policies decide alike on the same buckets. Buckets
// are known by name, so that of two that differ only in their limit one takes
// the other's over with its used share.
func (p *Policy) Equal(q *Policy) bool {
	return p.Name == q.Name && p.Unit == q.Unit && p.Limit == q.Limit && p.Shadow == q.Shadow &&
		p.PerTenant == q.PerTenant && p.PerAddress == q.PerAddress && p.state == q.state && p.match.equal(&q.match)
}

func (m *match) equal(o *match) bool {
	return m.classes == o.classes && slices.Equal(m.ops, o.ops) && slices.Equal(m.collections, o.collections) &&
		slices.Equal(m.layers, o.layers) && slices.Equal(m.formats, o.formats) && slices.Equal(m.tenants, o.tenants)
}

// Matches reports whether a request draws from the policy. The tenant's name
// and class are those of the keys file; empty ones match only policies that are
// for every tenant.
func (p *Policy) Matches(est *classify.Estimate, tenantName, tenantClass string) bool {
	m := &p.match
	return (m.classes == 0 || m.classes&(1<<est.Class) != 0) &&
		(len(m.ops) == 0 || slices.Contains(m.ops, est.Op)) &&
		(len(m.collections) == 0 || slices.Contains(m.collections, est.Collection)) &&
		(len(m.layers) == 0 || slices.Contains(m.layers, est.Layer)) &&
		(len(m.formats) == 0 || slices.Contains(m.formats, est.Format)) &&
		(len(m.tenants) == 0 || slices.Contains(m.tenants, tenantName) || slices.Contains(m.tenants, tenantClass))
}

// Cost is what a request draws: its quantity in the policy's unit, rounded up
// to a thousandth and at least one. A quantity that is no number draws more
// than any bucket holds.
func (p *Policy) Cost(est *classify.Estimate) Milli {
	switch p.Unit {
	case Second:
		return cost(est.Seconds)
	case Feature:
		return cost(est.Features)
	case Vertex:
		return cost(est.Vertices)
	case Cell:
		return cost(est.Cells)
	case Byte:
		return cost(est.Bytes)
	case Request, unitEnd:
	}
	return 1000
}

// cost rounds a quantity up to thousandths. A thousandth is not a binary
// fraction: what is within rounding error of a whole one is that one.
func cost(quantity float64) Milli {
	thousandths := quantity * 1000
	if whole := math.Round(thousandths); math.Abs(thousandths-whole) <= 1e-12*whole {
		thousandths = whole
	}
	thousandths = math.Ceil(thousandths)
	if !(thousandths < float64(maxCost)) { // NaN is not below
		return maxCost
	}
	return max(1, Milli(thousandths))
}

// Key names the bucket that a tenant at an address draws from.
func (p *Policy) Key(tenant, address string) Key {
	switch {
	case p.PerTenant && p.PerAddress:
		return Key{p.state, tenant + "@" + address}
	case p.PerTenant:
		return Key{p.state, tenant}
	case p.PerAddress:
		return Key{p.state, address}
	}
	return Key{Policy: p.state}
}

// LimitFor is the limit of a tenant with a factor: tokens and burst times it.
// The buckets that tenants share are not scaled.
func (p *Policy) LimitFor(factor float64) Limit {
	if !p.PerTenant || factor == 1 || !(factor > 0) {
		return p.Limit
	}
	l := p.Limit
	l.Tokens, l.Burst = scale(l.Tokens, factor), scale(l.Burst, factor)
	return l
}

func scale(m Milli, factor float64) Milli {
	return Milli(max(1, min(math.Round(float64(m)*factor), maxTokens*1000)))
}

// milli converts a checked amount to thousandths.
func milli(tokens float64) Milli { return Milli(math.Round(tokens * 1000)) }
