package classify

import (
	"bytes"
	"math"
	"time"
)

// unknownTimes is how many moments are taken for an interval that does not say
// how many it has: an open one, or one whose dates cannot be read.
const unknownTimes = 100

// maxTimes bounds the moments of one request: nobody draws more.
const maxTimes = 1e6

// times counts the moments that a TIME or ELEVATION names: a list of values and
// of intervals, "from/to" or "from/to/step" (OGC 06-042, annex C and D).
// Guessed are those among them of intervals that do not say.
func (e escaped) times() (n, guessed float64) {
	var buf [512]byte
	if len(e) > len(buf) {
		return maxTimes, maxTimes
	}
	text := e.appendText(buf[:0])
	for more := true; more; {
		var item []byte
		item, text, more = bytes.Cut(text, []byte{','})
		from, rest, interval := bytes.Cut(item, []byte{'/'})
		if !interval {
			n++
			continue
		}
		to, step, _ := bytes.Cut(rest, []byte{'/'})
		if of := steps(from, to, step); of > 0 {
			n += of
		} else {
			n += unknownTimes
			guessed += unknownTimes
		}
	}
	return min(n, maxTimes), min(guessed, maxTimes)
}

// steps counts the steps of an interval, 0 where they cannot be counted.
func steps(from, to, step []byte) float64 {
	if a, ok := parseBytes(from); ok && len(step) > 0 { // an elevation
		b, okTo := parseBytes(to)
		by, okBy := parseBytes(step)
		if okTo && okBy && by > 0 && b >= a {
			return math.Floor((b-a)/by) + 1
		}
		if okTo && okBy { // some go the other way round, or ask for one value
			return 1 + unknownTimes
		}
	}
	a, okFrom := parseDate(from)
	b, okTo := parseDate(to)
	by, okBy := parsePeriod(step)
	if !okFrom || !okTo || !okBy || by <= 0 {
		return 0
	}
	return math.Floor(math.Abs(b-a)/by) + 1
}

func parseBytes(s []byte) (float64, bool) {
	if len(s) > maxNumber {
		return 0, false
	}
	return parseNumber(string(s))
}

// parseDate reads a date of ISO 8601, as far as it is written, into seconds.
func parseDate(s []byte) (float64, bool) {
	if len(s) > 32 || len(s) < 4 {
		return 0, false
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z", "2006-01-02", "2006-01", "2006"} {
		if len(s) < len(layout)-5 || len(s) > len(layout)+8 {
			continue
		}
		if t, err := time.Parse(layout, string(s)); err == nil {
			return float64(t.Unix()), true
		}
	}
	return 0, false
}

// parsePeriod reads a period of ISO 8601, "P1Y2M10DT2H30M", into seconds.
func parsePeriod(s []byte) (seconds float64, ok bool) {
	if len(s) < 3 || s[0]|0x20 != 'p' {
		return 0, false
	}
	clock := false
	for i := 1; i < len(s); {
		if s[i]|0x20 == 't' {
			clock = true
			i++
			continue
		}
		end := i
		for end < len(s) && (isDigit(s[end]) || s[end] == '.') {
			end++
		}
		n, isNumber := parseBytes(s[i:end])
		if !isNumber || end == len(s) {
			return 0, false
		}
		var unit float64
		switch s[end] | 0x20 {
		case 'y':
			unit = 365 * 86400
		case 'm':
			if unit = 30 * 86400; clock {
				unit = 60
			}
		case 'w':
			unit = 7 * 86400
		case 'd':
			unit = 86400
		case 'h':
			unit = 3600
		case 's':
			unit = 1
		default:
			return 0, false
		}
		seconds += n * unit
		i = end + 1
	}
	return seconds, true
}
