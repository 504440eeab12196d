package shed

import (
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/geoproxy/geoproxy/classify"
)

// A document for agents begins with what to do, has its members in a fixed
// order, and is at most 1.5 KiB. Whatever it takes from the request or the
// policy is bounded on its own, by its length after escaping, so that the
// whole is bounded too.
const (
	maxMessage  = 480
	maxBasis    = 256
	maxName     = 64
	maxDetail   = 160
	problemSize = 896 // of nearly every document; a larger one grows it
)

// The problem types that are registered (RFC 9457, section 4.2), and where
// the others are described.
const (
	typeQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeOwn      = "https://github.com/geoproxy/geoproxy/blob/main/docs/problems.md#"
)

// action is what a caller should do next: a closed set that agents switch on.
type action string

const (
	actRetry  action = "retry"
	actSubmit action = "submit_job" // with the header that the message names
	actNarrow action = "narrow"
	actAsk    action = "ask_operator"
	actStop   action = "stop"
)

// appendProblem appends the refusal as a problem document (RFC 9457).
func (r *Refusal) appendProblem(b []byte) []byte {
	act, status := r.action(), r.status()

	var scratch [maxMessage]byte
	b = append(b, `{"message":`...)
	b = appendString(b, r.appendMessage(scratch[:0]), maxMessage)
	b = append(b, `,"action":"`...)
	b = append(b, act...)
	b = append(b, `","retryable":`...)
	b = strconv.AppendBool(b, act == actRetry)
	if r.Wait > 0 {
		b = append(b, `,"retry_after_seconds":`...)
		b = strconv.AppendInt(b, int64(r.Wait), 10)
	}
	if r.Projected > 0 {
		b = append(b, `,"estimated_wait_seconds":`...)
		b = strconv.AppendInt(b, int64(r.Projected), 10)
	}
	b = append(b, `,"reason":"`...)
	b = append(b, r.Reason...)
	b = append(b, `","type":"`...)
	quota := r.Reason == Rate && status == http.StatusTooManyRequests
	switch {
	case quota:
		b = append(b, typeQuota...)
	case r.Reason == Concurrency && status == http.StatusServiceUnavailable:
		b = append(b, typeCapacity...)
	default:
		b = append(b, typeOwn...)
		b = append(b, r.Reason...)
	}
	b = append(b, `","title":"`...)
	b = append(b, r.title()...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(status), 10)

	if r.Seconds > 0 && finite(r.Seconds) {
		b = append(b, `,"estimate":{"seconds":`...)
		b = appendTwoDigits(b, r.Seconds)
		b = append(b, `,"sure":"`...)
		b = append(b, r.sure()...)
		b = append(b, '"')
		if r.Basis != "" {
			b = append(b, `,"basis":`...)
			b = appendString(b, r.Basis, maxBasis)
		}
		b = append(b, '}')
	}
	if r.Limit.Name != "" {
		b = append(b, `,"limit":{"name":`...)
		b = appendString(b, r.Limit.Name, maxName)
		b = append(b, `,"value":`...)
		b = appendNumber(b, r.Limit.Value)
		b = append(b, `,"unit":`...)
		b = appendString(b, r.Limit.Unit, maxName)
		if r.Limit.Yours > 0 {
			b = append(b, `,"yours":`...)
			b = r.Limit.appendYours(b)
		}
		b = append(b, '}')
		if quota {
			b = append(b, `,"violated-policies":[`...)
			b = appendString(b, r.Limit.Name, maxName)
			b = append(b, ']')
		}
	}
	return append(b, '}')
}

// action says what the caller should do next.
func (r *Refusal) action() action {
	if r.Job {
		return actSubmit
	}
	switch r.Reason {
	case NeverFits, OverBudget:
		return actNarrow
	case Blocked:
		return actAsk
	case NoRoute:
		return actStop
	case BadRequest:
		switch r.status() {
		case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
			return actNarrow
		}
		return actStop
	case Deadline, Upstream:
		// A write that got no answer may have been done all the same.
		if r.Class == classify.Write {
			return actStop
		}
	case QueueWait:
		return actNarrow
	case Rate, Concurrency, QueueDepth, Store, StoreFull, Dependency, Draining:
	}
	return actRetry
}

// title is the problem type's, the same for every occurrence.
func (r *Refusal) title() string {
	switch r.Reason {
	case Rate:
		return "Request quota exceeded"
	case NeverFits:
		return "Request larger than its limit"
	case Concurrency:
		return "No capacity for now"
	case Deadline:
		return "No answer in time"
	case OverBudget:
		return "Request too large to wait for"
	case QueueDepth:
		return "The queue of jobs is full"
	case QueueWait:
		return "The queue of jobs is too long"
	case Store:
		return "The store of jobs is not available"
	case StoreFull:
		return "No room for results of jobs"
	case Dependency:
		return "A dependency is not available"
	case Upstream:
		return "Upstream not available"
	case Blocked:
		return "Caller not served"
	case Draining:
		return "Server stopping"
	case NoRoute:
		return "No such route"
	case BadRequest:
		return "Request refused"
	}
	return "Refused"
}

// sure is the range of factors in which nine of ten requests of an operation
// with known inputs, or with assumed ones, end up.
func (r *Refusal) sure() string {
	if r.Low {
		return "0.1-10x"
	}
	return "0.5-2x"
}

// appendYours appends what the request has of the limit. Seconds come from the
// estimate and are rounded like it; counts stand in the request.
func (l *Limit) appendYours(b []byte) []byte {
	if l.Unit == "s" || l.Unit == "second" {
		return appendTwoDigits(b, l.Yours)
	}
	return appendNumber(b, l.Yours)
}

// appendTwoDigits appends v rounded to two significant digits.
func appendTwoDigits(b []byte, v float64) []byte {
	if !finite(v) || math.Abs(v) < 1e-6 { // a microsecond is nothing, and no digit shows it
		return append(b, '0')
	}
	digits := int(math.Floor(math.Log10(math.Abs(v)))) - 1
	if digits < 0 {
		// Dividing by a power of ten gives the nearest decimal; multiplying by
		// 0.1 does not.
		scale := math.Pow10(-digits)
		v = math.Round(v*scale) / scale
	} else {
		unit := math.Pow10(digits)
		v = math.Round(v/unit) * unit
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// appendNumber appends v with at most three decimals.
func appendNumber(b []byte, v float64) []byte {
	if !finite(v) {
		return append(b, '0')
	}
	return strconv.AppendFloat(b, math.Round(v*1000)/1000, 'f', -1, 64)
}

func finite(v float64) bool { return math.Abs(v) <= 1e15 }

// appendString appends s as a JSON string of at most limit bytes between its
// quotes, cut at a character. Control characters and invalid UTF-8 become
// spaces, and what HTML reads as markup is escaped, since documents end up in
// pages.
func appendString[S string | []byte](b []byte, s S, limit int) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	end := len(b) + limit
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c < ' ' || c == 0x7f:
			if len(b)+1 > end {
				return append(b, '"')
			}
			b = append(b, ' ')
			i++
		case c == '"' || c == '\\':
			if len(b)+2 > end {
				return append(b, '"')
			}
			b = append(b, '\\', c)
			i++
		case c == '<' || c == '>' || c == '&':
			if len(b)+6 > end {
				return append(b, '"')
			}
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			i++
		case c < utf8.RuneSelf:
			if len(b)+1 > end {
				return append(b, '"')
			}
			b = append(b, c)
			i++
		default:
			tail := s[i:min(len(s), i+utf8.UTFMax)]
			char, size := utf8.DecodeRuneInString(string(tail))
			if char == utf8.RuneError && size <= 1 {
				char, size = ' ', 1
			}
			if len(b)+utf8.RuneLen(char) > end {
				return append(b, '"')
			}
			b = utf8.AppendRune(b, char)
			i += size
		}
	}
	return append(b, '"')
}
