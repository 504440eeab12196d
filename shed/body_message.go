package shed

import (
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/geoproxy/geoproxy/classify"
)

// appendMessage appends one sentence or a few for people and agents: first
// what to do, then why, with the limit's numbers. It is plain text of at most
// maxMessage bytes, without control characters.
func (r *Refusal) appendMessage(b []byte) []byte {
	if r.Job {
		b = append(b, "Send it again with the header Prefer: respond-async, and it is run as a job. "...)
	}
	switch r.Reason {
	case Rate:
		b = r.appendRetry(b)
		b = append(b, "The rate limit has no room for this request now."...)
		b = r.appendLimit(b)
	case NeverFits:
		b = append(b, "Ask for less: this request costs more than its rate limit ever holds, so waiting does not help."...)
		b = r.appendLimit(b)
	case Concurrency:
		b = r.appendRetry(b)
		if r.status() == http.StatusTooManyRequests {
			b = append(b, "Your own share of this service is in use."...)
		} else {
			b = append(b, "This service is busy: no place became free in time."...)
		}
		b = r.appendLimit(b)
	case Deadline:
		if r.Class == classify.Write {
			b = append(b, "Do not repeat this unchecked: the change may have been made. "...)
		} else {
			b = r.appendRetry(b)
		}
		b = append(b, "The service did not answer in time."...)
		b = r.appendLimit(b)
	case OverBudget:
		b = append(b, "Ask for less: this request is too large to be waited for."...)
		b = r.appendLimit(b)
	case QueueDepth, QueueWait:
		if r.Reason == QueueWait {
			b = append(b, "Ask for less, or retry later: jobs wait too long now."...)
		} else {
			b = r.appendRetry(b)
			b = append(b, "No more jobs are queued now."...)
		}
		if r.Projected > 0 {
			b = append(b, " Projected wait: "...)
			b = strconv.AppendInt(b, int64(r.Projected), 10)
			b = append(b, " s."...)
		}
		b = r.appendLimit(b)
	case Store:
		b = r.appendRetry(b)
		b = append(b, "The store of jobs is not available, so this request was not queued as far as is known."...)
	case StoreFull:
		b = r.appendRetry(b)
		b = append(b, "There is no room for the results of more jobs: fetch and delete those that are finished."...)
	case Dependency:
		b = r.appendRetry(b)
		b = append(b, "Something that this service needs is not available."...)
	case Upstream:
		if r.Class == classify.Write {
			b = append(b, "Do not repeat this unchecked: the change may have been made. "...)
		} else {
			b = r.appendRetry(b)
		}
		b = append(b, "The service behind this address could not be reached, or broke off."...)
	case Blocked:
		b = append(b, "Ask the operator of this service: this caller is not served."...)
	case Draining:
		b = r.appendRetry(b)
		b = append(b, "This server is stopping; use a new connection."...)
	case NoRoute:
		b = append(b, "Check the address: this server serves nothing under it."...)
	case BadRequest:
		if r.action() == actNarrow {
			b = append(b, "Send a smaller request: this one passes a limit."...)
			b = r.appendLimit(b)
		} else {
			b = append(b, "Correct the request: it is not served as it stands."...)
		}
	}
	if r.Detail != "" {
		b = append(b, ' ')
		at := len(b)
		b = appendPlain(b, r.Detail, maxDetail)
		if first := b[at]; 'a' <= first && first <= 'z' { // an error's words, here a sentence
			b[at] = first - 'a' + 'A'
		}
		if b[len(b)-1] != '.' {
			b = append(b, '.')
		}
	}
	return b
}

// appendRetry says when to send the request again.
func (r *Refusal) appendRetry(b []byte) []byte {
	if r.Wait <= 0 {
		return append(b, "Retry later. "...)
	}
	b = append(b, "Retry in "...)
	b = strconv.AppendInt(b, int64(r.Wait), 10)
	return append(b, " s. "...)
}

// appendLimit names the limit with its numbers.
func (r *Refusal) appendLimit(b []byte) []byte {
	l := &r.Limit
	if l.Name == "" {
		return b
	}
	b = append(b, " Limit "...)
	b = appendPlain(b, l.Name, maxName)
	b = append(b, ": "...)
	b = appendNumber(b, l.Value)
	if l.Unit != "" {
		b = append(b, ' ')
		b = l.appendUnit(b)
	}
	if l.Yours > 0 {
		b = append(b, "; this request: "...)
		b = l.appendYours(b)
	}
	return append(b, '.')
}

// appendUnit appends the unit as it is said of so many.
func (l *Limit) appendUnit(b []byte) []byte {
	switch {
	case l.Value == 1 || l.Unit == "s":
		return appendPlain(b, l.Unit, maxName/2)
	case l.Unit == "vertex":
		return append(b, "vertices"...)
	}
	return append(appendPlain(b, l.Unit, maxName/2-1), 's')
}

// appendPlain appends at most limit bytes of s, cut at a character, with
// spaces for control characters and invalid UTF-8.
func appendPlain(b []byte, s string, limit int) []byte {
	end := len(b) + limit
	for _, char := range s {
		if char < ' ' || char == 0x7f || char == utf8.RuneError {
			char = ' '
		}
		if len(b)+utf8.RuneLen(char) > end {
			break
		}
		b = utf8.AppendRune(b, char)
	}
	return b
}
