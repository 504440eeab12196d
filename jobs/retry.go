package jobs

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// longestBackoff bounds the time between two attempts.
const longestBackoff = time.Minute

// Backoff is how long to wait after an attempt, counted from 1, before the
// next: min(60, 2^attempt) seconds, of which a random half is taken off so that
// what failed together does not come back together. An upstream that said when
// to come back is not asked before that.
func Backoff(attempt int, retryAfter time.Duration) time.Duration {
	d := longestBackoff
	if attempt < 6 {
		d = time.Second << max(0, attempt)
	}
	d = d/2 + rand.N(d/2+1) //nolint:gosec // it spreads, it keeps no secret
	return max(d, min(retryAfter, time.Hour))
}

// Transient reports whether an answer with this status may be another one
// later: the upstream's gateway errors, and what it says to try again.
func Transient(status int, retryAfter bool) bool {
	switch status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusTooManyRequests:
		return retryAfter
	}
	return false
}
