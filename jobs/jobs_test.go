package jobs_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/jobs"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

func TestHandlesAreReadAsTheyAreSaid(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-hjkmnp-tv-z]{4}(-[0-9a-hjkmnp-tv-z]{4}){4}$`)
	seen := make(map[jobs.ID]bool)
	for range 1000 {
		id := jobs.NewID()
		if !form.MatchString(string(id)) || seen[id] {
			t.Fatalf("a handle is %q", id)
		}
		seen[id] = true
		said := strings.ToUpper(strings.ReplaceAll(string(id), "-", ""))
		said = strings.NewReplacer("0", "O", "1", "L").Replace(said)
		if got, ok := jobs.ParseID(said); !ok || got != id {
			t.Fatalf("%q is read as %q", said, got)
		}
	}
	for _, bad := range []string{"", "k3v9-7qtm-2x4c-9wnd", "k3v9-7qtm-2x4c-9wnd-h8ru", "k3v9-7qtm-2x4c-9wnd-h8rb0", strings.Repeat("0", 1000)} {
		if id, ok := jobs.ParseID(bad); ok {
			t.Errorf("%q is read as %q", bad, id)
		}
	}
}

func sealer(t *testing.T) *jobs.Sealer {
	t.Helper()
	s, err := jobs.NewSealer(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASealedValueBelongsToItsJob(t *testing.T) {
	s := sealer(t)
	sealed := s.Seal("a", []byte("Bearer token"))
	if bytes.Contains(sealed, []byte("token")) {
		t.Error("it can be read")
	}
	if plain, err := s.Open("a", sealed); err != nil || string(plain) != "Bearer token" {
		t.Errorf("%q, %v", plain, err)
	}
	if _, err := s.Open("b", sealed); err == nil {
		t.Error("it opens for another job")
	}
	other, err := jobs.NewSealer([]byte("another key of enough bytes"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Open("a", sealed); err == nil {
		t.Error("it opens with another key")
	}
}

type memory []byte

func (m memory) Size() int64  { return int64(len(m)) }
func (m memory) Close() error { return nil }
func (m memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m).ReadAt(p, off)
}

// Whatever is written to a sealed blob can be read of it, in any part, and
// nothing of one that was changed or cut.
func TestSealedBlobs(t *testing.T) {
	s := sealer(t)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{0, 1, 100, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128 << 10, 300_000}).Draw(t, "size")
		plain := bytes.Repeat([]byte("geoproxy "), size/9+1)[:size]
		var sealed bytes.Buffer
		w, err := s.Writer(&sealed, "id.1")
		if err != nil {
			t.Fatal(err)
		}
		for rest := plain; len(rest) > 0; {
			n := min(len(rest), rapid.IntRange(1, 100_000).Draw(t, "write"))
			if _, err := w.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if int64(sealed.Len()) != jobs.SealedSize(int64(size)) {
			t.Fatalf("%d bytes are sealed in %d, not %d", size, sealed.Len(), jobs.SealedSize(int64(size)))
		}
		r, err := s.Reader(memory(sealed.Bytes()), "id.1")
		if err != nil {
			t.Fatal(err)
		}
		from := rapid.IntRange(0, size).Draw(t, "from")
		if _, err := r.Seek(int64(from), io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain[from:]) {
			t.Fatalf("from %d: %d bytes, %v", from, len(got), err)
		}
		if size == 0 {
			return
		}
		broken := bytes.Clone(sealed.Bytes())
		if rapid.Bool().Draw(t, "cut") && size > 64<<10 {
			broken = broken[:jobs.SealedSize(64<<10)]
		} else {
			broken[rapid.IntRange(0, len(broken)-1).Draw(t, "at")] ^= 1
		}
		if r, err := s.Reader(memory(broken), "id.1"); err == nil {
			if _, err := io.ReadAll(r); err == nil {
				t.Fatal("a broken blob is read to its end")
			}
		}
	})
}

func TestCursorsBelongToTheirList(t *testing.T) {
	m, err := jobs.NewMarks(secret)
	if err != nil {
		t.Fatal(err)
	}
	c := jobs.Cursor{Created: time.UnixMilli(1_700_000_000_123), ID: jobs.NewID()}
	text := m.Cursor("a", c)
	if got, ok := m.ParseCursor("a", text); !ok || got.ID != c.ID || !got.Created.Equal(c.Created) {
		t.Errorf("read back as %+v", got)
	}
	for _, forged := range []string{"", "x", text + "x", "x" + text, strings.Replace(text, string(c.ID), string(jobs.NewID()), 1)} {
		if _, ok := m.ParseCursor("a", forged); ok {
			t.Errorf("%q is taken", forged)
		}
	}
	if _, ok := m.ParseCursor("b", text); ok {
		t.Error("another owner's list takes it")
	}
}

func TestAdmission(t *testing.T) {
	lim := jobs.Limits{Depth: 200, Wait: 10 * time.Minute}
	for _, tt := range []struct {
		name     string
		load     jobs.Load
		estimate time.Duration
		want     string // of the error; empty where it is admitted
	}{
		{"an empty queue", jobs.Load{Tenants: 1}, time.Minute, ""},
		{"one place left", jobs.Load{Depth: 199, Mine: 199, Tenants: 1, Slots: 2}, time.Second, ""},
		{"no place", jobs.Load{Depth: 200, Tenants: 1, Work: time.Minute, Slots: 2}, time.Second, "200 jobs are queued or running; projected wait 31s"},
		{"its share is used up", jobs.Load{Depth: 100, Mine: 100, Tenants: 2, Slots: 2}, time.Second, "100 jobs of this tenant are its share of the queue; projected wait 1s"},
		{"the other's is not", jobs.Load{Depth: 100, Mine: 0, Tenants: 2, Slots: 2}, time.Second, ""},
		{"just short enough", jobs.Load{Depth: 9, Tenants: 1, Work: 18 * time.Minute, Slots: 2}, time.Minute, ""},
		{"too long", jobs.Load{Depth: 9, Tenants: 1, Work: 18 * time.Minute, Slots: 2}, 61 * time.Second, "the projected wait of 10m1s exceeds 10m0s"},
		{"workers unknown", jobs.Load{Depth: 9, Tenants: 1, Work: 10 * time.Minute}, time.Second, "the projected wait of 10m1s exceeds 10m0s"},
	} {
		err := lim.Admit(tt.load, tt.estimate)
		got := ""
		if err != nil {
			got = err.Error()
			var full *jobs.FullError
			if !errors.As(err, &full) || full.Projected <= 0 {
				t.Errorf("%s: the wait is not stated: %#v", tt.name, err)
			}
		}
		if got != tt.want {
			t.Errorf("%s: %q, not %q", tt.name, got, tt.want)
		}
	}
}

func TestBackoff(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 5: 32 * time.Second, 6: time.Minute, 60: time.Minute} {
		for range 100 {
			if d := jobs.Backoff(attempt, 0); d < want/2 || d > want {
				t.Errorf("after attempt %d: %s", attempt, d)
			}
		}
	}
	if d := jobs.Backoff(1, 20*time.Second); d != 20*time.Second {
		t.Errorf("an upstream that says 20 s is asked again after %s", d)
	}
}

// Every document is at most 1.5 KiB and begins with what to do, whatever the
// request was.
func TestDocuments(t *testing.T) {
	long := strings.Repeat("<&\"\\ü", 1000)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	actions := map[jobs.State]string{
		jobs.Accepted: "wait_job", jobs.Running: "wait_job", jobs.Successful: "fetch_result", jobs.Failed: "stop", jobs.Dismissed: "stop",
	}
	for state, action := range actions {
		j := &jobs.Job{
			ID: "k3v9-7qtm-2x4c-9wnd-h8rb", State: state, Attempt: 1, Estimate: 94 * time.Second, Now: now, Created: now.Add(-time.Minute),
			Started: now.Add(-time.Second), Finished: now, Expires: now.Add(time.Hour), Reason: jobs.ReasonUpstream, Error: long, Size: 1 << 40,
			Info: jobs.Info{Seconds: 94.123, Basis: long, Reason: "over-budget", Inline: 2}, Ahead: jobs.Ahead{Position: 3, Wait: time.Minute},
		}
		d := j.Describe("/ogc/geoproxy/jobs")
		text := d.JSON()
		if len(text) > 1536 || !bytes.HasPrefix(text, []byte(`{"message":"`)) || d.Action != action {
			t.Errorf("%s: %d bytes, action %s: %s", state, len(text), d.Action, text)
		}
	}
	j := &jobs.Job{ID: "k3v9-7qtm-2x4c-9wnd-h8rb", State: jobs.Accepted, Estimate: 30 * time.Second, Now: now, Created: now, Ahead: jobs.Ahead{Position: 2, Wait: 10 * time.Second}}
	want := "Not the result yet. Queued as k3v9-7qtm-2x4c-9wnd-h8rb; estimated 30 s, waited 0 s so far; about 40 s. Ask GET /geoproxy/jobs/k3v9-7qtm-2x4c-9wnd-h8rb?wait=30."
	if got := j.Describe("/geoproxy/jobs").Message; got != want {
		t.Errorf("the message is %q", got)
	}
}

func TestHint(t *testing.T) {
	var list []*jobs.Job
	if got := jobs.Hint(list); got != "" {
		t.Errorf("nothing is hinted as %q", got)
	}
	list = append(list, &jobs.Job{ID: "k3v9-7qtm-2x4c-9wnd-h8rb", State: jobs.Successful}, &jobs.Job{State: jobs.Running}, &jobs.Job{State: jobs.Accepted})
	if got := jobs.Hint(list); got != "1 job(s) finished: k3v9-7qtm-2x4c-9wnd-h8rb; 2 still running" {
		t.Errorf("the hint is %q", got)
	}
	for range 1000 {
		list = append(list, &jobs.Job{ID: jobs.NewID(), State: jobs.Successful}, &jobs.Job{ID: jobs.NewID(), State: jobs.Failed}, &jobs.Job{State: jobs.Running})
	}
	if got := jobs.Hint(list); len(got) > 200 {
		t.Errorf("the hint has %d characters: %q", len(got), got)
	}
}
