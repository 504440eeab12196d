package proxy

import (
	"io"
	"net/http"
	"sync"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

// errorInside is the reason of a request whose answer tells of an error under a
// status of success, in logs and metrics only: the answer is passed on as it is.
const errorInside = shed.Reason("error-inside")

// telling is what an answer with a status of success tells of the request.
type telling struct {
	answer classify.Answer
	body   *watched // nil where its type says all
}

// watched is an answer's body that passes as it comes, of which the first and
// the last bytes are kept.
type watched struct {
	io.ReadCloser
	coding       string
	head         [classify.FaultHead]byte
	tail         [classify.FaultTail]byte
	nHead, nTail int // bytes kept
}

var watchers = sync.Pool{New: func() any { return new(watched) }}

// Read keeps of what is read what belongs to the head and the tail.
func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.nHead < len(b.head) {
		b.nHead += copy(b.head[b.nHead:], p[:n])
	}
	read := p[max(0, n-len(b.tail)):n]
	if over := b.nTail + len(read) - len(b.tail); over > 0 { // what is oldest makes room
		b.nTail = copy(b.tail[:], b.tail[over:b.nTail])
	}
	b.nTail += copy(b.tail[b.nTail:], read)
	return n, err
}

// watch looks at an answer's header and, where that does not say whether it
// tells of an error, keeps an eye on its body.
func (t *telling) watch(call *classify.Call, res *http.Response) {
	if res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusBadRequest {
		return
	}
	t.answer = call.AnswerOf(first(res.Header["Content-Type"]))
	if t.answer != classify.AnswerUnread {
		return
	}
	if res.Body == nil || res.Body == http.NoBody {
		t.answer = classify.AnswerGood
		return
	}
	t.body, _ = watchers.Get().(*watched)
	t.body.ReadCloser, t.body.coding = res.Body, first(res.Header["Content-Encoding"])
	res.Body = t.body
}

// close settles what the answer tells. Nobody reads the body any more.
func (t *telling) close(call *classify.Call) {
	b := t.body
	if b == nil {
		return
	}
	t.body = nil
	t.answer = call.AnswerWith(b.head[:b.nHead], b.tail[:b.nTail], b.coding)
	b.ReadCloser, b.coding, b.nHead, b.nTail = nil, "", 0, 0
	watchers.Put(b)
}
