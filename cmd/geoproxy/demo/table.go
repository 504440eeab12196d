package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Write prints the two tables side by side, 98 columns wide, and what they say.
func (r StormReport) Write(w io.Writer) error {
	const side = 39
	const columns = "   ok shed fail   p50   p95   p99   max"
	var b strings.Builder
	line := func(name, sent, left, right string) {
		fmt.Fprintf(&b, "%-9s%5s | %-*s | %s\n", name, sent, side, left, right)
	}
	rule := strings.Repeat("-", 15) + "+" + strings.Repeat("-", side+2) + "+" + strings.Repeat("-", side+1) + "\n"

	line("", "", "without geoproxy", "with geoproxy")
	line("", "sent", columns, columns)
	b.WriteString(rule)
	for _, kind := range kinds {
		left, right := r.Without.Kinds[kind], r.With.Kinds[kind]
		line(kind, fmt.Sprint(left.Sent), left.row(), right.row())
	}
	b.WriteString(rule)
	left, right := r.Without.total(), r.With.total()
	line("all", fmt.Sprint(left.Sent), left.row(), right.row())

	b.WriteString("\n")
	fact := func(name string, of func(*Side) string) {
		fmt.Fprintf(&b, "%-40s%17s%17s\n", name, of(&r.Without), of(&r.With))
	}
	fmt.Fprintf(&b, "%40s%17s%17s\n", "", "without geoproxy", "with geoproxy")
	fact("most connections busy at once", func(s *Side) string { return fmt.Sprintf("%d of %d", s.Pool.PeakBusy, s.Pool.Size) })
	fact("most waiting for one in the service", func(s *Side) string { return fmt.Sprint(s.Pool.PeakWaiting) })
	fact("queries run for callers that had left", func(s *Side) string { return fmt.Sprint(s.Wasted) })
	fact("service as fast as before after", (*Side).normal)
	fact("came back when told to", func(s *Side) string { return fmt.Sprint(s.Retries) })
	fmt.Fprintf(&b, "\nTimes are seconds from the first try until the answer, or until the caller gave up (after %.0f).\nShed are those that were still refused then; they are not among the times.\n\n%s\n",
		patience.Seconds(), r.Conclusion())
	_, err := io.WriteString(w, b.String())
	return err
}

// Conclusion says in one sentence what the numbers say.
func (r StormReport) Conclusion() string {
	left, right := r.Without.total(), r.With.total()
	return fmt.Sprintf("With geoproxy %d of %d calls were answered (without: %d), %d were refused to the end (%d) and %d failed (%d); "+
		"95 %% of the map's tiles came within %s (%s); and the service was as fast as before %s after the last call (%s).",
		right.Answered, right.Sent, left.Answered, right.Refused, left.Refused, right.Failed, left.Failed,
		seconds(r.With.Kinds["tile"].P95), seconds(r.Without.Kinds["tile"].P95), r.With.normal(), r.Without.normal())
}

func (s *Side) total() *Tally {
	var all Tally
	for _, t := range s.Kinds {
		all.Sent += t.Sent
		all.Answered += t.Answered
		all.Refused += t.Refused
		all.Failed += t.Failed
		all.times = append(all.times, t.times...)
	}
	all.summarise()
	return &all
}

// summarise computes the quantiles of the times.
func (t *Tally) summarise() {
	slices.Sort(t.times)
	t.P50, t.P95, t.P99, t.Max = quantile(t.times, 0.5), quantile(t.times, 0.95), quantile(t.times, 0.99), quantile(t.times, 1)
}

func (t *Tally) row() string {
	counts := fmt.Sprintf("%5d%5d%5d", t.Answered, t.Refused, t.Failed)
	if len(t.times) == 0 {
		return counts + strings.Repeat("     -", 4)
	}
	return counts + fmt.Sprintf("%6.2f%6.2f%6.2f%6.2f", t.P50, t.P95, t.P99, t.Max)
}

func (s *Side) normal() string {
	if s.Normal < 0 {
		return fmt.Sprintf("more than %.0f s", recovery.Seconds())
	}
	return seconds(s.Normal)
}

func seconds(s float64) string {
	if s == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f s", s)
}
