package ratelimit

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// The values of Rate.Per.
const (
	perTenant  = "tenant"
	perRoute   = "route"
	perAddress = "address"
	perGlobal  = "global"
)

const (
	minEvery = time.Millisecond
	maxEvery = time.Hour
	// maxRefill is the longest that a bucket may take to refill. What takes
	// longer is no bucket but a quota.
	maxRefill = 365 * 24 * time.Hour
)

// rateName is what may stand in a header, a metric and a key alike.
var rateName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Check reports every mistake in the rate, with the path of its key. That names
// are unique is for the route to check.
func (r *Rate) Check(report func(path, message string)) {
	if r.Name != "" && !rateName.MatchString(r.Name) {
		report("name", fmt.Sprintf("%q must be 1 to 64 letters, digits, '.', '_' or '-', and begin with a letter or digit", r.Name))
	}
	r.For.check(report)
	r.checkPer(report)
	r.checkAmounts(report)
	if _, err := ParseUnit(r.Unit); err != nil {
		report("unit", err.Error())
	}
}

func (f *For) check(report func(path, message string)) {
	for i, name := range f.Class {
		if _, err := classify.ParseClass(name); err != nil {
			report(fmt.Sprintf("for.class[%d]", i), err.Error())
		}
	}
	lists := []struct {
		name   string
		values []string
	}{{"op", f.Op}, {"collection", f.Collection}, {"layer", f.Layer}, {"format", f.Format}, {"tenant", f.Tenant}}
	for _, list := range lists {
		for i, value := range list.values {
			if value == "" {
				report(fmt.Sprintf("for.%s[%d]", list.name, i), "must not be empty")
			}
		}
	}
}

func (r *Rate) checkPer(report func(path, message string)) {
	for i, per := range r.Per {
		path := fmt.Sprintf("per[%d]", i)
		switch per {
		case perTenant, perAddress, perRoute, perGlobal:
		default:
			report(path, fmt.Sprintf("%q is neither tenant, route, address nor global", per))
			continue
		}
		if slices.Contains(r.Per[:i], per) {
			report(path, fmt.Sprintf("%q stands twice", per))
		}
	}
	if slices.Contains(r.Per, perRoute) && slices.Contains(r.Per, perGlobal) {
		report("per", "route and global contradict each other: one bucket is the route's, the other all routes'")
	}
	if slices.Contains(r.Per, perGlobal) && r.Name == "" {
		report("name", "is required with per: global, because it is what the routes share")
	}
}

func (r *Rate) checkAmounts(report func(path, message string)) {
	sound := true
	fail := func(path, message string) {
		sound = false
		report(path, message)
	}
	within := func(amount float64) bool { return amount >= 0.001 && amount <= maxTokens }
	if !within(r.Tokens) {
		fail("tokens", fmt.Sprintf("must be 0.001 to 1e9, not %g", r.Tokens))
	}
	if r.Burst != 0 && !within(r.Burst) {
		fail("burst", fmt.Sprintf("must be 0.001 to 1e9, not %g", r.Burst))
	}
	every := r.Every
	if every == 0 {
		every = time.Second
	}
	if every < minEvery || every > maxEvery {
		fail("every", fmt.Sprintf("must be %v to %v, not %v", minEvery, maxEvery, every))
	}
	if !sound || r.Burst == 0 {
		return
	}
	if refill := r.Burst / r.Tokens * every.Seconds(); refill > maxRefill.Seconds() {
		report("burst", fmt.Sprintf("takes %.0f days to refill: at most %.0f", math.Ceil(refill/86400), maxRefill.Hours()/24))
	}
}
