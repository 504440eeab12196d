package proxy

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestPrefixIsTransparent: whatever is read ahead, what follows is the body,
// byte for byte.
func TestPrefixIsTransparent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 20_000).Draw(t, "body")
		limit := rapid.Int64Range(1, 16_384).Draw(t, "limit")
		length := int64(len(body))
		if rapid.Bool().Draw(t, "chunked") {
			length = -1
		}
		var src io.Reader = bytes.NewReader(body)
		if rapid.Bool().Draw(t, "dribbling") {
			src = iotest.HalfReader(src)
		}
		p, seen := readPrefix(io.NopCloser(src), length, limit, time.Minute)
		if want := min(limit, int64(len(body))); int64(len(seen.Prefix)) != want {
			t.Fatalf("saw %d bytes of %d under a limit of %d", len(seen.Prefix), len(body), limit)
		}
		if seen.Whole && len(seen.Prefix) != len(body) || !seen.Whole && int64(len(body)) < limit {
			t.Fatalf("whole is %t with %d of %d bytes seen, limit %d", seen.Whole, len(seen.Prefix), len(body), limit)
		}
		got, err := io.ReadAll(p)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes, %v; want the body's %d", len(got), err, len(body))
		}
	})
}

// TestPrefixGivesUpOnTime: a body that does not come holds the decision up for
// no longer than it may, and is forwarded whole all the same.
func TestPrefixGivesUpOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			_, _ = w.Write([]byte("first "))
			time.Sleep(10 * time.Second)
			_, _ = w.Write([]byte("second"))
			_ = w.Close()
		}()
		start := time.Now()
		p, seen := readPrefix(r, -1, 1<<16, 2*time.Second)
		if waited := time.Since(start); waited != 2*time.Second {
			t.Errorf("waited %s; want 2s", waited)
		}
		if string(seen.Prefix) != "first " || seen.Whole {
			t.Errorf("saw %q, whole %t", seen.Prefix, seen.Whole)
		}
		got, err := io.ReadAll(p)
		if err != nil || string(got) != "first second" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestPrefixPassesErrorsOn(t *testing.T) {
	t.Parallel()
	src := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF))
	p, seen := readPrefix(io.NopCloser(src), 10, 100, time.Minute)
	if seen.Whole {
		t.Error("a broken body is not whole")
	}
	got, err := io.ReadAll(p)
	if string(got) != "abc" || err != io.ErrUnexpectedEOF { //nolint:errorlint // the very error
		t.Errorf("%q, %v", got, err)
	}
}
