package proxy

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	defaultHeader     = 64 << 10
	defaultHeaderWait = 10 * time.Second
	defaultKeepAlive  = 2 * time.Minute

	// serverConn and serverStream bound what one HTTP/2 connection, and one
	// request of it, may send before it is read. A request that waits for its
	// seat must not stop the others of its connection, so the first is the
	// most that net/http allows.
	serverConn   = 4<<20 - 1
	serverStream = 256 << 10
)

// NewServer makes the server for h: HTTP/1.1 and HTTP/2, the latter over TLS
// and, with prior knowledge, in the clear (h2c). A nil tlsConfig serves without
// TLS. The caller sets BaseContext, whose end cancels what is under way, and
// ErrorLog, and should serve on a listener from [Guard].
func NewServer(h http.Handler, l LimitsConfig, tlsConfig *tls.Config) *http.Server {
	s := &http.Server{
		Handler:           h,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: orDefault(l.HeaderWait, defaultHeaderWait),
		IdleTimeout:       orDefault(l.Idle, defaultKeepAlive),
		MaxHeaderBytes:    int(orDefault(l.Header, defaultHeader)),
		Protocols:         new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: serverConn,
			MaxReceiveBufferPerStream:     serverStream,
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// Guard wraps a listener so that a client which takes nothing for idle loses
// its connection. It is the only bound on the last bytes of a small answer,
// which net/http writes after its handler has returned. 0 is the default of
// stream.idle.
func Guard(l net.Listener, idle time.Duration) net.Listener {
	// A second more, so that an exchange that is watched ends by its own clock.
	return &guardedListener{Listener: l, idle: orDefault(idle, defaultIdle) + time.Second}
}

type guardedListener struct {
	net.Listener
	idle time.Duration
}

func (l *guardedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &guardedConn{Conn: conn, idle: l.idle}, nil
}

// guardedConn gives every write a deadline.
type guardedConn struct {
	net.Conn
	idle time.Duration
	set  atomic.Int64 // when the deadline was last moved, by clock
}

// Write moves the deadline at most once a second: that is exact enough for a
// minute, and makes a small write no dearer.
func (c *guardedConn) Write(p []byte) (int, error) {
	now, set := int64(clock()), c.set.Load()
	if set == 0 || now-set > int64(min(time.Second, c.idle/2)) {
		c.set.Store(now)
		if err := c.SetWriteDeadline(time.Now().Add(c.idle)); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// CloseWrite half-closes the connection, for upgraded ones.
func (c *guardedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
