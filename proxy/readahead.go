package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// answer is the upstream's body on its way to the caller, who must not hold a
// seat by being slow.
//
// As long as the caller keeps up, the handler reads the upstream and writes to
// the caller in turn, and nothing else happens. When a write lasts longer than
// patience, a goroutine takes over the reading, into a ring that is bounded for
// the answer and for all answers together. The seat goes back when the upstream
// has been read to its end, whoever did it.
type answer struct {
	c       *call
	body    io.ReadCloser
	pace    pace // of the caller, while it keeps the upstream waiting
	pending int  // bytes that are with the caller now

	// held says that a trickle may be waiting in net/http's buffer. httputil
	// flushes answers of unknown length only. Only the handler uses it.
	sized, held bool

	read    bool  // something was
	reading bool  // the upstream is waited for
	ended   bool  // its end was reached
	copied  bool  // the handler has passed everything on
	err     error // why its end was not reached
	ring    *ring // of what was read ahead; nil while nothing is
	running bool  // the goroutine reads
}

// Read is called by the handler, which has passed on what it read before.
func (b *answer) Read(p []byte) (int, error) {
	c := b.c
	if b.held {
		_ = http.NewResponseController(c.w).Flush() // if the caller has gone, the next write says so
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.moved // the header's time, where this is the first read
	if b.read {
		now = clock()
		b.taken(now)
	}
	if b.ring != nil {
		return b.take(p)
	}
	if b.err != nil {
		return 0, b.err
	}
	b.reading = true
	c.mu.Unlock()
	n, err := b.body.Read(p)
	c.mu.Lock()
	b.came(now, n, err)
	if n > 0 {
		b.pending = n
		if !b.ended {
			if !b.read {
				c.alarm.t.Reset(patience)
			}
			b.pace.begin(c.moved)
		}
	}
	b.read = true
	b.held = b.sized && n > 0 && n < trickle && !b.ended
	return n, err
}

// taken notes that the caller took what was pending.
func (b *answer) taken(now time.Duration) {
	if b.pending == 0 {
		return
	}
	b.c.moved = now
	if b.ring == nil {
		b.pace.end(now, b.pending)
	} else if b.pace.open {
		b.pace.bytes += int64(b.pending)
	}
	b.pending = 0
}

// came notes n bytes of the upstream, waited for since. The lock is held.
func (b *answer) came(since time.Duration, n int, err error) {
	c := b.c
	now := clock()
	b.reading = false
	c.moved = now
	c.x.waited += now - since
	c.x.downBytes += int64(n)
	if err == nil {
		return
	}
	b.err = err
	if errors.Is(err, io.EOF) {
		b.ended = true
		c.release()
	}
}

// take gives the handler what was read ahead. The lock is held.
func (b *answer) take(p []byte) (int, error) {
	for b.ring.empty() {
		if b.err != nil {
			return 0, b.err
		}
		b.c.changed.Wait()
	}
	b.pending = b.ring.take(p)
	b.c.changed.Broadcast()
	return b.pending, nil
}

// stuck says whether the handler has been writing for so long that the answer
// should be read ahead. The lock is held.
func (b *answer) stuck(now time.Duration) bool {
	return b.ring == nil && b.err == nil && b.pending > 0 && now-b.pace.since >= patience
}

// readAhead starts the goroutine, where there is room for a ring. The lock is held.
func (b *answer) readAhead() {
	limits := b.c.limits()
	r := newRing(limits.Buffer, &b.c.streams().buffered, limits.BufferTotal)
	if r == nil {
		return
	}
	b.pace.end(clock(), 0)
	b.ring, b.running = r, true
	go b.fill()
}

// fill reads the upstream to its end.
func (b *answer) fill() {
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.over && b.err == nil {
		room := b.ring.room()
		if room == nil {
			b.pace.begin(clock())
			c.changed.Wait()
			b.pace.end(clock(), 0)
			continue
		}
		now := clock()
		b.reading = true
		c.mu.Unlock()
		n, err := b.body.Read(room)
		c.mu.Lock()
		b.ring.add(n)
		b.came(now, n, err)
		c.changed.Broadcast()
	}
	b.running = false
	c.changed.Broadcast()
}

// Close does nothing: the call closes the body when it is over, after it has
// told the upstream.
func (b *answer) Close() error { return nil }

// end closes the body and waits for the goroutine.
func (b *answer) end() {
	if b.body == nil {
		return
	}
	_ = b.body.Close() // what it says of an answer given up is known
	if b.ring == nil { // nobody starts one any more: the call is over
		return
	}
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	for b.running {
		c.changed.Wait()
	}
	b.ring.free()
}

// trickle is less than what comes at once where the upstream is not waited for.
const trickle = 1 << 10

// chunkSize is the unit of the ring, and of what is copied at once.
const chunkSize = 32 << 10

type chunk [chunkSize]byte

var chunks = sync.Pool{New: func() any { return new(chunk) }}

// chunkPool lends chunks to httputil.
type chunkPool struct{}

func (chunkPool) Get() []byte {
	c, _ := chunks.Get().(*chunk)
	return c[:]
}

func (chunkPool) Put(b []byte) { chunks.Put((*chunk)(b)) }

// ring is a queue of bytes in pooled chunks. It always has one chunk, so that
// what waits for room gets it from whoever empties it.
type ring struct {
	chunks   []*chunk // oldest first
	from, to int      // read from the first, written to the last
	most     int      // chunks
	total    *atomic.Int64
	limit    int64 // of total
}

// newRing is nil where limit leaves no room for one.
func newRing(size int64, total *atomic.Int64, limit int64) *ring {
	r := &ring{most: max(1, int(size/chunkSize)), total: total, limit: limit}
	if !r.grow() {
		return nil
	}
	return r
}

func (r *ring) grow() bool {
	if len(r.chunks) == r.most {
		return false
	}
	if r.total.Add(chunkSize) > r.limit {
		r.total.Add(-chunkSize)
		return false
	}
	c, _ := chunks.Get().(*chunk)
	r.chunks = append(r.chunks, c)
	r.to = 0
	return true
}

// room is where to write next, nil while there is none. Only add may follow.
func (r *ring) room() []byte {
	if r.to == chunkSize && !r.grow() {
		return nil
	}
	return r.chunks[len(r.chunks)-1][r.to:]
}

// add counts n bytes that were written to room.
func (r *ring) add(n int) { r.to += n }

func (r *ring) empty() bool { return len(r.chunks) == 1 && r.from == r.to }

// take moves the oldest bytes to p. It never touches the free part of the last
// chunk, which is being written.
func (r *ring) take(p []byte) int {
	first, end := r.chunks[0], chunkSize
	if len(r.chunks) == 1 {
		end = r.to
	}
	n := copy(p, first[r.from:end])
	r.from += n
	if r.from < chunkSize {
		return n
	}
	r.from = 0
	if len(r.chunks) == 1 {
		r.to = 0
		return n
	}
	r.chunks = append(r.chunks[:0], r.chunks[1:]...)
	chunks.Put(first)
	r.total.Add(-chunkSize)
	return n
}

// free gives everything back.
func (r *ring) free() {
	for _, c := range r.chunks {
		chunks.Put(c)
	}
	r.total.Add(-chunkSize * int64(len(r.chunks)))
	r.chunks = nil
}
