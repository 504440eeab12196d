package proxy

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// lingering is how long the rest of a request's body is read after its answer.
const lingering = 2 * time.Second

// upload is the request's body on its way to the upstream. The transport reads
// it, in a goroutine that may outlive the exchange.
type upload struct {
	c     *call
	body  io.ReadCloser
	pace  pace
	bytes int64
	done  bool  // read to its end
	err   error // why it could not be
}

// Read counts and times what the caller sends.
func (b *upload) Read(p []byte) (int, error) {
	c := b.c
	c.mu.Lock()
	if c.over || c.x.fault != faultNone {
		c.mu.Unlock()
		return 0, errOver
	}
	b.pace.begin(clock())
	c.mu.Unlock()

	n, err := b.body.Read(p)

	now := clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	b.pace.end(now, n)
	c.changed.Broadcast()
	b.bytes += int64(n)
	if n > 0 || err != nil {
		// The deadline is the upstream's: it runs from the last of the body.
		c.moved, c.asked = now, now
	}
	if limit := c.x.maxBody; limit > 0 && b.bytes > limit && !c.over {
		n, err = 0, errBody
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.done = true
	default:
		b.err = err
	}
	return n, err
}

// leaveBody lets an answer of geoproxy's own go out before the request's body
// has come: net/http would read that first, and so wait for as long as the
// caller likes. The connection is of no more use then; what is still under way
// is read for a little time, as in letGo.
func leaveBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody || r.ProtoMajor != 1 {
		return // HTTP/2 has no such difficulty
	}
	caller := http.NewResponseController(w)
	if prefix, ok := r.Body.(*bodyPrefix); ok {
		if prefix.ended() {
			return
		}
		prefix.stop(caller)
	}
	if caller.EnableFullDuplex() == nil {
		w.Header()["Connection"] = []string{"close"}
		_ = caller.SetReadDeadline(time.Now().Add(lingering)) // a writer without deadlines has no connection to lose
	}
}

// letGo takes the body from the transport, which may be waiting for the caller
// in it. The server then has a little time to read what is left, so that the
// answer is not lost to a reset of the connection.
func (b *upload) letGo() {
	c := b.c
	caller := http.NewResponseController(c.w)
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.pace.since != 0 && caller.SetReadDeadline(longAgo) == nil {
		for b.pace.since != 0 {
			c.changed.Wait()
		}
	}
	if prefix, ok := b.body.(*bodyPrefix); ok {
		prefix.stop(caller)
	}
	_ = caller.SetReadDeadline(time.Now().Add(lingering)) // a writer without deadlines has no connection to lose
}

// Close leaves the body to the server, whose it is.
func (b *upload) Close() error { return nil }

// tunnel is the upstream's side of an upgraded connection.
type tunnel struct {
	c    *call
	conn io.ReadWriteCloser
}

func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.conn.Read(p)
	t.c.passed(0, n)
	return n, err
}

func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.conn.Write(p)
	t.c.passed(n, 0)
	return n, err
}

func (t *tunnel) Close() error { return t.conn.Close() }

// CloseWrite passes on that the caller has no more to say.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return t.conn.Close()
}

// passed counts bytes of a tunnel.
func (c *call) passed(up, down int) {
	now := clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || up+down == 0 {
		return
	}
	c.moved = now
	c.up.bytes += int64(up)
	c.x.downBytes += int64(down)
}
