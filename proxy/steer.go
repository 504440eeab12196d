package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// steer is what a caller asks of the way in which it is served.
type steer struct {
	async  bool          // Prefer: respond-async
	wait   time.Duration // Prefer: wait; 0 where not given
	within time.Duration // the earliest of the caller's own timeouts; 0 where none
	batch  bool          // Priority: u=6 or u=7
}

// readSteer reads Prefer (RFC 7240), Priority (RFC 9218), grpc-timeout and
// Envoy's expected timeout. What cannot be read is ignored, as those
// documents ask.
func readSteer(h http.Header) steer {
	var s steer
	for _, line := range h["Prefer"] {
		for pref := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(pref), "=")
			switch {
			case strings.EqualFold(name, "respond-async"):
				s.async = true
			case strings.EqualFold(name, "wait"):
				s.wait = wholeSeconds(strings.Trim(value, `" `))
			}
		}
	}
	if lines := h["Priority"]; len(lines) > 0 {
		s.batch = urgency(lines) >= batchUrgency
	}
	s.within = sooner(s.wait, grpcTimeout(first(h["Grpc-Timeout"])))
	s.within = sooner(s.within, milliseconds(first(h["X-Envoy-Expected-Rq-Timeout-Ms"])))
	return s
}

const (
	defaultUrgency = 3 // RFC 9218, 4.1
	batchUrgency   = 6
)

func urgency(lines []string) int64 {
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return defaultUrgency
	}
	member, ok := dict.Get("u")
	if !ok {
		return defaultUrgency
	}
	if item, ok := member.(httpsfv.Item); ok {
		if u, ok := item.Value.(int64); ok && u >= 0 && u <= 7 {
			return u
		}
	}
	return defaultUrgency
}

// grpcTimeout reads a grpc-timeout: at most eight digits and a unit.
func grpcTimeout(s string) time.Duration {
	if len(s) < 2 || len(s) > 9 {
		return 0
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if err != nil {
		return 0
	}
	unit, ok := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second,
		'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}[s[len(s)-1]]
	if !ok {
		return 0
	}
	return saturate(n, unit)
}

func wholeSeconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0
	}
	return saturate(n, time.Second)
}

func milliseconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0
	}
	return saturate(n, time.Millisecond)
}

// longest is more than any deadline may be, and far from overflowing.
const longest = 24 * time.Hour

// saturate multiplies without overflow.
func saturate(n uint64, unit time.Duration) time.Duration {
	if n > uint64(longest/unit) { //nolint:gosec // both are positive
		return longest
	}
	return time.Duration(n) * unit //nolint:gosec // bounded by longest on the line above
}

// sooner gives the shorter of two durations of which 0 means none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
