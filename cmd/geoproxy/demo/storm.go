package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The storm: an agent that works on a dozen questions at once, each of which
// fans out into calls of a spatial service, beside a map that is redrawn for
// each. A caller that is told when to come back does so, while its patience
// lasts. The calls are the same every time, and bounded in count and time.
const (
	questions   = 12
	questionGap = 400 * time.Millisecond // from one question to the next
	patience    = 8 * time.Second        // how long a caller waits before it gives up
	recovery    = 30 * time.Second       // how long the service is watched afterwards
)

// kinds are the rows of the table.
var kinds = []string{"tile", "items", "filter", "buffer", "union", "overlay"}

// Side is what the storm did on one side.
type Side struct {
	Kinds map[string]*Tally `json:"kinds"`
	Pool  PoolStats         `json:"pool"`
	// Retries counts how often a caller came back as it was told to.
	Retries int `json:"retries"`
	// Normal is the seconds from the last call's start until the service
	// answered as fast as before; negative where it did not within 30 s.
	Normal float64 `json:"back_to_normal"`
	// Wasted counts the queries that ran, or had yet to run, for callers that
	// had given up. The storm's own probes are not among them.
	Wasted int `json:"wasted"`
}

// Tally is what became of the calls of one kind. Times are seconds from the
// first try until the answer, or until the caller gave up; refusals are not
// among them.
type Tally struct {
	Sent     int     `json:"sent"`
	Answered int     `json:"answered"`
	Refused  int     `json:"refused"`
	Failed   int     `json:"failed"`
	P50      float64 `json:"p50"`
	P95      float64 `json:"p95"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`

	times []float64
}

// StormReport compares the same storm without geoproxy and with it.
type StormReport struct {
	Without Side `json:"without"`
	With    Side `json:"with"`
}

// Storm sends the storm at a fresh service alone, then at one behind geoproxy.
// It takes about half a minute. note is told what is going on.
func Storm(ctx context.Context, options Options, note func(string)) (StormReport, error) {
	calls, err := stormCalls()
	if err != nil {
		return StormReport{}, err
	}
	total := 0
	for _, c := range calls {
		total += len(c)
	}
	var report StormReport
	for _, side := range []struct {
		name string
		into *Side
		url  func(*Stage) string
	}{
		{"without geoproxy", &report.Without, func(s *Stage) string { return s.ServiceURL }},
		{"with geoproxy", &report.With, func(s *Stage) string { return s.URL }},
	} {
		note(fmt.Sprintf("%s: %d calls of %d questions within %.0f s ...", side.name, total, questions, (questions * questionGap).Seconds()))
		stage, err := Start(ctx, options)
		if err != nil {
			return report, err
		}
		*side.into, err = stage.weather(ctx, side.url(stage), calls)
		stage.Close()
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// weather sends the calls, question by question, and watches the service until
// it is as fast as before.
func (s *Stage) weather(ctx context.Context, url string, calls [][]call) (Side, error) {
	client := newClient()
	defer client.CloseIdleConnections()
	usual, err := s.probe(ctx, client)
	if err != nil {
		return Side{}, err
	}

	var wg sync.WaitGroup
	replies := make([][]reply, len(calls))
	ticker := time.NewTicker(questionGap)
	defer ticker.Stop()
	for q, question := range calls {
		if q > 0 {
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		replies[q] = make([]reply, len(question))
		for i, c := range question {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				replies[q][i] = c.sendPatiently(ctx, client, url)
			})
		}
	}
	lastSent := time.Now()
	normal, probes := s.watch(ctx, client, usual, lastSent)
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Side{}, err
	}

	side := tally(calls, replies)
	side.Pool, side.Normal = s.Service.Pool(), normal
	side.Wasted = max(0, side.Pool.Served+side.Pool.Busy+side.Pool.Waiting-side.total().Answered-probes-1)
	return side, nil
}

// sendPatiently says how long it waits, and comes back when it is told to while
// that leaves a second for the answer. The time is that since the first try.
func (c call) sendPatiently(ctx context.Context, client *http.Client, url string) reply {
	began := time.Now()
	deadline, _ := ctx.Deadline()
	for tries := 1; ; tries++ {
		c.wait = int(time.Until(deadline).Seconds())
		r := c.send(ctx, client, url)
		r.took, r.tries = time.Since(began), tries
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if r.err != nil || err != nil || time.Until(deadline) < time.Duration(wait+1)*time.Second {
			return r
		}
		if pause(ctx, time.Duration(wait)*time.Second) != nil {
			return r
		}
	}
}

// probe is what somebody with a small question to the service itself sees: how
// long one feature takes.
func (s *Stage) probe(ctx context.Context, client *http.Client) (time.Duration, error) {
	r := get("probe", "/collections/countries/items/352").send(ctx, client, s.ServiceURL)
	if r.err == nil && r.status != http.StatusOK {
		r.err = fmt.Errorf("the service answers %d", r.status)
	}
	return r.took, r.err
}

// watch probes until the service is as fast as before, give or take a tenth of
// a second, and gives the seconds since and the number of probes.
func (s *Stage) watch(ctx context.Context, client *http.Client, usual time.Duration, since time.Time) (normal float64, probes int) {
	ctx, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		probes++
		took, err := s.probe(ctx, client)
		switch {
		case ctx.Err() != nil:
			return -1, probes
		case err == nil && took < 2*usual+100*time.Millisecond:
			return time.Since(since).Seconds(), probes
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return -1, probes
		}
	}
}

func tally(calls [][]call, replies [][]reply) Side {
	side := Side{Kinds: make(map[string]*Tally)}
	for _, kind := range kinds {
		side.Kinds[kind] = &Tally{}
	}
	for q := range calls {
		for i, c := range calls[q] {
			t, r := side.Kinds[c.kind], replies[q][i]
			t.Sent++
			side.Retries += r.tries - 1
			switch {
			case r.err == nil && r.status < 400:
				t.Answered++
			case r.err == nil && r.header.Get("Geoproxy-Reason") != "":
				t.Refused++
				continue
			default:
				t.Failed++
			}
			t.times = append(t.times, r.took.Seconds())
		}
	}
	for _, t := range side.Kinds {
		t.summarise()
	}
	return side
}

// quantile is the smallest of the sorted values that is at least as large as
// that share of them; 0 where there is none.
func quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// stormCalls lists the calls of each question: about a country, its neighbours
// and its continent, and the map around it.
func stormCalls() ([][]call, error) {
	c, err := lookup("countries")
	if err != nil {
		return nil, err
	}
	about := []string{"276", "250", "724", "380", "616", "642", "792", "764", "404", "710", "604", "152"}
	if len(about) != questions {
		return nil, errors.New("each question needs a country")
	}
	all := make([][]call, questions)
	for q, id := range about {
		i, ok := c.byID[id]
		if !ok {
			return nil, fmt.Errorf("no country %s", id)
		}
		all[q] = questionAbout(&c.features[i])
	}
	return all, nil
}

func questionAbout(f *feature) []call {
	b := f.bounds
	midX, midY := (b.MinX+b.MaxX)/2, (b.MinY+b.MaxY)/2
	var calls []call
	for _, name := range []string{"cities", "rivers", "lakes"} {
		for _, d := range []float64{0, 1} {
			calls = append(calls, get("items", fmt.Sprintf("/collections/%s/items?limit=20&bbox=%g,%g,%g,%g",
				name, b.MinX-d, b.MinY-d, b.MaxX+d, b.MaxY+d)))
		}
	}
	for i := range 4 {
		d := 0.5 + float64(i)/2
		calls = append(calls, get("filter", fmt.Sprintf(
			"/collections/cities/items?filter=S_INTERSECTS(geometry,POLYGON((%g%%20%g,%g%%20%g,%g%%20%g,%g%%20%g)))",
			midX-d, midY-d, midX+d, midY-d, midX, midY+d, midX-d, midY-d)))
	}
	for i := range 4 {
		calls = append(calls, post("buffer", fmt.Sprintf("/processes/buffer/execution?distance=%g", 0.2+0.2*float64(i)), string(f.geojson)))
	}
	continent := fmt.Sprintf(`{"collection":"countries","where":"continent=%v"}`, f.properties["continent"])
	for range 2 {
		calls = append(calls, post("union", "/processes/union/execution", `{"inputs":{"features":`+continent+`}}`))
	}
	for i := range 2 {
		d := 2 + 2*float64(i)
		area := fmt.Sprintf(`{"type":"Polygon","coordinates":[[[%g,%g],[%g,%g],[%g,%g],[%g,%g]]]}`,
			midX-d, midY-d, midX+d, midY-d, midX, midY+d, midX-d, midY-d)
		calls = append(calls, post("overlay", "/processes/overlay/execution", `{"inputs":{"features":`+continent+`,"area":`+area+`}}`))
	}
	t := grid{z: 5, size: 1}
	x, y := t.project(midX, midY)
	return append(calls, tiles(t.z, int(x)-2, int(y)-2, 5, 4)...)
}
