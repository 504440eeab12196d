package proxy

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"
)

// What ends an exchange early. They are also the causes of its context.
var (
	errDeadline  = errors.New("no header from the upstream by the deadline")
	errBody      = errors.New("the request's body is larger than max_body")
	errSlowUp    = errors.New("the caller sent less than stream.min_rate")
	errSlowDown  = errors.New("the caller took less than stream.min_rate")
	errIdle      = errors.New("nothing moved for stream.idle")
	errMax       = errors.New("the exchange lasted stream.max")
	errOver      = errors.New("the exchange is over")
	errStatus    = errors.New("the upstream's status is no HTTP status")
	errUpgrade   = errors.New("the upstream switched to a protocol that was not asked for")
	errLeft      = errors.New("the caller left")
	errUntouched = errors.New("the deadline had passed before the upstream was called")
)

// call is the state of one exchange while it runs. It is the context of the
// upstream's request as well: that is how httputil's hooks, which see nothing
// but requests, find it without an allocation of its own.
type call struct {
	context.Context //nolint:containedctx // a call is a context
	cancel          context.CancelCauseFunc

	u *upstream
	x *exchange
	w http.ResponseWriter
	// proto1 says that the caller speaks HTTP/1, where an unread body is in
	// the way of the next request.
	proto1 bool

	began  time.Duration // by clock
	length time.Duration // from began to the deadline; 0 is none
	names  [4]string     // the values of X-Forwarded-* and Forwarded

	mu       sync.Mutex // guards what follows, and the exchange's results
	changed  sync.Cond  // of up and down
	alarm    *alarm
	moved    time.Duration // when a byte last moved, either way
	asked    time.Duration // since when the upstream has had all that there is to send
	answered bool          // the final header is here
	released bool
	stream   bool // an upgrade, an event stream or gRPC: holds no seat
	over     bool // nothing more may be done to the exchange
	tick     time.Duration
	up       upload
	down     answer
}

type callKey struct{}

// Value finds the call itself.
func (c *call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	return c
}

// forward sends r to the upstream and streams the answer to w. It returns when
// the exchange is over. Where x.sent is still false it wrote nothing, and
// x.fault says why.
//
// An answer that breaks off after its header must not look complete: forward
// then panics with http.ErrAbortHandler, which the server takes for "close
// this connection", with x filled in and released as ever. So read x in a
// deferred function.
//
// The body is passed as it comes, and the upstream may answer before it has
// all of it: such an HTTP/1 connection is closed after the answer.
func (u *upstream) forward(w http.ResponseWriter, r *http.Request, x *exchange) {
	c := &call{u: u, x: x, w: w, proto1: r.ProtoMajor == 1, began: clock()}
	c.moved, c.asked = c.began, c.began
	c.changed.L = &c.mu
	if !x.deadline.IsZero() {
		if c.length = time.Until(x.deadline); c.length <= 0 {
			c.refuse(faultDeadline, errUntouched)
			return
		}
	}
	if x.maxBody > 0 && r.ContentLength > x.maxBody {
		c.refuse(faultBody, errBody)
		return
	}

	c.Context, c.cancel = context.WithCancelCause(r.Context())
	out := r.WithContext(c)
	if r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody {
		c.up = upload{c: c, body: r.Body}
		out.Body = &c.up
		if c.proto1 {
			// Without it net/http reads the rest of the body before it sends
			// the answer's header, and would wait for a caller who waits for
			// that. Only HTTP/1 has the setting.
			_ = http.NewResponseController(w).EnableFullDuplex()
		}
	}
	if len(r.Header["Upgrade"]) > 0 && smugglesHTTP(r.Header["Upgrade"]) {
		out.Header = r.Header.Clone()
		out.Header.Del("Upgrade")
		out.Header.Del("Http2-Settings")
	}

	defer c.finish()
	c.arm()
	u.proxy.ServeHTTP(w, out)
	c.down.copied = true
}

// smugglesHTTP finds an upgrade to a tunnel of further HTTP requests, which
// nothing would price. RFC 9113 retired it; the request goes on without.
func smugglesHTTP(upgrade []string) bool {
	for _, v := range upgrade {
		v = strings.ToLower(v)
		if strings.Contains(v, "h2c") || strings.Contains(v, "http/") || strings.Contains(v, "tls/") {
			return true
		}
	}
	return false
}

// refuse ends an exchange that the upstream never heard of.
func (c *call) refuse(f fault, err error) {
	c.x.fault, c.x.err = f, err
	c.release()
}

// release gives the seats back. The caller holds the lock, or is alone.
func (c *call) release() {
	if c.released {
		return
	}
	c.released = true
	c.x.owner.release()
}

// rewrite makes the upstream's request of the caller's.
func (u *upstream) rewrite(p *httputil.ProxyRequest) {
	in, out := p.In, p.Out
	out.URL.Scheme, out.URL.Host, out.URL.User = u.scheme, u.host, nil
	// httputil has dropped the parameters that Go would not parse; the
	// upstream gets the query byte for byte, as it was priced.
	out.URL.RawQuery = in.URL.RawQuery
	if u.query != "" {
		out.URL.RawQuery = u.query
		if in.URL.RawQuery != "" {
			out.URL.RawQuery += "&" + in.URL.RawQuery
		}
	}
	if u.path != "" {
		if in.URL.RawPath != "" || u.rawPath != u.path {
			out.URL.RawPath = u.rawPath + in.URL.EscapedPath()
			if in.URL.RawPath != "" {
				out.URL.RawPath = u.rawPath + in.URL.RawPath
			}
		}
		out.URL.Path = u.path + in.URL.Path
	}
	// RawPath is the path's own spelling where it is not Go's, which escapes
	// more ("{", "|", bytes above 127). Opaque is the only way past that. It
	// cannot begin with "//", there Go's spelling has to do.
	if raw := out.URL.RawPath; raw != "" && raw[0] == '/' && !strings.HasPrefix(raw, "//") && raw != out.URL.EscapedPath() {
		out.URL.Opaque = raw
	}
	out.Host = in.Host
	if !u.keepHost {
		out.Host = u.host
	}
	// net/http fills this map at the end of the body; a clone would stay empty.
	out.Trailer = in.Trailer
	callOf(in).forwarded(out.Header, in)
}

// answered takes the upstream's final header: httputil's ModifyResponse.
func answered(res *http.Response) error {
	c := callOf(res.Request)
	if res.StatusCode < 100 || res.StatusCode > 999 {
		return errStatus
	}
	upgrade := res.StatusCode == http.StatusSwitchingProtocols
	if upgrade && !sameUpgrade(res) {
		return errUpgrade
	}
	c.mu.Lock()
	if c.x.fault != faultNone { // the deadline was first: an answer is passed on or replaced, never both
		c.mu.Unlock()
		return c.x.err
	}
	now := clock()
	c.answered = true
	c.moved = now
	c.x.status = res.StatusCode
	c.x.waited = now - c.asked
	unread := c.up.body != nil && !c.up.done
	c.mu.Unlock()

	h := c.w.Header()
	if !upgrade {
		// Moved rather than copied, which would allocate for every value, and
		// before the owner adds to it, so that nothing is put into two maps.
		maps.Copy(h, res.Header)
		res.Header = h
	}
	c.x.owner.answered(res)
	c.x.sent = true

	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case upgrade:
		conn, ok := res.Body.(io.ReadWriteCloser)
		if !ok {
			c.x.sent = false
			return errUpgrade
		}
		res.Body = &tunnel{c: c, conn: conn}
		c.openStream()
		c.streams().upgrades.Add(1)
		return nil // httputil writes this header itself
	case res.Body == http.NoBody:
		c.down.ended = true
		c.release()
	default:
		c.down.c, c.down.body, c.down.sized = c, res.Body, res.ContentLength >= 0
		res.Body = &c.down
		if isStream(res.Header) {
			c.openStream()
		}
	}
	res.Header = nil // it is the caller's already
	if unread && c.proto1 {
		h["Connection"] = []string{"close"}
	}
	return nil
}

// sameUpgrade says whether a 101 is to the protocol that was asked for.
func sameUpgrade(res *http.Response) bool {
	got := res.Header.Get("Upgrade")
	return got != "" && strings.EqualFold(got, res.Request.Header.Get("Upgrade"))
}

// openStream gives the seats back to an exchange that may last for hours. The
// lock is held.
func (c *call) openStream() {
	c.stream = true
	c.streams().open.Add(1)
	c.release()
	c.alarm.t.Reset(c.next(c.moved))
}

// failed takes what prevented an answer: httputil's ErrorHandler.
func failed(_ http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.x.fault != faultNone {
		return
	}
	c.x.err = err
	switch {
	case errors.Is(c.up.err, errBody):
		c.x.fault, c.x.err = faultBody, errBody
	case c.up.err != nil, c.Err() != nil:
		c.x.fault = faultGone
	case c.x.sent:
		c.x.fault = faultBroken
	default:
		c.x.fault = faultUnreachable
	}
}

// finish ends everything that the call began, whatever way it ended.
func (c *call) finish() {
	c.mu.Lock()
	c.over = true
	c.alarm.stop(&c.u.alarms)
	if c.x.sent && c.x.fault == faultNone && c.x.status != http.StatusSwitchingProtocols {
		c.x.fault, c.x.err = c.broke()
	}
	unread := c.up.body != nil && !c.up.done
	if unread && c.proto1 && !c.x.sent {
		c.w.Header().Set("Connection", "close")
	}
	c.changed.Broadcast()
	c.mu.Unlock()

	// Closing is what tells the upstream; only then is its work over.
	c.cancel(errOver)
	if unread {
		c.up.letGo()
	}
	c.down.end()

	c.mu.Lock()
	defer c.mu.Unlock()
	c.x.upBytes = c.up.bytes
	c.release()
	if c.stream {
		c.streams().open.Add(-1)
		if c.x.status == http.StatusSwitchingProtocols {
			c.streams().upgrades.Add(-1)
		}
	}
}

// broke says what an answer whose header went out ended with. The lock is held.
func (c *call) broke() (fault, error) {
	switch {
	case c.down.ended && c.down.copied:
		return faultNone, nil
	case c.Err() != nil:
		return faultGone, errLeft
	case c.down.err != nil:
		return faultBroken, c.down.err
	default: // nothing wrong with what was read, so it could not be written
		return faultGone, errLeft
	}
}

// isGRPC says whether a message is gRPC of any encoding.
func isGRPC(h http.Header) bool { return hasType(h, "application/grpc") }

// isStream says whether an answer may go on for hours at no cost to the
// upstream.
func isStream(h http.Header) bool {
	return isGRPC(h) || hasType(h, "text/event-stream") || hasType(h, "multipart/x-mixed-replace")
}

func hasType(h http.Header, prefix string) bool {
	ct := h["Content-Type"]
	return len(ct) > 0 && len(ct[0]) >= len(prefix) && strings.EqualFold(ct[0][:len(prefix)], prefix)
}
