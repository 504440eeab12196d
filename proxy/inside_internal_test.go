package proxy

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

// pieces is a body that comes in pieces of given sizes.
type pieces struct {
	rest  []byte
	sizes []int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := len(p.rest)
	if len(p.sizes) > 0 {
		n, p.sizes = p.sizes[0], p.sizes[1:]
	}
	n = copy(b, p.rest[:min(n, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// However a body comes, its first and last bytes are those that are kept, and
// what passes is the body.
func TestWhatIsWatchedIsTheBeginningAndTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := make([]byte, rapid.IntRange(0, 3*classify.FaultHead).Draw(t, "length"))
		for i := range body {
			body[i] = byte(i * 7 >> 3)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(0, 300), 0, 40).Draw(t, "sizes")
		w := watched{ReadCloser: io.NopCloser(&pieces{rest: body, sizes: sizes})}
		got, err := io.ReadAll(&w)
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes of %d passed: %v", len(got), len(body), err)
		}
		if want := body[:min(len(body), classify.FaultHead)]; !bytes.Equal(w.head[:w.nHead], want) {
			t.Fatalf("kept %d bytes of the head of %d", w.nHead, len(body))
		}
		if want := body[max(0, len(body)-classify.FaultTail):]; !bytes.Equal(w.tail[:w.nTail], want) {
			t.Fatalf("the tail of %d bytes is %x, want %x", len(body), w.tail[:w.nTail], want)
		}
	})
}

// What most upstreams answer with costs nothing to pass.
func TestWatchingPicturesAllocatesNothing(t *testing.T) {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"image/png"}}, Body: io.NopCloser(&pieces{})}
	body := res.Body
	var call classify.Call
	if n := testing.AllocsPerRun(100, func() {
		var t telling
		t.watch(&call, res)
		t.close(&call)
	}); n > 0 || res.Body != body {
		t.Errorf("%v allocations, or another body", n)
	}
}
