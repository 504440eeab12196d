package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/geoproxy/geoproxy/jobs"
)

// Store is a [jobs.Store].
type Store struct {
	dialect
	db      *sql.DB
	blobs   blobs
	pending chan *pending   // submissions that wait for a transaction
	stop    context.Context //nolint:containedctx // it is the store's own
	cancel  context.CancelFunc
	done    chan struct{}
	later   sync.WaitGroup // a migration that has to wait for its server

	// workerSeen is how long a worker's slots count after its last beat.
	workerSeen time.Duration
}

var _ jobs.Store = (*Store)(nil)

// OpenSQLite opens the store of one process, in a folder that it makes where
// there is none. What the process's predecessor was running is accepted again
// at once.
func OpenSQLite(ctx context.Context, dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files, err := newFiles(filepath.Join(dir, "blobs"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "jobs.db")
	// Made first, so that nobody else may read it.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the operator names the folder
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: url.Values{
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(2000)", "locking_mode(EXCLUSIVE)", "journal_mode(WAL)", "synchronous(FULL)", "secure_delete(ON)"},
	}.Encode()}).String()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // it holds the file's lock
	s := &Store{dialect: sqlite, db: db, blobs: files}
	if err := s.open(ctx); err != nil {
		if strings.Contains(err.Error(), "locked") {
			err = fmt.Errorf("another process has it: a shared store needs Postgres: %w", err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Nobody else can be running anything, and no file is being written.
	if _, err := s.reap(ctx, true); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// OpenPostgres opens a store that replicas share: a URL or a DSN as libpq has
// them. A server that cannot be reached yet is no reason to fail: until it can
// be, every call of the store fails. One that refuses us is.
func OpenPostgres(ctx context.Context, dsn string) (*Store, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, errors.New("the store's URL cannot be read") // the error would quote it, with its password
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(8)
	db.SetConnMaxIdleTime(5 * time.Minute)
	s := &Store{dialect: postgres, db: db}
	s.blobs = &chunks{s}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("the store: %w", err)
	}
	return s, nil
}

// mayComeUp says whether a server that did not let us in may do so later: it is
// away, starting, or has no place left. Otherwise it knows no such user or
// database, and will not.
func mayComeUp(err error) bool {
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting {
		return false
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || strings.HasPrefix(said.Code, "57") || strings.HasPrefix(said.Code, "53")
}

// migrateLater makes the schema as soon as the server can be reached.
func (s *Store) migrateLater() {
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		ctx, cancel := context.WithTimeout(s.stop, time.Minute)
		err := s.migrate(ctx)
		cancel()
		if err == nil || s.stop.Err() != nil {
			return
		}
		select {
		case <-retry.C:
		case <-s.stop.Done():
			return
		}
	}
}

func (s *Store) open(ctx context.Context) error {
	s.workerSeen = 15 * time.Second
	err := s.migrate(ctx)
	if err != nil && !mayComeUp(err) {
		_ = s.db.Close()
		return err
	}
	s.pending = make(chan *pending, 256)
	s.stop, s.cancel = context.WithCancel(context.Background())
	s.done = make(chan struct{})
	go s.submitter()
	if err != nil {
		s.later.Go(s.migrateLater)
	}
	return nil
}

// Close lets go of the database. What is under way fails.
func (s *Store) Close() error {
	s.cancel()
	<-s.done
	s.later.Wait()
	return s.db.Close()
}

// Healthy implements [jobs.Store].
func (s *Store) Healthy(ctx context.Context) error {
	var one int
	return s.db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
}

// inTx runs f in a transaction, which it commits where f succeeds.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return err
	}
	return tx.Commit()
}

// columns are those of a job, in the order in which scan reads them.
const columns = `id, queue, tenant, owner, state, attempt, max_attempts, fence, est_ms, timeout_ms, keep_ms, info, request, body,
 created, not_before, COALESCE(started, 0), COALESCE(finished, 0), COALESCE(expires, 0), reason, error, answer, COALESCE(result, ''), size, gone, {now}`

func scan(row interface{ Scan(...any) error }) (*jobs.Job, error) {
	var j jobs.Job
	var est, timeout, keep int64
	var info string
	var created, notBefore, started, finished, expires, now int64
	var gone int
	err := row.Scan(&j.ID, &j.Queue, &j.Tenant, &j.Owner, &j.State, &j.Attempt, &j.MaxAttempts, &j.Fence, &est, &timeout, &keep,
		&info, &j.Request, &j.Body, &created, &notBefore, &started, &finished, &expires, &j.Reason, &j.Error, &j.Answer, &j.Result, &j.Size, &gone, &now)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, jobs.ErrUnknown
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal([]byte(info), &j.Info); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	j.Estimate, j.Timeout, j.Keep = millis(est), millis(timeout), millis(keep)
	j.Gone = gone != 0
	for at, ms := range map[*time.Time]int64{
		&j.Created: created, &j.NotBefore: notBefore, &j.Started: started, &j.Finished: finished, &j.Expires: expires, &j.Now: now,
	} {
		if ms != 0 {
			*at = time.UnixMilli(ms).UTC()
		}
	}
	return &j, nil
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// query reads a list of jobs.
func (s *Store) query(ctx context.Context, statement string, args ...any) ([]*jobs.Job, error) {
	rows, err := s.db.QueryContext(ctx, s.text(statement), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	var list []*jobs.Job
	for rows.Next() {
		j, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, j)
	}
	return list, rows.Err()
}

// names makes the one argument that stands for a list.
func names[T ~string](list []T) string {
	text, err := json.Marshal(list)
	if err != nil {
		return "[]" // strings can always be written
	}
	return string(text)
}
