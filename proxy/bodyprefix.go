package proxy

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// bodyPrefix reads the first bytes of a request's body ahead of the decision
// and then stands in for the whole body, byte for byte.
//
// A goroutine does the reading, since a read of a request's body cannot be
// given up without breaking the body: when the time is over the decision is
// made on what has come, and the goroutine's read goes on as the first part of
// what is forwarded.
type bodyPrefix struct {
	src io.ReadCloser

	mu     sync.Mutex
	buf    []byte // what has been read
	next   int    // what of it has been handed on
	err    error  // of src; io.EOF where the body is whole
	done   bool   // the goroutine has stopped
	signal chan struct{}
}

// prefixChunk is the least that the buffer grows by.
const prefixChunk = 4 << 10

// readPrefix starts reading at most limit bytes of src, whose length is as
// told (-1 where it is not), and waits for them at most within.
func readPrefix(src io.ReadCloser, length, limit int64, within time.Duration) (*bodyPrefix, classify.Body) {
	p := &bodyPrefix{src: src, signal: make(chan struct{}, 1)}
	size := limit
	if length >= 0 {
		// One byte more than told, so that the end of the body is seen too.
		size = min(limit, length+1)
	}
	go p.fill(size)

	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.signal:
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := p.err == io.EOF || (length >= 0 && int64(len(p.buf)) >= length) //nolint:errorlint // io.Reader returns EOF itself
	return p, classify.Body{Prefix: slices.Clip(p.buf), Length: length, Whole: whole}
}

// fill reads up to size bytes, publishing them as they come.
func (p *bodyPrefix) fill(size int64) {
	chunk := make([]byte, min(size, prefixChunk))
	for {
		n, err := p.src.Read(chunk)
		p.mu.Lock()
		p.buf = append(p.buf, chunk[:n]...)
		left := size - int64(len(p.buf))
		if err != nil || left <= 0 {
			p.err, p.done = err, true
			p.mu.Unlock()
			close(p.signal)
			return
		}
		p.mu.Unlock()
		if int64(len(chunk)) < left && n == len(chunk) {
			chunk = make([]byte, min(left, int64(4*len(chunk))))
		} else if left < int64(len(chunk)) {
			chunk = chunk[:left]
		}
	}
}

// ended reports whether the body was read to its end.
func (p *bodyPrefix) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == io.EOF //nolint:errorlint // io.Reader returns EOF itself
}

// stop ends reading ahead. A handler that returned while the goroutine reads
// would have net/http end that read, and take every deadline off the
// connection in doing so: it would then wait for the rest of the body for ever.
func (p *bodyPrefix) stop(caller *http.ResponseController) {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if !done && caller.SetReadDeadline(longAgo) == nil {
		<-p.signal
	}
}

// Read gives what was read ahead, then the rest.
func (p *bodyPrefix) Read(b []byte) (int, error) {
	for {
		p.mu.Lock()
		if p.next < len(p.buf) {
			n := copy(b, p.buf[p.next:])
			p.next += n
			p.mu.Unlock()
			return n, nil
		}
		done, err := p.done, p.err
		p.mu.Unlock()
		switch {
		case err != nil:
			return 0, err
		case done:
			return p.src.Read(b)
		}
		<-p.signal
	}
}

// Close closes the body; a read that is under way ends with an error.
func (p *bodyPrefix) Close() error { return p.src.Close() }
