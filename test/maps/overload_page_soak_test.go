//go:build soak

package maps_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/test/bed"
)

// page is docs/overload.md.
func page(runs []overload) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Overload, before and after

<!-- Written by TestSoakOverload (make soak). -->

%d dear requests at once at a MapServer with %d workers over PostGIS, from clients that give up after %.0f s, and meanwhile a cheap request (a map of 256 pixels) every %d ms. MapServer does not notice that a client has left: without geoproxy it goes on for those who have gone, in order of arrival, before it comes to anybody who still waits. geoproxy has a gate of %d seats, and of those `+"`at_most: { map: 2 }`"+`; a quarter for downloads is the default. `+"`cancels: false`"+` tells it that MapServer does not stop: the call of a caller that has left keeps its seat until MapServer has answered.

![Seconds that cheap requests took, with and without geoproxy](overload.svg)

%s
"Busy for nobody" is how long workers of MapServer were at work for the crowd after the last of it had gone; the watch ends after %.0f s. A cheap request that was not answered within %.0f s counts as that long. One run each, %s, on %d processors shared by clients, geoproxy, MapServer and the database (load average at the end %s).
`, crowd, bed.Workers, patience.Seconds(), probeEvery.Milliseconds(), bed.Workers, table(runs),
		watch.Seconds(), patience.Seconds(), time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), loadAverage())
	return b.String()
}

// readme is a README with the plot and the table put between its two marks.
func readme(text string, runs []overload) (string, error) {
	const begin, end = "<!-- written by TestSoakOverload -->\n", "<!-- up to here -->\n"
	head, rest, found := strings.Cut(text, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", errors.New("README.md lacks the marks between which the table of overload goes")
	}
	return head + begin + "![Seconds that cheap requests took, with and without geoproxy](docs/overload.svg)\n\n" + table(runs) + end + tail, nil
}

func table(runs []overload) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, `| dear request | | dear ones served | refused, after | cheap alone p50 | cheap meanwhile: answered, p50, p95 | busy for nobody | cheap back under %d ms |
|---|---|---|---|---|---|---|---|
`, goal.Milliseconds())
	for i := range runs {
		fmt.Fprintln(&b, runs[i].row())
	}
	return b.String()
}

// row is a run's row of the table.
func (o *overload) row() string {
	refused := "none"
	if len(o.firstNo) > 0 {
		refused = fmt.Sprintf("%d, %s", o.refused, text(percentile(o.firstNo, 0.5)))
	}
	during := o.cheap(0, o.gone)
	dead, normal := text(o.dead), "after "+text(o.normal())
	if !o.ended {
		dead, normal = "over "+dead, "not within "+text(watch)
	}
	if o.normal() == 0 {
		normal = "at once"
	}
	var before []time.Duration
	for _, p := range o.before {
		before = append(before, p.took)
	}
	return fmt.Sprintf("| %s (%s alone) | %s | %d of %d | %s | %s | %d of %d, %s, %s | %s | %s |", o.load, text(o.alone), o.mode, o.served, crowd, refused,
		text(percentile(before, 0.5)), len(during)-o.failed(0, o.gone), len(during), text(percentile(during, 0.5)), text(percentile(during, 0.95)), dead, normal)
}

func text(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func loadAverage() string {
	file, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(file), " ")
	return first
}

// The plot: one panel for each load, time to the right, the time that each
// cheap request took upwards on a logarithmic scale.
const (
	panelWidth, panelHeight = 640, 190
	leftMargin, topMargin   = 70, 60
	panelGap                = 70
	plotSeconds             = 120
	slowest, fastest        = 10.0, 0.002 // seconds
)

// plot is docs/overload.svg. Its colours follow the reader's scheme, and the
// background is its own, so that it can be read on any page.
func plot(runs []overload) string {
	var b bytes.Buffer
	height := topMargin + len(loads)*(panelHeight+panelGap)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="How long cheap requests took while a crowd of dear ones was there and after">
<style>
svg { font: 13px system-ui, sans-serif }
.page { fill: #ffffff } .text { fill: #1f2328 } .soft { fill: #59636e } .line { stroke: #d1d9e0 } .crowd { fill: #eaeef2 }
.without { fill: #bc4c00; stroke: #bc4c00 } .with { fill: #0969da; stroke: #0969da }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } .text { fill: #f0f6fc } .soft { fill: #9198a1 } .line { stroke: #3d444d } .crowd { fill: #1c2129 }
.without { fill: #f0883e; stroke: #f0883e } .with { fill: #58a6ff; stroke: #58a6ff }
}
.none { fill: none }
</style>
<rect class="page" width="100%%" height="100%%" rx="6"/>
<circle class="without" cx="%d" cy="20" r="4"/><text class="text" x="%d" y="24">without geoproxy (hollow: not answered)</text>
<circle class="with" cx="%d" cy="20" r="4"/><text class="text" x="%d" y="24">with geoproxy</text>
`, leftMargin+panelWidth+30, height, leftMargin, leftMargin+10, leftMargin+290, leftMargin+300)
	for i, load := range loads {
		top := float64(topMargin + i*(panelHeight+panelGap))
		fmt.Fprintf(&b, "<text class=\"text\" x=\"%d\" y=\"%.0f\">%d x %s</text>\n", leftMargin, top-8, crowd, load.name)
		for k := range runs {
			if runs[k].load == load.name && (runs[k].mode == without || runs[k].mode == with) {
				runs[k].draw(&b, top)
			}
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func across(seconds float64) float64 { return leftMargin + panelWidth*seconds/plotSeconds }

func down(seconds float64) float64 {
	return panelHeight * (1 - math.Log(max(seconds, fastest)/fastest)/math.Log(slowest/fastest))
}

// draw draws a run's probes, and the panel where it is the first in it.
func (o *overload) draw(b *bytes.Buffer, top float64) {
	series := "with"
	if o.mode == without {
		series = "without"
		fmt.Fprintf(b, "<rect class=\"crowd\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", leftMargin, top, across(o.gone.Seconds())-leftMargin, panelHeight)
		fmt.Fprintf(b, "<text class=\"soft\" x=\"%d\" y=\"%.0f\">the crowd</text>\n", leftMargin+6, top+panelHeight-6)
		for _, d := range []time.Duration{10 * time.Second, time.Second, 100 * time.Millisecond, 10 * time.Millisecond} {
			seconds, label := d.Seconds(), text(d)
			fmt.Fprintf(b, "<line class=\"line\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
				leftMargin, leftMargin+panelWidth, top+down(seconds), top+down(seconds), leftMargin-8, top+down(seconds)+4, label)
		}
		for second := 0.0; second <= plotSeconds; second += 20 {
			fmt.Fprintf(b, "<text class=\"soft\" x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.0f s</text>\n", across(second), top+panelHeight+18, second)
		}
	}
	for _, p := range o.probes {
		if p.at.Seconds() > plotSeconds {
			break
		}
		took, class := p.took.Seconds(), series
		if !p.ok {
			took, class = slowest, "none "+series
		}
		fmt.Fprintf(b, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", class, across(p.at.Seconds()), top+down(took))
	}
}
