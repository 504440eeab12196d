package redistest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Slow passes connections on to a server and can delay what they carry.
type Slow struct {
	Address string
	delay   atomic.Int64
	mu      sync.Mutex
	open    map[net.Conn]bool
}

// NewSlow listens in front of an address, until the test ends.
func NewSlow(tb testing.TB, address string) *Slow {
	tb.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Slow{Address: l.Addr().String(), open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			s.keep(client, server)
			all.Go(func() { s.carry(server, client, true) })
			all.Go(func() { s.carry(client, server, false) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for c := range s.open {
			_ = c.Close()
		}
		s.mu.Unlock()
		all.Wait()
	})
	return s
}

// Delay makes everything that is sent to the server from now on come later.
func (s *Slow) Delay(by time.Duration) { s.delay.Store(int64(by)) }

func (s *Slow) keep(conns ...net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		s.open[c] = true
	}
}

func (s *Slow) carry(to, from net.Conn, delayed bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if delayed {
				time.Sleep(time.Duration(s.delay.Load()))
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
