package proxy

import (
	"strconv"
	"time"
)

// Mode says whether a request is answered now, with a job, or not at all.
type Mode string

// The modes.
const (
	ModeInline Mode = "inline"
	ModeQueued Mode = "queued"
	ModeRefuse Mode = "refuse" // too big to wait for, and the class refuses that
)

// modeInput is all that the choice of a mode depends on.
type modeInput struct {
	seconds   float64
	low       bool // an estimate that must not be the ground for refusing
	remaining time.Duration
	class     *classPolicy

	interactive bool
	asked       bool // Prefer: respond-async without wait
	possible    bool // a job is possible
	onRequest   bool // it would be if the caller asked; the mode does not depend on it
}

// choice is a mode with its reason in words. The words are built only when
// somebody reads them: see [choice.String].
type choice struct {
	mode  Mode
	batch bool // waits and runs behind the interactive requests
	why   why
}

// why is the row of the table below that decided.
type why uint8

const (
	whyAsked why = iota
	whyCeiling
	whyCheap
	whyBatch
	whyRemaining
	whyNoJob
	whyBudget
)

// chooseMode decides by the first row that applies, in the order of the wire
// contract's table. It is a pure function of its input.
func chooseMode(in modeInput) choice {
	remaining := in.remaining.Seconds()
	switch {
	case in.asked && in.possible:
		return choice{mode: ModeQueued, why: whyAsked}
	case in.seconds >= in.class.alwaysQueue && in.possible:
		return choice{mode: ModeQueued, why: whyCeiling}
	case in.seconds >= in.class.alwaysQueue:
		return tooBig(in, whyCeiling)
	case in.seconds <= in.class.inline && in.seconds < remaining:
		return choice{mode: ModeInline, why: whyCheap}
	case !in.interactive:
		return choice{mode: ModeInline, batch: true, why: whyBatch}
	case in.seconds >= remaining && !in.possible:
		return tooBig(in, whyRemaining)
	case !in.possible:
		return choice{mode: ModeInline, why: whyNoJob}
	case in.seconds >= remaining:
		return choice{mode: ModeQueued, why: whyRemaining}
	default:
		return choice{mode: ModeQueued, why: whyBudget}
	}
}

// tooBig is what the class does with a request that is too big to wait for
// where no job is possible. A low-confidence estimate never refuses: what is
// assumed of a request must not be held against it.
func tooBig(in modeInput, w why) choice {
	switch {
	case in.class.tooBig == TooBigWait:
		return choice{mode: ModeInline, batch: true, why: w}
	case in.low:
		return choice{mode: ModeInline, why: w}
	default:
		return choice{mode: ModeRefuse, why: w}
	}
}

// words gives the reason for a choice, for explain, logs and documents.
func (c choice) words(in modeInput) string {
	switch c.why {
	case whyAsked:
		return "asked for"
	case whyCeiling:
		s := "estimated " + seconds(in.seconds) + " exceeds the inline ceiling"
		return s + c.despite(in)
	case whyCheap:
		return "estimated " + seconds(in.seconds) + " is within the inline budget"
	case whyBatch:
		return "batch context: waiting is acceptable"
	case whyRemaining:
		s := "estimated " + seconds(in.seconds) + " exceeds the " + seconds(in.remaining.Seconds()) + " remaining in this turn"
		return s + c.despite(in)
	case whyNoJob:
		return "no job possible here"
	case whyBudget:
		return "estimated cost is above the interactive budget"
	default:
		return ""
	}
}

// despite says why a request that is too big runs inline all the same.
func (c choice) despite(in modeInput) string {
	switch {
	case c.mode != ModeInline:
		return ""
	case in.class.tooBig == TooBigWait:
		return "; no job possible here, and its class waits"
	default:
		return "; no job possible here, and the estimate is too unsure to refuse on"
	}
}

// seconds writes a time for a sentence: tenths from a second on, two
// significant digits below.
func seconds(s float64) string {
	if s >= 1 || s <= 0 {
		return strconv.FormatFloat(s, 'f', 1, 64) + "s"
	}
	return strconv.FormatFloat(s, 'g', 2, 64) + "s"
}
