package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// Cancel implements [jobs.Store].
func (s *Store) Cancel(ctx context.Context, id jobs.ID) (*jobs.Job, error) {
	j, err := scan(s.db.QueryRowContext(ctx, s.text(`UPDATE geoproxy_job SET state = 'dismissed', lease_owner = NULL, lease_until = NULL,
 finished = {now}, expires = {now} + keep_ms, request = NULL, reason = '', error = ''
 WHERE id = $1 AND state IN ('accepted','running') RETURNING `+columns), string(id)))
	if errors.Is(err, jobs.ErrUnknown) {
		return s.Get(ctx, id)
	}
	if err == nil && j.Body != "" {
		_ = s.DeleteBlob(ctx, j.Body) // Sweep finds it otherwise
	}
	return j, err
}

// Forget implements [jobs.Store].
func (s *Store) Forget(ctx context.Context, id jobs.ID) error {
	var fence int64
	row := s.db.QueryRowContext(ctx, s.text(`DELETE FROM geoproxy_job WHERE id = $1 AND finished IS NOT NULL RETURNING fence`), string(id))
	switch err := row.Scan(&fence); {
	case errors.Is(err, sql.ErrNoRows):
		return jobs.ErrUnknown
	case err != nil:
		return err
	}
	return s.DeleteBlob(ctx, blobOf(id, fence))
}

// Collected implements [jobs.Store].
func (s *Store) Collected(ctx context.Context, id jobs.ID) error {
	_, err := s.db.ExecContext(ctx, s.text(`UPDATE geoproxy_job SET collected = {now} WHERE id = $1 AND result IS NOT NULL AND collected IS NULL`), string(id))
	return err
}

// blobOf names the result of an attempt, so that no attempt can write over
// another's.
func blobOf(id jobs.ID, fence int64) string { return string(id) + "." + strconv.FormatInt(fence, 10) }

// sweepStep is how many jobs one statement of a sweep moves. In what it selects
// by, the time is in a SELECT of its own: Postgres asks its clock for every row
// otherwise, and uses no index.
const sweepStep = 500

// Sweep implements [jobs.Store].
func (s *Store) Sweep(ctx context.Context, maxStored map[string]int64, age time.Duration) (jobs.Swept, error) {
	var swept jobs.Swept
	result, err := s.db.ExecContext(ctx, s.text(`UPDATE geoproxy_job SET state = 'failed', reason = '`+jobs.ReasonQueueWait+`',
 error = 'not started within the time that results are kept', finished = {now}, expires = {now} + keep_ms, request = NULL
 WHERE state = 'accepted' AND attempt = 0 AND created + keep_ms < {now}`))
	if err != nil {
		return swept, err
	}
	if n, err := result.RowsAffected(); err == nil {
		swept.Overdue = int(n)
	}
	for more := true; more; {
		n, uncollected, err := s.takeAway(ctx, `SELECT id, fence, size, CASE WHEN collected IS NULL AND state = 'successful' THEN 1 ELSE 0 END FROM geoproxy_job
 WHERE finished IS NOT NULL AND gone = 0 AND expires < (SELECT {now}) ORDER BY expires LIMIT $1 {skip}`, sweepStep)
		if err != nil {
			return swept, err
		}
		swept.Expired += n
		swept.Uncollected += uncollected
		more = n == sweepStep
	}
	for more := true; more; {
		result, err := s.db.ExecContext(ctx, s.text(`DELETE FROM geoproxy_job WHERE id IN (
 SELECT id FROM geoproxy_job WHERE gone = 1 AND expires < (SELECT {now}) LIMIT $1 {skip})`), sweepStep)
		if err != nil {
			return swept, err
		}
		n, err := result.RowsAffected()
		more = err == nil && n == sweepStep
	}
	if err := s.evict(ctx, maxStored, &swept); err != nil {
		return swept, err
	}
	if _, err := s.db.ExecContext(ctx, s.text(`DELETE FROM geoproxy_worker WHERE seen < {now} - 3600000`)); err != nil {
		return swept, err
	}
	swept.Orphans, err = s.orphans(ctx, age)
	return swept, err
}

// FailUnserved implements [jobs.Store].
func (s *Store) FailUnserved(ctx context.Context, silent time.Duration) (int, error) {
	result, err := s.db.ExecContext(ctx, s.text(`UPDATE geoproxy_job SET state = 'failed', reason = '`+jobs.ReasonNoRoute+`',
 error = 'its route is gone', finished = {now}, expires = {now} + keep_ms, request = NULL
 WHERE state = 'accepted' AND created < {now} - $1
 AND NOT EXISTS (SELECT 1 FROM geoproxy_worker w WHERE w.queue = geoproxy_job.queue AND w.seen > {now} - $1)`), silent.Milliseconds())
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}

// takeAway takes the results of the selected jobs away, rows first: what has no
// row that names it is deleted sooner or later. The rows themselves stay for as
// long again, so that who comes late is told.
func (s *Store) takeAway(ctx context.Context, selection string, args ...any) (taken, uncollected int, err error) {
	var blobs []string
	err = s.inTx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, s.text(selection), args...)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // closed below where nothing failed before
		var ids []jobs.ID
		for rows.Next() {
			var id jobs.ID
			var fence, size int64
			var missed int
			if err := rows.Scan(&id, &fence, &size, &missed); err != nil {
				return err
			}
			ids = append(ids, id)
			blobs = append(blobs, blobOf(id, fence))
			uncollected += missed
		}
		if err := errors.Join(rows.Close(), rows.Err()); err != nil {
			return err
		}
		taken = len(ids)
		if taken == 0 {
			return nil
		}
		_, err = tx.ExecContext(ctx, s.text(`UPDATE geoproxy_job SET gone = 1, result = NULL, answer = NULL, size = 0, expires = {now} + keep_ms WHERE id IN ({list})`), names(ids))
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	for _, name := range blobs {
		if err := s.DeleteBlob(ctx, name); err != nil {
			return taken, uncollected, err
		}
	}
	return taken, uncollected, nil
}

// evict makes room in queues that hold more than they may: what was collected
// goes, oldest first, and nothing else.
func (s *Store) evict(ctx context.Context, maxStored map[string]int64, swept *jobs.Swept) error {
	stored, err := s.stored(ctx)
	if err != nil {
		return err
	}
	for queue, most := range maxStored {
		for stored[queue] > most {
			n, _, err := s.takeAway(ctx, `SELECT id, fence, size, 0 FROM geoproxy_job
 WHERE queue = $1 AND result IS NOT NULL AND collected IS NOT NULL ORDER BY finished LIMIT 10 {skip}`, queue)
			if err != nil {
				return err
			}
			swept.Evicted += n
			if n == 0 {
				break
			}
			if stored, err = s.stored(ctx); err != nil {
				return err
			}
		}
	}
	swept.Stored = stored
	return nil
}

func (s *Store) stored(ctx context.Context) (map[string]int64, error) {
	rows, err := s.db.QueryContext(ctx, s.text(`SELECT queue, CAST(sum(size) AS BIGINT) FROM geoproxy_job WHERE result IS NOT NULL GROUP BY queue`))
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	stored := make(map[string]int64)
	for rows.Next() {
		var queue string
		var size int64
		if err := rows.Scan(&queue, &size); err != nil {
			return nil, err
		}
		stored[queue] = size
	}
	return stored, rows.Err()
}

// orphans deletes the blobs that nothing refers to: what killed attempts and
// submissions left.
func (s *Store) orphans(ctx context.Context, age time.Duration) (int, error) {
	list, err := s.blobs.list(ctx, age)
	if err != nil {
		return 0, err
	}
	deleted := 0
	for len(list) > 0 {
		some := list[:min(len(list), sweepStep)]
		list = list[len(some):]
		ids := make([]jobs.ID, len(some))
		for i, name := range some {
			id, _, _ := strings.Cut(name, ".")
			ids[i] = jobs.ID(id)
		}
		// A blob is in use as the result of a job, as the body of one that has
		// not ended, or while its attempt runs.
		used, err := s.strings(ctx, `SELECT id || '.' || fence FROM geoproxy_job WHERE id IN ({list}) AND (result IS NOT NULL OR state = 'running')
 UNION ALL SELECT body FROM geoproxy_job WHERE id IN ({list}) AND finished IS NULL AND body <> ''`, names(ids))
		if err != nil {
			return deleted, err
		}
		keep := make(map[string]bool, len(used))
		for _, name := range used {
			keep[name] = true
		}
		for _, name := range some {
			if keep[name] {
				continue
			}
			if err := s.DeleteBlob(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return deleted, err
			}
			deleted++
		}
	}
	return deleted, nil
}
