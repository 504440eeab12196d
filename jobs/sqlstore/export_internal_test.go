package sqlstore

import (
	"context"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// OnRemove has f called before each removal of a blob.
func (s *Store) OnRemove(f func(name string)) { s.blobs = removing{s.blobs, f} }

// Blobs names all blobs, whole or not.
func (s *Store) Blobs(ctx context.Context) ([]string, error) { return s.blobs.list(ctx, -time.Hour) }

type removing struct {
	blobs
	before func(string)
}

func (r removing) remove(ctx context.Context, name string) error {
	r.before(name)
	return r.blobs.remove(ctx, name)
}

// Fill puts n ended jobs into the store, half of them with results that are
// not there.
func (s *Store) Fill(ctx context.Context, n int) error {
	var series string
	if s.name == sqlite.name {
		series = `WITH RECURSIVE g(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM g WHERE i < $1) SELECT i FROM g`
	} else {
		series = `SELECT i FROM generate_series(1, $1) AS i`
	}
	_, err := s.db.ExecContext(ctx, s.text(`INSERT INTO geoproxy_job
 (id, queue, tenant, owner, state, attempt, max_attempts, fence, est_ms, timeout_ms, keep_ms, info, body, created, not_before, started, finished, expires, result, size)
 SELECT 'old-' || i, CASE WHEN i % 2 = 0 THEN 'q' ELSE 'other' END, 'a', 'owner-a', CASE WHEN i % 2 = 0 THEN 'successful' ELSE 'failed' END, 1, 3, 1, 1000, 1000, 86400000,
 '{"op":"items"}', '', {now} - i, {now} - i, {now}, {now}, {now} + 86400000, CASE WHEN i % 2 = 0 THEN 'old-' || i || '.1' ELSE NULL END, 1000
 FROM (`+series+`) AS s`), n)
	if err == nil && s.name == postgres.name {
		_, err = s.db.ExecContext(ctx, "VACUUM ANALYZE geoproxy_job")
	}
	return err
}

// Lapse ends the lease of a job, as time would.
func (s *Store) Lapse(ctx context.Context, id jobs.ID) error {
	_, err := s.db.ExecContext(ctx, s.text(`UPDATE geoproxy_job SET lease_until = 1 WHERE id = $1 AND state = 'running'`), string(id))
	return err
}
