package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Step is one behaviour of geoproxy, and the request that shows it.
type Step struct {
	Name  string // one word
	Shows string // a sentence
	// Curl are the lines to paste into a shell.
	Curl string

	calls []call // made at once; the one shown is the first that keeps the promise
	// then are calls made one after the other, each of the path of the job that
	// the first call was answered with; the last is the one shown.
	then  []call
	check func(reply) error
}

// Steps are the behaviours that the stage can show, in the order in which to
// show them. Each is tried by Try.
func (s *Stage) Steps() ([]Step, error) {
	germany, err := itemJSON("countries", "276")
	if err != nil {
		return nil, err
	}
	const (
		page   = "/collections/countries/items?limit=5"
		buffer = "/processes/buffer/execution?distance=0.5"
		filter = "/collections/cities/items?filter=S_INTERSECTS(geometry,POLYGON((0%2040,20%2040,20%2055,0%2055,0%2040)))"
		whole  = "/collections/countries/items?limit=1000"
	)
	return []Step{{
		Name:  "inline",
		Shows: "A page of features is passed on, with what it was estimated to cost and where its time went.",
		Curl:  "curl -si '" + s.URL + page + "'",
		calls: []call{get("items", page)},
		check: all(status(200), has("Geoproxy-Estimate"), has("Server-Timing")),
	}, {
		Name:  "estimate",
		Shows: "A buffer of Germany: geoproxy counts the vertices in the body and prices it before it runs.",
		Curl: "curl -s " + s.URL + "/collections/countries/items/276 |\n" +
			"  curl -s -D - -o /dev/null -H 'Content-Type: application/geo+json' --data-binary @- \\\n    '" + s.URL + buffer + "'",
		calls: []call{post("buffer", buffer, germany)},
		check: all(status(200), contains("Geoproxy-Estimate", ";op=buffer;features=1;vertices="), estimateNearTime),
	}, {
		Name:  "shed tile",
		Shows: "A map that asks for 256 tiles at once gets those that there is room for; the rest are told so at once, as a tile client understands it.",
		Curl: "curl -sZ --no-progress-meter --parallel-immediate --parallel-max 256 -o /dev/null -w '%{http_code}\\n' \\\n  '" +
			s.URL + "/tiles/world/4/[0-15]/[0-15].png' | sort | uniq -c",
		calls: tiles(4, 0, 0, 16, 16),
		check: all(status(503, 429), reason("concurrency"), has("Retry-After"), contains("Content-Type", "text/plain")),
	}, {
		Name:  "rate",
		Shows: "Spatial filters have a rate: ten at once, then ten a second. Those that would have to wait too long are told when to come back.",
		Curl: "for i in $(seq 40); do curl -s -o /dev/null -D - '" + s.URL + filter + "' |\n" +
			"  grep -iE '^(http|retry|ratelimit:)' | tr -d '\\r' | paste -sd' ' & done; wait",
		calls: repeat(40, get("filter", filter)),
		check: all(status(429), reason("rate"), has("Retry-After"), contains("RateLimit", `"filters"`), contains("RateLimit-Policy", `"filters"`)),
	}, {
		Name:  "refusal",
		Shows: "All countries in one page are too dear to be waited for. The refusal says so before anything ran, and what to do.",
		Curl:  "curl -si '" + s.URL + whole + "'",
		calls: []call{get("items", whole)},
		check: all(status(422), reason("over-budget"), contains("Content-Type", "application/problem+json"), bodyHas(`"action":"submit_job"`), hasNot("Retry-After")),
	}, {
		Name:  "job",
		Shows: "The same request as a job: a handle, and when to ask for it.",
		Curl:  "curl -si -H 'Prefer: respond-async' '" + s.URL + whole + "'",
		calls: []call{asJob(get("items", whole))},
		check: all(status(202), reason("asked"), has("Location"), has("Retry-After"), bodyHas(`"action":"wait_job"`)),
	}, {
		Name:  "status",
		Shows: "Its status, held until it changes: what the request would have given is waiting.",
		Curl:  jobCurl(s.URL, whole) + "curl -s \"" + s.URL + "$job?wait=30\"; echo; curl -s \"" + s.URL + "$job?wait=30\"",
		calls: []call{asJob(get("items", whole))},
		then:  []call{get("status", "?wait=20"), get("status", "?wait=20"), get("status", "?wait=20")},
		check: all(status(200), bodyHas(`"status":"successful"`), bodyHas(`"action":"fetch_result"`)),
	}, {
		Name:  "result",
		Shows: "And the result, byte for byte what the service answered.",
		Curl:  jobCurl(s.URL, whole) + "curl -s -o /dev/null \"" + s.URL + "$job?wait=30\" \"" + s.URL + "$job?wait=30\"; curl -s \"" + s.URL + "$job/results\" | head -c 200",
		calls: []call{asJob(get("items", whole))},
		then:  []call{get("status", "?wait=20"), get("status", "?wait=20"), get("status", "?wait=20"), get("result", "/results")},
		check: all(status(200), contains("Content-Type", "json"), bodyHas(`"FeatureCollection"`)),
	}, {
		Name:  "cancel",
		Shows: "A job that nobody needs any more is cancelled: the service stops, and nothing is left that could be taken for a result.",
		Curl:  jobCurl(s.URL, whole) + "curl -s -X DELETE \"" + s.URL + "$job\"",
		calls: []call{asJob(get("items", whole))},
		then:  []call{{kind: "cancel", method: http.MethodDelete}},
		check: all(status(200), bodyHas(`"status":"dismissed"`)),
	}}, nil
}

// Result is what trying a step gave.
type Result struct {
	Step     string            `json:"step"`
	Shows    string            `json:"shows"`
	Curl     string            `json:"curl"`
	Request  string            `json:"request"`
	Status   int               `json:"status"`
	Header   map[string]string `json:"header"`
	Body     string            `json:"body"`
	Seconds  float64           `json:"seconds"`
	Statuses map[int]int       `json:"statuses"` // of all its requests
	Fault    string            `json:"fault,omitempty"`
}

// Try makes a step's requests through geoproxy. Fault is empty where one of
// their answers was as promised.
func (s *Stage) Try(ctx context.Context, step Step) Result {
	client := newClient()
	defer client.CloseIdleConnections()
	replies := make([]reply, len(step.calls))
	var wg sync.WaitGroup
	for i, c := range step.calls {
		wg.Go(func() { replies[i] = c.send(ctx, client, s.URL) })
	}
	wg.Wait()

	for _, next := range step.then {
		path := replies[0].header.Get("Location") // of an answer without one it is empty, and the check fails
		next.path = path + next.path
		r := next.send(ctx, client, s.URL)
		r.header.Set("Location", path)
		step.calls, replies[0] = []call{next}, r
	}

	shown, fault := 0, errors.New("nothing was asked")
	statuses := make(map[int]int)
	for i, r := range replies {
		statuses[r.status]++
		if fault != nil {
			err := r.err
			if err == nil {
				err = step.check(r)
			}
			if err == nil {
				shown = i
			}
			fault = err
		}
	}
	c, r := step.calls[shown], replies[shown]
	result := Result{
		Step: step.Name, Shows: step.Shows, Curl: step.Curl, Request: c.method + " " + c.path,
		Status: r.status, Header: ours(r.header), Body: excerpt(r), Seconds: r.took.Seconds(), Statuses: statuses,
	}
	if fault != nil {
		result.Fault = fault.Error()
	}
	return result
}

// shownHeaders are the header fields that a step shows.
var shownHeaders = []string{
	"Content-Type", "Location", "Geoproxy-Estimate", "Geoproxy-Reason", "Retry-After", "RateLimit-Policy", "RateLimit", "Server-Timing", "Cache-Control",
}

func ours(h http.Header) map[string]string {
	found := make(map[string]string)
	for _, name := range shownHeaders {
		if v := h.Get(name); v != "" {
			found[name] = v
		}
	}
	return found
}

// excerpt is the beginning of an answer's text; a refusal's is shown whole.
func excerpt(r reply) string {
	const most = 160
	body := string(r.body)
	switch {
	case !strings.Contains(r.header.Get("Content-Type"), "json") && !strings.Contains(r.header.Get("Content-Type"), "text"):
		return fmt.Sprintf("(%d bytes)", len(body))
	case r.status < 400 && len(body) > most:
		return fmt.Sprintf("%s... (%d bytes)", body[:most], len(body))
	}
	return strings.TrimSpace(body)
}

func all(checks ...func(reply) error) func(reply) error {
	return func(r reply) error {
		for _, check := range checks {
			if err := check(r); err != nil {
				return err
			}
		}
		return nil
	}
}

func status(want ...int) func(reply) error {
	return func(r reply) error {
		if !slices.Contains(want, r.status) {
			return fmt.Errorf("the status is %d and not %v", r.status, want)
		}
		return nil
	}
}

func has(name string) func(reply) error { return contains(name, "") }

func hasNot(name string) func(reply) error {
	return func(r reply) error {
		if v := r.header.Get(name); v != "" {
			return fmt.Errorf("%s: %s should not be there", name, v)
		}
		return nil
	}
}

func contains(name, part string) func(reply) error {
	return func(r reply) error {
		if v := r.header.Get(name); v == "" || !strings.Contains(v, part) {
			return fmt.Errorf("%s is %q and does not hold %q", name, v, part)
		}
		return nil
	}
}

func reason(want string) func(reply) error { return contains("Geoproxy-Reason", want) }

func bodyHas(part string) func(reply) error {
	return func(r reply) error {
		if !strings.Contains(string(r.body), part) {
			return fmt.Errorf("the body does not hold %s", part)
		}
		return nil
	}
}

// estimateNearTime holds the time that a call took to a third of its estimate at
// least, and ten times at most: the machine may be busy with other things.
func estimateNearTime(r reply) error {
	text, _, _ := strings.Cut(r.header.Get("Geoproxy-Estimate"), ";")
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	if took := r.took.Seconds(); took < seconds/3 || took > 10*seconds {
		return fmt.Errorf("estimated %.3f s, and took %.3f s", seconds, took)
	}
	return nil
}

func itemJSON(name, id string) (string, error) {
	c, err := lookup(name)
	if err != nil {
		return "", err
	}
	i, ok := c.byID[id]
	if !ok {
		return "", fmt.Errorf("no %s in %s", id, name)
	}
	return string(c.features[i].geojson), nil
}

// tiles are the raster tiles of a rectangle, row by row.
func tiles(z, x, y, width, height int) []call {
	var calls []call
	for dy := range height {
		for dx := range width {
			calls = append(calls, get("tile", fmt.Sprintf("/tiles/world/%d/%d/%d.png", z, x+dx, y+dy)))
		}
	}
	return calls
}

func asJob(c call) call {
	c.job = true
	return c
}

// jobCurl submits a job in a shell and keeps its path in $job.
func jobCurl(server, path string) string {
	return "job=$(curl -si -H 'Prefer: respond-async' '" + server + path + "' | tr -d '\\r' | sed -n 's/^Location: //p')\n  "
}

func repeat(n int, c call) []call {
	calls := make([]call, n)
	for i := range calls {
		calls[i] = c
	}
	return calls
}

// stepTimeout bounds one step.
const stepTimeout = 20 * time.Second
