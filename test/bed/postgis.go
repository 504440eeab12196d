package bed

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed servers/data.sql
var dataSQL string

//go:embed servers/raster.py
var rasterPython string

// postgresSettings are for speed: what is lost in a crash is made again.
const postgresSettings = `
listen_addresses = ''
unix_socket_directories = '..'
max_connections = 100
shared_buffers = 256MB
maintenance_work_mem = 128MB
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_parallel_workers_per_gather = 0
jit = off
`

// open starts the database, and makes its data and the rasters where they are
// not there, whole, from an earlier run.
func (b *Bed) open(home string) error {
	sum := sha256.Sum256([]byte(dataSQL + rasterPython + postgresSettings))
	b.Data = filepath.Join(home, fmt.Sprintf("data-%x", sum[:6]))
	b.Socket = b.Data
	if err := os.RemoveAll(b.Run); err != nil {
		return err
	}
	if err := os.MkdirAll(b.Run, 0o711); err != nil {
		return err
	}
	complete := filepath.Join(b.Data, "complete")
	_, err := os.Stat(complete)
	if err == nil {
		return b.startPostgres()
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}

	stale, err := filepath.Glob(filepath.Join(home, "data-*"))
	if err != nil {
		return err
	}
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.Mkdir(b.Data, 0o711); err != nil {
		return err
	}
	rasters := exec.Command("/usr/bin/python3", "-", b.Data) // Debian's, which has its gdal
	rasters.Stdin = strings.NewReader(rasterPython)
	if out, err := rasters.CombinedOutput(); err != nil {
		return fmt.Errorf("rasters: %w\n%s", err, out)
	}
	if err := b.initPostgres(); err != nil {
		return err
	}
	if err := b.startPostgres(); err != nil {
		return err
	}
	if _, err := b.psql("postgres", "CREATE DATABASE bed"); err != nil {
		return err
	}
	if _, err := b.psql("bed", dataSQL); err != nil {
		return err
	}
	if _, err := b.psql("bed", "CHECKPOINT"); err != nil {
		return err
	}
	return os.WriteFile(complete, nil, 0o600)
}

func (b *Bed) cluster() string { return filepath.Join(b.Data, "pg") }

func (b *Bed) initPostgres() error {
	as, err := postgresUser()
	if err != nil {
		return err
	}
	if as != nil {
		if err := os.Chown(b.Data, int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	program, err := postgresProgram("initdb")
	if err != nil {
		return err
	}
	// Nobody but this user and the database's gets to the socket.
	initdb := exec.Command(program, "--pgdata", b.cluster(), "--username", "bed", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync", "--no-instructions")
	initdb.Dir = b.Data
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	settings, err := os.OpenFile(filepath.Join(b.cluster(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = settings.WriteString(postgresSettings)
	return errors.Join(err, settings.Close())
}

func (b *Bed) startPostgres() error {
	as, err := postgresUser()
	if err != nil {
		return err
	}
	program, err := postgresProgram("postgres")
	if err != nil {
		return err
	}
	if err := b.waitForFormerPostgres(); err != nil {
		return err
	}
	cmd := exec.Command(program, "-D", b.cluster())
	cmd.Dir = b.cluster()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	c, err := b.spawn("postgres", cmd, syscall.SIGQUIT) // "immediate": it waits for no client
	if err != nil {
		return err
	}
	return c.until("it takes queries", func() error {
		_, err := b.psql("postgres", "SELECT 1")
		return err
	})
}

// waitForFormerPostgres waits for the server of a run that was killed: it ends
// by itself, a moment after.
func (b *Bed) waitForFormerPostgres() error {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		file, err := os.ReadFile(filepath.Join(b.cluster(), "postmaster.pid"))
		if err != nil {
			return nil //nolint:nilerr // there is none
		}
		first, _, _ := strings.Cut(string(file), "\n")
		pid, err := strconv.Atoi(first)
		if err != nil {
			return fmt.Errorf("postmaster.pid: %w", err)
		}
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !bytes.Contains(command, []byte(b.cluster())) {
			return nil //nolint:nilerr // it has ended
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the database of an earlier run does not end")
}

// Query runs SQL in the bed's database and gives what it printed, columns
// separated by "|".
func (b *Bed) Query(ctx context.Context, sql string) (string, error) {
	out, err := b.psqlCommand(ctx, "bed", sql).Output()
	return strings.TrimSpace(string(out)), err
}

func (b *Bed) psql(database, sql string) (string, error) {
	out, err := b.psqlCommand(context.Background(), database, sql).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("psql: %w\n%s", err, out)
	}
	return string(out), nil
}

func (b *Bed) psqlCommand(ctx context.Context, database, sql string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", b.Socket, "-U", "bed", "-d", database)
	cmd.Stdin = strings.NewReader(sql)
	return cmd
}

// postgresUser is whom the database runs as: it refuses to run as root.
func postgresUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // as whoever runs the test
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// postgresProgram finds one of the server's programs where Debian keeps them.
func postgresProgram(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("no %s below /usr/lib/postgresql", name)
	}
	return found[len(found)-1], nil
}
