package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/geoproxy/geoproxy/classify"
)

const mapsOrigin = "https://maps.example"

func testCORS(tb testing.TB, allow ...string) *cors {
	tb.Helper()
	c, err := newCORS(allow)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// own is what the refusal to an origin carries.
func (c *cors) own(origin string) (allow, credentials, expose string) {
	h := http.Header{}
	c.apply(origin, h)
	return h.Get(headerAllowOrigin), h.Get(headerAllowCredentials), h.Get(headerExpose)
}

func answerFor(allow, credentials string) http.Header {
	h := http.Header{}
	if allow != "" {
		h.Set(headerAllowOrigin, allow)
	}
	if credentials != "" {
		h.Set(headerAllowCredentials, credentials)
	}
	return h
}

func TestBeforeAnythingIsLearnedAnybodyMayReadWithoutCredentials(t *testing.T) {
	allow, credentials, expose := testCORS(t).own(mapsOrigin)
	if allow != "*" || credentials != "" {
		t.Errorf("%q, credentials %q", allow, credentials)
	}
	for _, name := range []string{"Location", "Retry-After", "RateLimit", "RateLimit-Policy", "Link", "Preference-Applied", "Geoproxy-Reason", "Geoproxy-Estimate", "Server-Timing"} {
		if !strings.Contains(expose, name) {
			t.Errorf("%s is not exposed", name)
		}
	}
}

func TestMirrorGivesWhatTheUpstreamGave(t *testing.T) {
	c := testCORS(t, "mirror")
	c.learn(mapsOrigin, answerFor(mapsOrigin, "true"))
	if allow, credentials, _ := c.own(mapsOrigin); allow != mapsOrigin || credentials != "true" {
		t.Errorf("allowed with credentials: %q, %q", allow, credentials)
	}
	c.learn(mapsOrigin, answerFor("", ""))
	if allow, _, _ := c.own(mapsOrigin); allow != mapsOrigin {
		t.Errorf("after an error page without the headers: %q", allow)
	}
	c.learn("https://other.example", answerFor("", ""))
	if allow, _, expose := c.own("https://other.example"); allow != "" || expose != "" {
		t.Errorf("not allowed: %q, %q", allow, expose)
	}
	c.learn("https://other.example", answerFor("*", "true"))
	if allow, credentials, _ := c.own("https://other.example"); allow != "*" || credentials != "" {
		t.Errorf("allowed later: %q, %q", allow, credentials)
	}
	c.learn("https://third.example", answerFor(mapsOrigin, ""))
	if allow, _, _ := c.own("https://third.example"); allow != "" {
		t.Errorf("another is allowed: %q", allow)
	}
}

func TestTheAnswerVariesByOrigin(t *testing.T) {
	for _, c := range []*cors{testCORS(t), testCORS(t, mapsOrigin)} {
		h := http.Header{"Vary": {"Prefer"}}
		c.apply("https://other.example", h)
		if got := strings.Join(h["Vary"], ", "); got != "Prefer, Origin" {
			t.Errorf("Vary: %s", got)
		}
	}
}

func TestWithoutAnOriginThereIsNothing(t *testing.T) {
	for _, c := range []*cors{testCORS(t), testCORS(t, "off"), testCORS(t, "*")} {
		h := http.Header{}
		c.apply("", h)
		if len(h) != 0 {
			t.Errorf("%v", h)
		}
	}
}

func TestListedOrigins(t *testing.T) {
	c := testCORS(t, mapsOrigin)
	c.learn("https://other.example", answerFor("*", ""))
	if allow, credentials, _ := c.own(mapsOrigin); allow != mapsOrigin || credentials != "true" {
		t.Errorf("listed: %q, %q", allow, credentials)
	}
	if allow, _, _ := c.own("https://other.example"); allow != "" {
		t.Errorf("not listed: %q", allow)
	}
	all := testCORS(t, "*")
	if allow, credentials, _ := all.own(mapsOrigin); allow != "*" || credentials != "" {
		t.Errorf("all: %q, %q", allow, credentials)
	}
}

func TestOffDoesNothing(t *testing.T) {
	c := testCORS(t, "off")
	h := answerFor("*", "")
	c.learn(mapsOrigin, h)
	c.expose(mapsOrigin, h)
	if h.Get(headerExpose) != "" {
		t.Error("exposed")
	}
	if allow, _, _ := c.own(mapsOrigin); allow != "" {
		t.Errorf("allowed %q", allow)
	}
}

func TestOriginsThatCannotBeRead(t *testing.T) {
	for _, origin := range []string{"mirror", "maps.example", "https://maps.example/", "https://Maps.example", "https://", "https://u@maps.example", ""} {
		if _, err := newCORS([]string{origin, "https://good.example"}); err == nil {
			t.Errorf("%q was taken", origin)
		}
	}
}

func TestExposeIsMergedIntoWhatIsThere(t *testing.T) {
	c := testCORS(t)
	for name, test := range map[string]struct {
		header http.Header
		want   string // exactly, or what it begins with where it ends in an ellipsis
	}{
		"none":                      {answerFor(mapsOrigin, ""), exposedText},
		"its own":                   {http.Header{headerAllowOrigin: {"*"}, headerExpose: {"X-Total, retry-after", "ETag"}}, "X-Total, retry-after, ETag, Location, RateLimit…"},
		"a star":                    {http.Header{headerAllowOrigin: {"*"}, headerExpose: {"*"}}, "*"},
		"a star with credentials":   {http.Header{headerAllowOrigin: {mapsOrigin}, headerAllowCredentials: {"true"}, headerExpose: {"*"}}, "*, Location…"},
		"another origin's":          {answerFor("https://other.example", ""), ""},
		"not allowed":               {http.Header{headerExpose: {"ETag"}}, "ETag"},
		"merged already by us":      {http.Header{headerAllowOrigin: {"*"}, headerExpose: {exposedText}}, exposedText},
		"allowed with an empty one": {http.Header{headerAllowOrigin: {""}}, ""},
	} {
		c.expose(mapsOrigin, test.header)
		got := strings.Join(test.header[headerExpose], "|")
		begin, cut := strings.CutSuffix(test.want, "…")
		if cut && !strings.HasPrefix(got, begin) || !cut && got != begin {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if strings.Count(strings.ToLower(got), "retry-after") > 1 {
			t.Errorf("%s: twice in %q", name, got)
		}
	}
}

func TestOriginsAreBounded(t *testing.T) {
	c := testCORS(t)
	for i := range 10 * maxOrigins {
		origin := fmt.Sprintf("https://o%d.example", i)
		c.learn(origin, answerFor(origin, "true"))
	}
	c.learn("https://"+strings.Repeat("a", 60_000), answerFor("", ""))
	if n := c.learned.len(); n > maxOrigins {
		t.Errorf("%d origins, at most %d", n, maxOrigins)
	}
}

func TestLearningWhatIsKnownCostsNoAllocation(t *testing.T) {
	c := testCORS(t)
	h := answerFor(mapsOrigin, "true")
	c.learn(mapsOrigin, h)
	if n := testing.AllocsPerRun(100, func() { c.learn(mapsOrigin, h) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPreflights(t *testing.T) {
	asked := http.Header{"Origin": {mapsOrigin}, "Access-Control-Request-Method": {"PUT"}}
	if !isPreflight(&classify.Request{Method: http.MethodOptions, Header: asked}) {
		t.Error("a preflight is none")
	}
	disguised := asked.Clone()
	disguised.Set("X-HTTP-Method-Override", "GET")
	for what, r := range map[string]classify.Request{
		"a GET":                  {Method: http.MethodGet, Header: asked},
		"an OPTIONS of a page's": {Method: http.MethodOptions, Header: http.Header{"Origin": {mapsOrigin}}},
		"one with a body":        {Method: http.MethodOptions, Header: asked, Body: classify.Body{Length: 3}},
		"one with chunks":        {Method: http.MethodOptions, Header: asked, Body: classify.Body{Length: -1}},
		"one for another method": {Method: http.MethodOptions, Header: disguised},
	} {
		if isPreflight(&r) {
			t.Errorf("%s is a preflight", what)
		}
	}
}
