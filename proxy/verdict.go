package proxy

import (
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
	"github.com/geoproxy/geoproxy/shed"
)

// Verdict is what was decided on a request: admitted, holding what the
// upstream's work needs, or refused, holding nothing. Whoever gets an admitted
// one calls Release when the upstream's work has ended.
type Verdict struct {
	Tenant   Tenant
	Estimate classify.Estimate
	Mode     Mode
	// Refusal is why and how the request is refused; nil where it is admitted.
	Refusal *shed.Refusal
	// Shadow is the reason for which the request would have been refused by
	// what decides in shadow; empty where it would not.
	Shadow shed.Reason
	// Deadline is the latest for the upstream's header.
	Deadline time.Time
	// Waited is how long admission took, reading the body included.
	Waited time.Duration
	// Exempt requests draw no tokens and take no seat.
	Exempt bool

	config  *compiled
	route   *route
	class   *classPolicy
	steer   steer
	mode    choice
	modeIn  modeInput
	slot    *shed.Slot
	shadow  *shed.Slot
	grant   ratelimit.Grant
	decided *ratelimit.Policy // whose bucket grant speaks of; nil where none was drawn

	// What was drawn and from whose buckets. The arrays hold what nearly every
	// request needs, so that drawing allocates nothing.
	drawnFrom      []*ratelimit.Policy
	drawnArray     [2]ratelimit.Draw
	drawnFromArray [2]*ratelimit.Policy
}

// Admitted reports whether the request goes on to the upstream.
func (v *Verdict) Admitted() bool { return v.Refusal == nil }

// Release gives back what the verdict holds. Releasing again does nothing.
func (v *Verdict) Release() {
	v.slot.Release()
	v.shadow.Release()
}

// ModeReason gives the reason for the mode in words.
func (v *Verdict) ModeReason() string {
	if v.Exempt {
		return "exempt"
	}
	return v.mode.words(v.modeIn)
}

func (v *Verdict) routeName() string {
	if v.route == nil {
		return ""
	}
	return v.route.name
}

// bodyConfig says what the refusal of this request looks like.
func (v *Verdict) bodyConfig() shed.BodyConfig {
	if v.route == nil {
		return shed.BodyConfig{}
	}
	return v.route.config.Shed
}
