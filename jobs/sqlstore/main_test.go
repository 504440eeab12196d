package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/geoproxy/geoproxy/jobs/sqlstore"
)

func TestMain(m *testing.M) {
	if code, done := runAsWorker(); done {
		os.Exit(code)
	}
	code := m.Run()
	server.stop()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// server is a Postgres of the tests' own, started when the first of them asks.
var server postgresServer

type postgresServer struct {
	once sync.Once
	dir  string
	port int
	user *syscall.Credential
	err  error

	mu sync.Mutex
	n  int
}

// dsn gives a fresh database.
func (p *postgresServer) dsn(tb testing.TB) string {
	tb.Helper()
	p.once.Do(func() { p.err = p.start() })
	if p.err != nil {
		if os.Getenv("CI") == "true" || !errors.Is(p.err, exec.ErrNotFound) {
			tb.Fatalf("starting Postgres: %v", p.err)
		}
		tb.Skip("no Postgres on this machine; CI=true makes that a failure")
	}
	p.mu.Lock()
	p.n++
	name := fmt.Sprintf("jobs%d", p.n)
	p.mu.Unlock()
	out, err := p.command("psql", "-h", p.dir, "-p", strconv.Itoa(p.port), "-U", "postgres", "-qc", "CREATE DATABASE "+name).CombinedOutput()
	if err != nil {
		tb.Fatalf("creating a database: %v\n%s", err, out)
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s", p.port, name)
}

// start makes and starts a cluster, as an unprivileged user where the tests run
// as root: Postgres refuses to be root.
func (p *postgresServer) start() error {
	if _, err := find("initdb"); err != nil {
		return err
	}
	var err error
	if p.dir, err = os.MkdirTemp("", "geoproxy-pg-"); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		for _, name := range []string{"postgres", "nobody"} {
			u, err := user.Lookup(name)
			if err != nil {
				continue
			}
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			p.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			if err := os.Chown(p.dir, uid, gid); err != nil {
				return err
			}
			break
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	data := filepath.Join(p.dir, "data")
	if out, err := p.command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-locale", "-E", "UTF8").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	options := fmt.Sprintf("-p %d -k %s -c listen_addresses=127.0.0.1 -c max_connections=200 -c shared_buffers=64MB", p.port, p.dir)
	if out, err := p.command("pg_ctl", "-D", data, "-w", "-l", filepath.Join(p.dir, "log"), "-o", options, "start").CombinedOutput(); err != nil {
		return fmt.Errorf("pg_ctl: %w\n%s", err, out)
	}
	return nil
}

func (p *postgresServer) stop() {
	if p.dir == "" {
		return
	}
	_ = p.command("pg_ctl", "-D", filepath.Join(p.dir, "data"), "-m", "immediate", "stop").Run()
	_ = os.RemoveAll(p.dir)
}

func (p *postgresServer) command(name string, args ...string) *exec.Cmd {
	path, err := find(name)
	if err != nil {
		path = name
	}
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Dir = p.dir
	if p.user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.user}
	}
	return cmd
}

// find looks for a program of Postgres where Debian has it, and then in PATH.
func find(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return found[len(found)-1], nil
	}
	return exec.LookPath(name)
}

// engines are the stores that each test of the suite runs over.
func engines(t *testing.T, f func(t *testing.T, open func(*testing.T) *sqlstore.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		dir := t.TempDir()
		f(t, func(t *testing.T) *sqlstore.Store {
			t.Helper()
			s, err := sqlstore.OpenSQLite(t.Context(), dir)
			return opened(t, s, err)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := server.dsn(t)
		f(t, func(t *testing.T) *sqlstore.Store {
			t.Helper()
			s, err := sqlstore.OpenPostgres(t.Context(), dsn)
			return opened(t, s, err)
		})
	})
}

func opened(t *testing.T, s *sqlstore.Store, err error) *sqlstore.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
