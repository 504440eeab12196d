package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Introduce prints what runs where, and the lines to paste into a shell.
func (s *Stage) Introduce(w io.Writer) error {
	steps, err := s.Steps()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A spatial service over Natural Earth, %d connections   %s\n", connections, s.ServiceURL)
	fmt.Fprintf(&b, "geoproxy in front of it                            %s\n", s.URL)
	fmt.Fprintf(&b, "A map through geoproxy, to open in a browser       %s/map\n", s.URL)
	for _, step := range steps {
		fmt.Fprintf(&b, "\n# %s\n%s\n", step.Shows, step.Curl)
	}
	b.WriteString("\nCtrl-C ends both.\n")
	_, err = io.WriteString(w, b.String())
	return err
}

// Once tries every step and prints each request with its answer. It gives the
// number of steps that did not behave as promised.
func (s *Stage) Once(ctx context.Context, w io.Writer, asJSON bool) (faults int, err error) {
	steps, err := s.Steps()
	if err != nil {
		return 0, err
	}
	results := make([]Result, 0, len(steps))
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		r := s.Try(ctx, step)
		cancel()
		if r.Fault != "" {
			faults++
		}
		results = append(results, r)
		if !asJSON {
			if _, err := io.WriteString(w, r.String()); err != nil {
				return faults, err
			}
		}
	}
	pool := s.Service.Pool()
	if pool.PeakBusy > pool.Size || pool.PeakWaiting > 0 {
		faults++
	}
	if asJSON {
		return faults, writeJSON(w, map[string]any{"steps": results, "pool": pool, "faults": faults})
	}
	_, err = fmt.Fprintf(w, "The service's pool: at most %d of %d connections busy, at most %d waiting. %d of %d steps as promised.\n",
		pool.PeakBusy, pool.Size, pool.PeakWaiting, len(steps)-min(faults, len(steps)), len(steps))
	return faults, err
}

// String prints the request, the answer, and what became of the others that
// were sent with it.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n%s\n", r.Step, r.Shows, r.Curl)
	total := 0
	for _, n := range r.Statuses {
		total += n
	}
	if total > 1 {
		fmt.Fprintf(&b, "\n  of %d requests:", total)
		for _, status := range slices.Sorted(maps.Keys(r.Statuses)) {
			fmt.Fprintf(&b, "  %d with %d", r.Statuses[status], status)
		}
		b.WriteString("; one of them:\n")
	}
	fmt.Fprintf(&b, "\n> %s\n< %d   after %.3f s\n", r.Request, r.Status, r.Seconds)
	for _, name := range shownHeaders {
		if v := r.Header[name]; v != "" {
			fmt.Fprintf(&b, "< %s: %s\n", name, v)
		}
	}
	if r.Body != "" {
		fmt.Fprintf(&b, "\n%s\n", r.Body)
	}
	if r.Fault != "" {
		fmt.Fprintf(&b, "\nNOT AS PROMISED: %s\n", r.Fault)
	}
	b.WriteString("\n")
	return b.String()
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// WriteJSON prints the report for programs.
func (r StormReport) WriteJSON(w io.Writer) error {
	return writeJSON(w, map[string]any{"without": r.Without, "with": r.With, "conclusion": r.Conclusion()})
}
