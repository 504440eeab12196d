package demo

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTheStormIsTheSameEveryTimeAndBounded(t *testing.T) {
	a, err := stormCalls()
	if err != nil {
		t.Fatal(err)
	}
	b, err := stormCalls()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for q := range a {
		total += len(a[q])
		if !slices.Equal(a[q], b[q]) {
			t.Errorf("question %d differs", q)
		}
		for _, c := range a[q] {
			if !slices.Contains(kinds, c.kind) {
				t.Errorf("%q is no row of the table", c.kind)
			}
		}
	}
	if total < 300 || total > 600 {
		t.Errorf("%d calls", total)
	}
}

// One question is too little to make anybody wait long, and enough to see that
// every call is accounted for and that none waits behind geoproxy.
func TestEveryCallOfTheStormIsAccountedFor(t *testing.T) {
	calls, err := stormCalls()
	if err != nil {
		t.Fatal(err)
	}
	calls = calls[:1]
	for _, through := range []string{"the service", "geoproxy"} {
		s, err := Start(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		url := s.ServiceURL
		if through == "geoproxy" {
			url = s.URL
		}
		side, err := s.weather(t.Context(), url, calls)
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
		all := side.total()
		if all.Sent != len(calls[0]) || all.Answered+all.Refused+all.Failed != all.Sent || all.Answered == 0 {
			t.Errorf("%s: %+v", through, all)
		}
		// On a slow machine a caller may have left: each query that ran for
		// nobody is a try that was not answered.
		unanswered := all.Refused + all.Failed + side.Retries
		if side.Pool.PeakBusy > side.Pool.Size || side.Normal < 0 || side.Wasted > unanswered {
			t.Errorf("%s: %+v", through, side)
		}
		// A probe of the storm's own goes past geoproxy: it may wait, alone.
		if through == "geoproxy" && side.Pool.PeakWaiting > 1 {
			t.Errorf("%d waited behind geoproxy", side.Pool.PeakWaiting)
		}
	}
}

func TestQuantiles(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, test := range []struct {
		sorted []float64
		share  float64
		want   float64
	}{{hundred, 0.5, 50}, {hundred, 0.95, 95}, {hundred, 1, 100}, {[]float64{7}, 0.5, 7}, {nil, 0.5, 0}} {
		if got := quantile(test.sorted, test.share); got != test.want {
			t.Errorf("quantile %v of %d: %v, want %v", test.share, len(test.sorted), got, test.want)
		}
	}
}

func TestTheTableIsAlignedAndFitsATerminal(t *testing.T) {
	side := func(times ...float64) Side {
		s := Side{Kinds: make(map[string]*Tally), Pool: PoolStats{Size: 8, PeakBusy: 8}, Normal: 1.5}
		for _, kind := range kinds {
			s.Kinds[kind] = &Tally{Sent: 240, Answered: len(times), times: times}
			s.Kinds[kind].summarise()
		}
		return s
	}
	r := StormReport{Without: side(0.1, 2, 10), With: side()}
	r.Without.Normal = -1
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(out.String(), "\n\n")
	lines := strings.Split(table, "\n")
	bars := func(line string) (at []int) {
		for i, c := range line {
			if c == '|' || c == '+' {
				at = append(at, i)
			}
		}
		return at
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) > 100 || !slices.Equal(bars(line), bars(lines[0])) {
			t.Errorf("%q does not stand under %q", line, lines[0])
		}
	}
	if !strings.Contains(out.String(), "more than 30 s") {
		t.Errorf("a service that did not recover is not said to:\n%s", out.String())
	}
}
