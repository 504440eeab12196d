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
	head   *head // what is kept of it; nil where its type says all
}

// head is an answer's body that passes as it comes, of which the first bytes
// are kept.
type head struct {
	io.ReadCloser
	coding string
	n      int
	kept   [classify.FaultHead]byte
}

var heads = sync.Pool{New: func() any { return new(head) }}

// Read keeps what is read, until there is enough of it.
func (b *head) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.n < len(b.kept) {
		b.n += copy(b.kept[b.n:], p[:n])
	}
	return n, err
}

// watch looks at an answer's header and, where that does not say whether it
// tells of an error, keeps the head of its body.
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
	t.head, _ = heads.Get().(*head)
	t.head.ReadCloser, t.head.coding = res.Body, first(res.Header["Content-Encoding"])
	res.Body = t.head
}

// close settles what the answer tells. Nobody reads the body any more.
func (t *telling) close(call *classify.Call) {
	if t.head == nil {
		return
	}
	t.answer = call.AnswerWith(t.head.kept[:t.head.n], t.head.coding)
	t.head.ReadCloser, t.head.coding, t.head.n = nil, "", 0
	heads.Put(t.head)
	t.head = nil
}
