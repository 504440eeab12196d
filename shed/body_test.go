package shed_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

var update = flag.Bool("update", false, "write the golden files anew")

var natives = map[string]classify.Native{
	"problem": classify.NativeProblem, "raster": classify.NativeRasterTile, "vector": classify.NativeVectorTile,
}

// refusals has a typical refusal for every reason, and the variants whose
// status or class changes what they say.
func refusals() map[string]shed.Refusal {
	items := shed.Refusal{
		Family: "ogcapi", Op: "items", Class: classify.Read,
		Seconds: 9.4371, Basis: "limit=1000 x 52 vertices",
	}
	of := func(reason shed.Reason, wait int, change func(*shed.Refusal)) shed.Refusal {
		r := items
		r.Reason, r.Wait = reason, wait
		if change != nil {
			change(&r)
		}
		return r
	}
	return map[string]shed.Refusal{
		"rate": of(shed.Rate, 3, func(r *shed.Refusal) {
			r.Limit = shed.Limit{Name: "fair-use", Value: 50, Unit: "request", Yours: 1}
		}),
		"never-fits": of(shed.NeverFits, 0, func(r *shed.Refusal) {
			r.Limit = shed.Limit{Name: "features", Value: 500, Unit: "feature", Yours: 1000}
		}),
		"concurrency": of(shed.Concurrency, 2, nil),
		"concurrency-share": of(shed.Concurrency, 2, func(r *shed.Refusal) {
			r.Status = http.StatusTooManyRequests
			r.Limit = shed.Limit{Name: "read", Value: 4, Unit: "seat"}
		}),
		"deadline": of(shed.Deadline, 2, func(r *shed.Refusal) {
			r.Limit = shed.Limit{Name: "deadline", Value: 30, Unit: "s"}
		}),
		"deadline-write": of(shed.Deadline, 0, func(r *shed.Refusal) { r.Class = classify.Write }),
		"over-budget": of(shed.OverBudget, 0, func(r *shed.Refusal) {
			r.Limit = shed.Limit{Name: "remaining", Value: 5, Unit: "s", Yours: 9.4371}
		}),
		"over-budget-job": of(shed.OverBudget, 0, func(r *shed.Refusal) {
			r.Limit = shed.Limit{Name: "inline", Value: 5, Unit: "s", Yours: 9.4371}
			r.Job = true
		}),
		"queue-depth": of(shed.QueueDepth, 40, func(r *shed.Refusal) {
			r.Limit, r.Projected = shed.Limit{Name: "jobs.max_depth", Value: 200, Unit: "job", Yours: 201}, 40
		}),
		"queue-wait": of(shed.QueueWait, 0, func(r *shed.Refusal) {
			r.Limit, r.Projected = shed.Limit{Name: "jobs.max_wait", Value: 600, Unit: "s", Yours: 3700}, 3700
		}),
		"store":          of(shed.Store, 5, nil),
		"store-full":     of(shed.StoreFull, 5, nil),
		"dependency":     of(shed.Dependency, 5, nil),
		"upstream":       of(shed.Upstream, 5, nil),
		"upstream-write": of(shed.Upstream, 0, func(r *shed.Refusal) { r.Class = classify.Write }),
		"blocked":        of(shed.Blocked, 0, nil),
		"draining":       of(shed.Draining, 5, nil),
		"no-route":       {Reason: shed.NoRoute},
		"bad-request":    {Reason: shed.BadRequest, Detail: "Content-Length and Transfer-Encoding contradict each other."},
		"bad-request-413": {
			Reason: shed.BadRequest, Status: http.StatusRequestEntityTooLarge,
			Limit: shed.Limit{Name: "max_body", Value: 1048576, Unit: "byte", Yours: 2097152},
		},
	}
}

func TestBodiesAreTheGoldenOnes(t *testing.T) {
	seen := map[shed.Reason]bool{}
	for name, refusal := range refusals() {
		seen[refusal.Reason] = true
		for form, native := range natives {
			refusal.Native = native
			body := refusal.Body(shed.BodyConfig{})
			got := append([]byte(body.ContentType+"\n"), body.Bytes...)
			path := filepath.Join("testdata", "bodies", name+"."+form)
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s:\n got %s\nwant %s", path, got, want)
			}
		}
	}
	for _, reason := range shed.Reasons() {
		if !seen[reason] {
			t.Errorf("no golden file for %s", reason)
		}
	}
}

func TestProblemsSayWhatTheStatusLineAndHeaderSay(t *testing.T) {
	for name, refusal := range refusals() {
		var document map[string]any
		if err := json.Unmarshal(refusal.Body(shed.BodyConfig{}).Bytes, &document); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := refusal.Status
		if want == 0 {
			want = refusal.Reason.Status()
		}
		if document["status"] != float64(want) {
			t.Errorf("%s: status %v, want %d", name, document["status"], want)
		}
		if wait, ok := document["retry_after_seconds"]; ok != (refusal.Wait > 0) || ok && wait != float64(refusal.Wait) {
			t.Errorf("%s: retry_after_seconds %v, want %d", name, wait, refusal.Wait)
		}
		if document["retryable"] != (document["action"] == "retry") {
			t.Errorf("%s: retryable %v with action %v", name, document["retryable"], document["action"])
		}
	}
}

func TestEstimatesHaveTwoSignificantDigits(t *testing.T) {
	for seconds, want := range map[float64]string{
		0.0012345: "0.0012", 0.1 + 0.2: "0.3", 1.2499: "1.2", 9.96: "10", 94.37: "94", 123.4: "120", 3600: "3600", 995.1: "1000",
	} {
		refusal := shed.Refusal{Reason: shed.OverBudget, Seconds: seconds}
		body := string(refusal.Body(shed.BodyConfig{}).Bytes)
		if !strings.Contains(body, `"seconds":`+want+`,`) {
			t.Errorf("%v: want %s in %s", seconds, want, body)
		}
	}
}

func TestEmptyBodies(t *testing.T) {
	empty := shed.BodyConfig{Body: "empty"}
	collection := (&shed.Refusal{Reason: shed.Rate, Family: "ogcapi", Op: "items"}).Body(empty)
	if collection.ContentType != "application/geo+json" || !json.Valid(collection.Bytes) {
		t.Errorf("empty collection: %s %s", collection.ContentType, collection.Bytes)
	}
	if html := (&shed.Refusal{Reason: shed.Rate, Op: "items", Format: "html"}).Body(empty); html.ContentType != "application/problem+json" {
		t.Errorf("an HTML page was answered with %s", html.ContentType)
	}
	if landing := (&shed.Refusal{Reason: shed.Rate, Op: "landing"}).Body(empty); landing.ContentType != "application/problem+json" {
		t.Errorf("a landing page was answered with %s", landing.ContentType)
	}
	if vector := (&shed.Refusal{Reason: shed.Rate, Native: classify.NativeVectorTile}).Body(empty); len(vector.Bytes) != 0 {
		t.Errorf("an empty vector tile of %d bytes", len(vector.Bytes))
	}
	raster := (&shed.Refusal{Reason: shed.Rate, Native: classify.NativeRasterTile}).Body(empty)
	picture, err := png.Decode(bytes.NewReader(raster.Bytes))
	if err != nil {
		t.Fatal(err)
	}
	if size := picture.Bounds().Size(); size.X != 256 || size.Y != 256 {
		t.Errorf("an empty tile of %v", size)
	}
	if _, _, _, alpha := color.NRGBAModel.Convert(picture.At(100, 200)).RGBA(); alpha != 0 {
		t.Errorf("an empty tile of opacity %d", alpha)
	}
	if none := (&shed.Refusal{Reason: shed.Rate, Status: http.StatusNoContent}).Body(shed.BodyConfig{}); len(none.Bytes) != 0 {
		t.Errorf("204 with %d bytes", len(none.Bytes))
	}
}

func TestStatusForPrefersTheClassThenTheFamily(t *testing.T) {
	cfg := shed.BodyConfig{Status: map[string]int{"rate": 503, "tile": 404, "xyz": 410}}
	for _, c := range []struct {
		reason shed.Reason
		class  classify.Class
		family string
		want   int
	}{
		{shed.Rate, classify.Tile, "xyz", 404},
		{shed.Rate, classify.Metadata, "xyz", 410},
		{shed.Rate, classify.Read, "ogcapi", 503},
		{shed.Concurrency, classify.Read, "ogcapi", 503},
		{shed.NoRoute, 0, "", 404},
	} {
		if got := cfg.StatusFor(c.reason, c.class, c.family, c.reason.Status()); got != c.want {
			t.Errorf("%s of %s, %s: %d, want %d", c.reason, c.class, c.family, got, c.want)
		}
	}
}

func TestCheckReportsEveryMistake(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  shed.BodyConfig
		want []string // paths
	}{
		"zero":             {shed.BodyConfig{}, nil},
		"right":            {shed.BodyConfig{Body: "empty", Status: map[string]int{"tile": 204, "rate": 503, "ogcapi": 500}, Silent: true}, nil},
		"unknown body":     {shed.BodyConfig{Body: "blank"}, []string{"body"}},
		"unknown reason":   {shed.BodyConfig{Status: map[string]int{"busy": 503}}, []string{"status.busy"}},
		"a job's status":   {shed.BodyConfig{Status: map[string]int{"read": 202}, Silent: true}, []string{"status.read", "silent"}},
		"a login":          {shed.BodyConfig{Status: map[string]int{"blocked": 401}}, []string{"status.blocked"}},
		"a redirect":       {shed.BodyConfig{Status: map[string]int{"blocked": 302}}, []string{"status.blocked"}},
		"success unspoken": {shed.BodyConfig{Status: map[string]int{"tile": 200}}, []string{"status.tile"}},
		"silent for none":  {shed.BodyConfig{Silent: true, Status: map[string]int{"tile": 404}}, []string{"silent"}},
		"all at once":      {shed.BodyConfig{Body: "x", Silent: true, Status: map[string]int{"y": 1}}, []string{"body", "status.y", "silent"}},
	} {
		var got []string
		c.cfg.Check(func(path, _ string) { got = append(got, path) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// anyRefusal draws refusals with strings and numbers as hostile as they come.
func anyRefusal() *rapid.Generator[shed.Refusal] {
	text := rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 2000), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat(`"`, n) }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("<", n) }),
		rapid.Map(rapid.IntRange(0, 3000), func(n int) string { return strings.Repeat("\U0001F5FA", n) }),
	)
	number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e4))
	return rapid.Custom(func(t *rapid.T) shed.Refusal {
		return shed.Refusal{
			Reason:  rapid.SampledFrom(shed.Reasons()).Draw(t, "reason"),
			Status:  rapid.SampledFrom([]int{0, 200, 204, 400, 413, 414, 429, 431, 503}).Draw(t, "status"),
			Wait:    rapid.IntRange(0, 3600).Draw(t, "wait"),
			Family:  text.Draw(t, "family"),
			Op:      rapid.SampledFrom([]string{"items", "tile", ""}).Draw(t, "op"),
			Class:   rapid.SampledFrom(classify.Classes()).Draw(t, "class"),
			Native:  rapid.SampledFrom([]classify.Native{classify.NativeProblem, classify.NativeRasterTile, classify.NativeVectorTile}).Draw(t, "native"),
			Format:  text.Draw(t, "format"),
			Seconds: number.Draw(t, "seconds"),
			Basis:   text.Draw(t, "basis"),
			Low:     rapid.Bool().Draw(t, "low"),
			Limit: shed.Limit{
				Name: text.Draw(t, "name"), Value: number.Draw(t, "value"),
				Unit: text.Draw(t, "unit"), Yours: number.Draw(t, "yours"),
			},
			Detail: text.Draw(t, "detail"),
		}
	})
}

func TestAnyRefusalIsBoundedAndWellFormed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		refusal := anyRefusal().Draw(t, "refusal")
		cfg := shed.BodyConfig{Body: rapid.SampledFrom([]string{"", "native", "empty"}).Draw(t, "body")}
		body := refusal.Body(cfg)
		if len(body.Bytes) > 1536 {
			t.Fatalf("%d bytes: %s", len(body.Bytes), body.Bytes)
		}
		if (body.ContentType == "application/problem+json" || body.ContentType == "application/geo+json") && !json.Valid(body.Bytes) {
			t.Fatalf("not JSON: %q", body.Bytes)
		}
		if body.ContentType != "image/png" && !utf8.Valid(body.Bytes) {
			t.Fatalf("not UTF-8: %q", body.Bytes)
		}
		same := refusal
		if again := same.Body(cfg); !bytes.Equal(body.Bytes, again.Bytes) || body.ContentType != again.ContentType {
			t.Fatalf("the same refusal gave %q and %q", body.Bytes, again.Bytes)
		}
	})
}

// What a body says of its estimate does not change with the digits after the
// second.
func TestBodiesAreTheSameWithinTheRounding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		refusal := anyRefusal().Draw(t, "refusal")
		refusal.Limit.Unit = "s"
		near := refusal
		// Two digits and a little: within half a unit of the second.
		base := float64(rapid.IntRange(10, 99).Draw(t, "digits"))
		refusal.Seconds, refusal.Limit.Yours = base, base
		shift := rapid.Float64Range(-0.49, 0.49).Draw(t, "shift")
		if base == 10 {
			shift = max(shift, 0) // below 10 the second digit is worth a tenth
		}
		near.Seconds, near.Limit.Yours = base+shift, base+shift
		if a, b := refusal.Body(shed.BodyConfig{}), near.Body(shed.BodyConfig{}); !bytes.Equal(a.Bytes, b.Bytes) {
			t.Fatalf("%v and %v differ:\n%s\n%s", refusal.Seconds, near.Seconds, a.Bytes, b.Bytes)
		}
	})
}

func BenchmarkBody(b *testing.B) {
	for form, native := range natives {
		refusal := refusals()["rate"]
		refusal.Native = native
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = refusal.Body(shed.BodyConfig{})
			}
		})
	}
}
