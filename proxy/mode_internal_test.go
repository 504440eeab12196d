package proxy

import (
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// TestModeTable walks the wire contract's table row by row.
func TestModeTable(t *testing.T) {
	t.Parallel()
	waits := classPolicy{inline: 2, alwaysQueue: 30, tooBig: TooBigWait}
	refuses := classPolicy{inline: 2, alwaysQueue: 30, tooBig: TooBigRefuse}
	const turn = 10 * time.Second
	for name, c := range map[string]struct {
		in    modeInput
		mode  Mode
		batch bool
		words string
	}{
		"asked and possible": {
			in:   modeInput{seconds: .1, remaining: turn, class: &refuses, interactive: true, asked: true, possible: true},
			mode: ModeQueued, words: "asked for",
		},
		"above the ceiling and possible": {
			in:   modeInput{seconds: 94, remaining: turn, class: &refuses, interactive: true, possible: true},
			mode: ModeQueued, words: "estimated 94.0s exceeds the inline ceiling",
		},
		"above the ceiling, not possible, class waits": {
			in:   modeInput{seconds: 94, remaining: turn, class: &waits, interactive: true},
			mode: ModeInline, batch: true, words: "estimated 94.0s exceeds the inline ceiling; no job possible here, and its class waits",
		},
		"above the ceiling, not possible, class refuses": {
			in:   modeInput{seconds: 94, remaining: turn, class: &refuses, interactive: true},
			mode: ModeRefuse, words: "estimated 94.0s exceeds the inline ceiling",
		},
		"a low-confidence estimate never refuses": {
			in:   modeInput{seconds: 94, low: true, remaining: turn, class: &refuses, interactive: true},
			mode: ModeInline, words: "estimated 94.0s exceeds the inline ceiling; no job possible here, and the estimate is too unsure to refuse on",
		},
		"exactly at the ceiling is above it": {
			in:   modeInput{seconds: 30, remaining: time.Minute, class: &refuses, interactive: true},
			mode: ModeRefuse, words: "estimated 30.0s exceeds the inline ceiling",
		},
		"cheap": {
			in:   modeInput{seconds: 2, remaining: turn, class: &refuses, interactive: true},
			mode: ModeInline, words: "estimated 2.0s is within the inline budget",
		},
		"cheap, but less is left": {
			in:   modeInput{seconds: 1, remaining: time.Second, class: &refuses, interactive: true},
			mode: ModeRefuse, words: "estimated 1.0s exceeds the 1.0s remaining in this turn",
		},
		"not interactive": {
			in:   modeInput{seconds: 9, remaining: 5 * time.Second, class: &refuses},
			mode: ModeInline, batch: true, words: "batch context: waiting is acceptable",
		},
		"more than is left, not possible, class waits": {
			in:   modeInput{seconds: 9, remaining: 5 * time.Second, class: &waits, interactive: true},
			mode: ModeInline, batch: true, words: "estimated 9.0s exceeds the 5.0s remaining in this turn; no job possible here, and its class waits",
		},
		"more than is left, not possible, unsure": {
			in:   modeInput{seconds: 9, low: true, remaining: 5 * time.Second, class: &refuses, interactive: true},
			mode: ModeInline, words: "estimated 9.0s exceeds the 5.0s remaining in this turn; no job possible here, and the estimate is too unsure to refuse on",
		},
		"between the budgets, not possible": {
			in:   modeInput{seconds: 5, remaining: turn, class: &refuses, interactive: true},
			mode: ModeInline, words: "no job possible here",
		},
		"more than is left, possible": {
			in:   modeInput{seconds: 9, remaining: 5 * time.Second, class: &refuses, interactive: true, possible: true},
			mode: ModeQueued, words: "estimated 9.0s exceeds the 5.0s remaining in this turn",
		},
		"between the budgets, possible": {
			in:   modeInput{seconds: 5, remaining: turn, class: &refuses, interactive: true, possible: true},
			mode: ModeQueued, words: "estimated cost is above the interactive budget",
		},
	} {
		got := chooseMode(c.in)
		if got.mode != c.mode || got.batch != c.batch {
			t.Errorf("%s: mode %s, batch %t; want %s, %t", name, got.mode, got.batch, c.mode, c.batch)
		}
		if words := got.words(c.in); words != c.words {
			t.Errorf("%s: %q; want %q", name, words, c.words)
		}
	}
}

// TestShortDeadlinesNeedNothingElse: a deadline below the defaults that depend
// on it brings them down with it.
func TestShortDeadlinesNeedNothingElse(t *testing.T) {
	t.Parallel()
	p := compileClass(classify.Read, ClassConfig{Deadline: time.Second}, false)
	if p.inline != 1 || p.alwaysQueue != 1 {
		t.Errorf("inline %v, always_queue %v; want 1 s both", p.inline, p.alwaysQueue)
	}
}
