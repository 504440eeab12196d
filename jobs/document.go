package jobs

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Document is what is told of a job: an OGC API - Processes statusInfo that
// begins with what to do.
type Document struct {
	Message    string            `json:"message"`
	Action     string            `json:"action"`
	Retryable  bool              `json:"retryable"`
	RetryAfter int               `json:"retry_after_seconds,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	JobID      ID                `json:"jobID"`
	Type       string            `json:"type"`
	Status     State             `json:"status"`
	Estimate   *DocumentEstimate `json:"estimate,omitempty"`
	Limit      *DocumentLimit    `json:"limit,omitempty"`
	Attempt    int               `json:"attempt"`
	Position   int               `json:"position,omitempty"`
	Wait       int               `json:"estimated_wait_seconds,omitempty"`
	Created    string            `json:"created"`
	Started    string            `json:"started,omitempty"`
	Finished   string            `json:"finished,omitempty"`
	Expires    string            `json:"expires,omitempty"`
	Links      []Link            `json:"links,omitempty"`
}

// DocumentEstimate is what the job was priced at.
type DocumentEstimate struct {
	Seconds float64 `json:"seconds"`
	Sure    string  `json:"sure"`
	Basis   string  `json:"basis,omitempty"`
}

// DocumentLimit is what the request passed.
type DocumentLimit struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Yours float64 `json:"yours,omitempty"`
}

// Link leads on (RFC 8288).
type Link struct {
	Href  string `json:"href"`
	Rel   string `json:"rel"`
	Type  string `json:"type,omitempty"`
	Title string `json:"title,omitempty"`
}

// What a caller should do next: a closed set that agents switch on.
const (
	actWait   = "wait_job"
	actFetch  = "fetch_result"
	actNarrow = "narrow"
	actRetry  = "retry"
	actStop   = "stop"
)

const (
	// maxBasis bounds what a document takes of the request.
	maxBasis = 256
	maxError = 200
	// pollAfter is when to ask again where nothing better is known.
	pollAfter = 5
)

// Describe tells of a job. The base is the path of all jobs, such as
// "/geoproxy/jobs".
func (j *Job) Describe(base string) Document {
	self := base + "/" + string(j.ID)
	d := Document{
		JobID: j.ID, Type: "process", Status: j.State, Attempt: j.Attempt,
		Created: stamp(j.Created), Started: stamp(j.Started), Finished: stamp(j.Finished), Expires: stamp(j.Expires),
		Links: []Link{{Href: self, Rel: "self", Type: "application/json"}},
	}
	if j.State == Accepted || j.State == Running {
		d.Links[0].Rel = "monitor"
	}
	if j.Info.Seconds > 0 {
		d.Estimate = &DocumentEstimate{Seconds: twoDigits(j.Info.Seconds), Sure: "0.5-2x", Basis: cut(j.Info.Basis, maxBasis)}
		if j.Info.Low {
			d.Estimate.Sure = "0.1-10x"
		}
	}
	ask := " Ask GET " + self + "?wait=30."
	switch {
	case j.Gone:
		d.Message, d.Action = "The result of "+string(j.ID)+" has expired and is deleted. Send the request again.", actStop
	case j.State == Accepted:
		wait := j.Ahead.Wait + j.Estimate
		d.Position, d.Wait = j.Ahead.Position, seconds(wait)
		d.Action, d.Retryable, d.Reason = actWait, true, j.Info.Reason
		d.RetryAfter = min(max(1, seconds(wait)), 30)
		if j.Info.Inline > 0 {
			d.Limit = &DocumentLimit{Name: "inline", Value: j.Info.Inline, Unit: "s", Yours: twoDigits(j.Info.Seconds)}
		}
		queued := "Queued as "
		if j.Attempt > 0 {
			queued = "To be tried again: queued as "
		}
		d.Message = fmt.Sprintf("Not the result yet. %s%s; estimated %s, waited %s so far; about %d s.%s",
			queued, j.ID, words(j.Estimate), words(j.Now.Sub(j.Created)), seconds(wait), ask)
	case j.State == Running:
		elapsed := j.Now.Sub(j.Started)
		rest := max(0, j.Estimate-elapsed)
		d.Action, d.Retryable, d.Reason = actWait, true, j.Info.Reason
		d.Wait = seconds(rest)
		d.RetryAfter = pollAfter
		if rest > 0 {
			d.RetryAfter = min(max(1, seconds(rest)), 30)
		}
		d.Message = fmt.Sprintf("Not the result yet. %s is running for %s; estimated %s.%s", j.ID, words(elapsed), words(j.Estimate), ask)
	case j.State == Successful:
		d.Action = actFetch
		d.Message = fmt.Sprintf("Finished: fetch the result (%d bytes) with GET %s/results before %s.", j.Size, self, d.Expires)
		d.Links = append(d.Links, Link{Href: self + "/results", Rel: relResults, Title: "the result"})
	case j.State == Dismissed:
		d.Action = actStop
		d.Message = "Cancelled: " + string(j.ID) + " has no result."
	default:
		d.Reason = j.Reason
		d.Action, d.Retryable = actNarrow, false
		switch j.Reason {
		case ReasonTooLarge, ReasonTimeout:
		case ReasonQueueWait, ReasonStoreFull, ReasonLost:
			d.Action, d.Retryable = actRetry, true
		default:
			d.Action = actStop
		}
		why := j.Error
		if why == "" {
			why = "no error was recorded"
		}
		d.Message = fmt.Sprintf("Failed: %s ended without a result: %s.", j.ID, cut(why, maxError))
		if j.Reason == ReasonUpstream {
			d.Message += " GET " + self + "/results tells what the upstream said."
			d.Links = append(d.Links, Link{Href: self + "/results", Rel: "http://www.opengis.net/def/rel/ogc/1.0/exceptions"})
		}
	}
	return d
}

const relResults = "http://www.opengis.net/def/rel/ogc/1.0/results"

// JSON writes a document. It is at most 1.5 KiB: all that it takes from outside
// is bounded.
func (d *Document) JSON() []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(true) // documents end up in pages
	if err := e.Encode(d); err != nil {
		return nil // only text and finite numbers
	}
	return []byte(b.String())
}

// Hint is one line for an agent's prompt, at most 200 characters: what has
// finished, and how many still run. It is empty where there is neither.
func Hint(list []*Job) string {
	var finished, others []string
	running := 0
	for _, j := range list {
		switch {
		case j.Gone, j.State == Dismissed:
		case j.State == Successful:
			finished = append(finished, string(j.ID))
		case j.State == Failed:
			others = append(others, string(j.ID))
		default:
			running++
		}
	}
	var parts []string
	name := func(ids []string, what string) {
		if len(ids) == 0 {
			return
		}
		named := ids[:min(2, len(ids))]
		part := strconv.Itoa(len(ids)) + " job(s) " + what + ": " + strings.Join(named, ", ")
		if len(named) < len(ids) {
			part += ", ..."
		}
		parts = append(parts, part)
	}
	name(finished, "finished")
	name(others, "failed")
	if running > 0 {
		parts = append(parts, strconv.Itoa(running)+" still running")
	}
	return strings.Join(parts, "; ")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func seconds(d time.Duration) int { return int(math.Ceil(max(0, d).Seconds())) }

// words writes a time for a sentence: whole seconds.
func words(d time.Duration) string { return strconv.Itoa(seconds(d)) + " s" }

func twoDigits(v float64) float64 {
	if v <= 0 || v > 1e9 {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	if unit >= 1 {
		return math.Round(v/unit) * unit
	}
	return math.Round(v/unit) / math.Round(1/unit)
}

// cut shortens a text at a character, and takes out what JSON or HTML would
// write as more than one.
func cut(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || strings.ContainsRune(`<>&"\`, r) || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}
