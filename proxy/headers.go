package proxy

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/ratelimit"
)

// The header fields of the wire contract, in canonical form.
const (
	headerEstimate   = "Geoproxy-Estimate"
	headerReason     = "Geoproxy-Reason"
	headerShadow     = "Geoproxy-Shadow"
	headerPolicies   = "Ratelimit-Policy"
	headerRateLimit  = "Ratelimit"
	headerTiming     = "Server-Timing"
	headerRetryAfter = "Retry-After"
)

// headerPolicy says on which passed answers our headers stand.
type headerPolicy string

const (
	headersAuto     headerPolicy = "auto"     // not on those that a shared cache may keep
	headersAlways   headerPolicy = "always"   // on all
	headersRefusals headerPolicy = "refusals" // on none: only on our own answers
)

// on reports whether a passed answer to r gets our headers.
func (p headerPolicy) on(r *http.Request, answer http.Header) bool {
	switch p {
	case headersAlways:
		return true
	case headersRefusals:
		return false
	case headersAuto:
		return !sharedCache(r, answer)
	default:
		return !sharedCache(r, answer)
	}
}

// sharedCache reports whether an answer may be kept by a shared cache (RFC
// 9111, 3.5): our headers speak of one request and must not be served to others.
func sharedCache(r *http.Request, answer http.Header) bool {
	for _, line := range answer["Cache-Control"] {
		line = strings.ToLower(line)
		if strings.Contains(line, "no-store") || strings.Contains(line, "private") && !strings.Contains(line, "private=") {
			return false
		}
	}
	personal := len(r.Header["Authorization"]) > 0 || len(r.Header["Cookie"]) > 0
	if !personal && len(answer["Expires"]) > 0 {
		return true
	}
	for _, line := range answer["Cache-Control"] {
		line = strings.ToLower(line)
		if strings.Contains(line, "public") || strings.Contains(line, "s-maxage") {
			return true
		}
		if !personal && strings.Contains(line, "max-age") {
			return true
		}
	}
	return false
}

// disclosure says how much of an estimate a caller is told.
type disclosure string

const (
	discloseFull   disclosure = "full"
	discloseCoarse disclosure = "coarse" // seconds rounded to 1-2-5, only inputs that stand in the request
	discloseNone   disclosure = "none"
)

// of gives the seconds and the basis that may be told of an estimate.
func (d disclosure) of(est *classify.Estimate) (float64, string) {
	switch {
	case d == discloseNone || est.Seconds == 0:
		return 0, ""
	case d == discloseCoarse && est.Assumed:
		return round125(est.Seconds), ""
	case d == discloseCoarse:
		return round125(est.Seconds), est.Basis
	default:
		return est.Seconds, est.Basis
	}
}

// round125 rounds up to 1, 2 or 5 times a power of ten.
func round125(s float64) float64 {
	if s <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(s)))
	for _, step := range []float64{1, 2, 5} {
		if s <= step*unit*(1+1e-9) {
			return step * unit
		}
	}
	return 10 * unit
}

// stamp writes the headers that every answer carries: the estimate, the state
// of the rate limit, and where the time went. All values share one string and
// one slice, since this runs for each request.
func (v *Verdict) stamp(h http.Header, upstream time.Duration) {
	var scratch [384]byte
	buf := scratch[:0]
	var ends [3]int

	if v.route != nil && v.Estimate.Op != "" {
		buf = v.appendEstimate(buf)
	}
	ends[0] = len(buf)
	if v.decided != nil {
		buf = appendRateLimit(buf, v.decided, v.grant)
	}
	ends[1] = len(buf)
	buf = appendMillis(append(buf, "admission;dur="...), v.Waited)
	if upstream > 0 {
		buf = appendMillis(append(buf, ", upstream;dur="...), upstream)
	}
	ends[2] = len(buf)

	all := string(buf)
	values := [4]string{all[:ends[0]], all[ends[0]:ends[1]], all[ends[1]:ends[2]]}
	set := make([]string, 0, len(values))
	put := func(name, value string) {
		if value != "" {
			set = append(set, value)
			h[name] = set[len(set)-1 : len(set) : len(set)]
		}
	}
	put(headerEstimate, values[0])
	put(headerRateLimit, values[1])
	if v.decided != nil {
		put(headerPolicies, v.policies())
	}
	if existing := h[headerTiming]; len(existing) > 0 {
		h[headerTiming] = append(existing, values[2])
	} else {
		put(headerTiming, values[2])
	}
}

// appendEstimate writes Geoproxy-Estimate (RFC 9651: a decimal with parameters).
func (v *Verdict) appendEstimate(b []byte) []byte {
	est := &v.Estimate
	d := v.route.disclose
	secs, basis := d.of(est)
	if secs == 0 {
		return b
	}
	b = appendThousandths(b, int64(secs*1000+.5))
	b = append(b, ";op="...)
	b = appendToken(b, est.Op)
	if d == discloseFull || !est.Assumed {
		b = appendCount(b, ";features=", est.Features)
		b = appendCount(b, ";vertices=", est.Vertices)
		b = appendCount(b, ";cells=", est.Cells)
		b = appendCount(b, ";bytes=", est.Bytes)
	}
	if basis != "" {
		b = append(b, ";basis="...)
		b = appendQuoted(b, basis)
	}
	return b
}

func appendCount(b []byte, name string, n float64) []byte {
	if n < 0.5 {
		return b
	}
	return strconv.AppendInt(append(b, name...), int64(min(n, 1e15)), 10)
}

// appendToken writes an sf-token, or an sf-string where s is none.
func appendToken(b []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		alpha := c|0x20 >= 'a' && c|0x20 <= 'z'
		if i == 0 && !alpha && c != '*' {
			return appendQuoted(b, s)
		}
		if !alpha && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~:/", rune(c)) {
			return appendQuoted(b, s)
		}
	}
	return append(b, s...)
}

// appendQuoted writes an sf-string; what it cannot hold becomes '?'.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c > 0x7e:
			b = append(b, '?')
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// appendRateLimit writes RateLimit (draft-ietf-httpapi-ratelimit-headers): what
// remains in whole units, and the seconds until the bucket is full again.
func appendRateLimit(b []byte, p *ratelimit.Policy, g ratelimit.Grant) []byte {
	b = appendQuoted(b, p.Name)
	b = strconv.AppendInt(append(b, ";r="...), max(0, int64(g.Left/1000)), 10)
	reset := g.Reset
	if !g.OK && !g.Never { // what never fits is not helped by waiting: the bucket's own state
		reset = g.Wait
	}
	return strconv.AppendInt(append(b, ";t="...), int64(math.Ceil(reset.Seconds())), 10)
}

// policies gives RateLimit-Policy of what was drawn: the items written when the
// route was compiled.
func (v *Verdict) policies() string {
	text := ""
	for i, p := range v.drawnFrom {
		switch {
		case i > 0 && p == v.drawnFrom[i-1]: // drawn for the tenant and for its address
		case text == "":
			text = v.route.policyText[p]
		default:
			text += ", " + v.route.policyText[p]
		}
	}
	return text
}

// describePolicy writes a policy's RateLimit-Policy item: the quota that a full
// bucket gives and the seconds in which it refills.
func describePolicy(p *ratelimit.Policy) string {
	window := float64(p.Limit.Burst) / float64(p.Limit.Tokens) * p.Limit.Every.Seconds()
	b := appendQuoted(nil, p.Name)
	b = strconv.AppendInt(append(b, ";q="...), max(1, int64(p.Limit.Burst/1000)), 10)
	b = strconv.AppendInt(append(b, ";w="...), max(1, int64(math.Ceil(window))), 10)
	return string(b)
}

// appendMillis writes milliseconds to the microsecond.
func appendMillis(b []byte, d time.Duration) []byte {
	return appendThousandths(b, d.Microseconds())
}

// appendThousandths writes n/1000 with three decimals, by whole numbers: this
// runs three times a request.
func appendThousandths(b []byte, n int64) []byte {
	n = max(0, n)
	part := n % 1000
	return append(strconv.AppendInt(b, n/1000, 10), '.', byte('0'+part/100), byte('0'+part/10%10), byte('0'+part%10))
}
