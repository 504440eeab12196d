// Package redistest starts a real Redis for a test, and does to it what
// happens to one: it is stopped, paused, restarted without its memory, slow.
package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Server is a redis-server of a test's own. It keeps nothing on disk.
type Server struct {
	Address   string // host and port
	encrypted bool
	process   *exec.Cmd
	args      []string // the program first
	log       *bytes.Buffer
}

// Start runs redis-server on a free port, with more arguments if there are
// any, and waits until it answers. It is stopped when the test ends.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	port := freePort(tb)
	args = append([]string{"--port", port, "--save", "", "--appendonly", "no", "--dir", tb.TempDir()}, args...)
	return run(tb, port, false, args)
}

// StartTLS is Start of a server that speaks only TLS, with the certificate and
// key of two files.
func StartTLS(tb testing.TB, cert, key string) *Server {
	tb.Helper()
	port := freePort(tb)
	return run(tb, port, true, []string{
		"--port", "0", "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-auth-clients", "no", "--tls-ca-cert-file", cert, "--save", "", "--dir", tb.TempDir(),
	})
}

// StartSentinel runs a Sentinel with a config file, which it writes to.
func StartSentinel(tb testing.TB, config string) *Server {
	tb.Helper()
	port := freePort(tb)
	return run(tb, port, false, []string{config, "--port", port, "--sentinel"})
}

func freePort(tb testing.TB) string {
	tb.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func run(tb testing.TB, port string, encrypted bool, args []string) *Server {
	tb.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		tb.Fatalf("%v: run `make setup`", err)
	}
	s := &Server{Address: net.JoinHostPort("127.0.0.1", port), encrypted: encrypted}
	s.args = append(append([]string{binary}, args...), "--bind", "127.0.0.1")
	if args[len(args)-1] == "--sentinel" {
		s.args = append([]string{binary}, args...) // the last argument has to be that
	}
	tb.Cleanup(s.kill)
	s.Restart(tb)
	return s
}

// URL is the server's address as geoproxy takes it.
func (s *Server) URL() string { return "redis://" + s.Address + "/0" }

// Restart starts the server after Stop, empty.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.log = &bytes.Buffer{}
	s.process = exec.Command(s.args[0], s.args[1:]...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		tb.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); !s.answers(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.kill()
			tb.Fatalf("redis-server does not answer:\n%s", s.log)
		}
	}
}

// Stop ends the server at once, and with it what it knew.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.kill()
}

func (s *Server) kill() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill() // it may have ended
		_ = s.process.Wait()
		s.process = nil
	}
}

// Pause stops the server from running; connections to it stay open.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.signal(tb, syscall.SIGSTOP)
}

// Resume ends Pause.
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.signal(tb, syscall.SIGCONT)
}

func (s *Server) signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		tb.Fatal(err)
	}
}

// answers pings the server by hand.
func (s *Server) answers() bool {
	conn, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if s.encrypted {
		return true // who listens has read its certificate
	}
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := fmt.Fprint(conn, "PING\r\n"); err != nil {
		return false
	}
	answer := make([]byte, 7)
	n, _ := conn.Read(answer)
	return string(answer[:n]) == "+PONG\r\n"
}
