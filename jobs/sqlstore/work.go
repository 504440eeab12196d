package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// Ready implements [jobs.Store].
func (s *Store) Ready(ctx context.Context) ([]string, error) {
	return s.strings(ctx, `SELECT DISTINCT queue FROM geoproxy_job WHERE state = 'accepted' AND not_before <= {now}`)
}

func (s *Store) strings(ctx context.Context, statement string, args ...any) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, s.text(statement), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	var list []string
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Claim implements [jobs.Store].
func (s *Store) Claim(ctx context.Context, worker, queue string, n int, lease time.Duration) ([]*jobs.Job, error) {
	list, err := s.query(ctx, `
WITH c AS {once} (
 SELECT id AS claimed FROM geoproxy_job WHERE queue = $1 AND state = 'accepted' AND not_before <= {now} AND attempt < max_attempts
 ORDER BY created, id LIMIT $2 {skip})
UPDATE geoproxy_job SET state = 'running', attempt = attempt + 1, fence = fence + 1,
 lease_owner = $3, lease_until = {now} + $4, started = {now}
 WHERE id IN (SELECT claimed FROM c) AND state = 'accepted' RETURNING `+columns,
		queue, n, worker, lease.Milliseconds())
	slices.SortFunc(list, func(a, b *jobs.Job) int { return a.Created.Compare(b.Created) })
	return list, err
}

// Beat implements [jobs.Store].
func (s *Store) Beat(ctx context.Context, worker string, lease time.Duration, keys []jobs.Key, slots map[string]int) ([]jobs.Key, error) {
	if len(slots) > 0 {
		if err := s.inTx(ctx, func(tx *sql.Tx) error { return s.noteSlots(ctx, tx, worker, slots) }); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = string(k.ID) + "." + strconv.FormatInt(k.Fence, 10)
	}
	rows, err := s.db.QueryContext(ctx, s.text(`UPDATE geoproxy_job SET lease_until = {now} + $3
 WHERE state = 'running' AND lease_owner = $2 AND id || '.' || fence IN ({list}) RETURNING id, fence`), names(list), worker, lease.Milliseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	var mine []jobs.Key
	for rows.Next() {
		var k jobs.Key
		if err := rows.Scan(&k.ID, &k.Fence); err != nil {
			return nil, err
		}
		mine = append(mine, k)
	}
	return mine, rows.Err()
}

func (s *Store) noteSlots(ctx context.Context, tx *sql.Tx, worker string, slots map[string]int) error {
	queues := make([]string, 0, len(slots))
	for queue := range slots {
		queues = append(queues, queue)
	}
	slices.Sort(queues)
	for _, queue := range queues {
		if _, err := tx.ExecContext(ctx, s.text(`INSERT INTO geoproxy_worker (worker, queue, slots, seen) VALUES ($1, $2, $3, {now})
 ON CONFLICT (worker, queue) DO UPDATE SET slots = excluded.slots, seen = excluded.seen`), worker, queue, slots[queue]); err != nil {
			return err
		}
	}
	return nil
}

// Finish implements [jobs.Store].
func (s *Store) Finish(ctx context.Context, k jobs.Key, e jobs.Ending) error {
	var result sql.Result
	var err error
	if e.State == jobs.Accepted {
		result, err = s.db.ExecContext(ctx, s.text(again), string(k.ID), k.Fence, e.Delay.Milliseconds(),
			number(e.Refund), number(e.HandBack), e.Reason, e.Error)
	} else {
		result, err = s.db.ExecContext(ctx, s.text(end), string(k.ID), k.Fence, string(e.State), e.Reason, e.Error, e.Answer, empty(e.Result), e.Size)
	}
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return s.readBack(ctx, k, e)
}

// again puts an attempt's job back, or fails it where it has no attempt left.
// An attempt that is given back was never sent; a hand-back counts.
const again = `UPDATE geoproxy_job SET
 state = CASE WHEN attempt < max_attempts OR $4 = 1 OR ($5 = 1 AND handbacks < 2) THEN 'accepted' ELSE 'failed' END,
 attempt = CASE WHEN $4 = 1 OR ($5 = 1 AND handbacks < 2) THEN attempt - 1 ELSE attempt END,
 handbacks = CASE WHEN $5 = 1 AND handbacks < 2 THEN handbacks + 1 ELSE handbacks END,
 not_before = {now} + $3, lease_owner = NULL, lease_until = NULL, reason = $6, error = $7,
 finished = CASE WHEN attempt < max_attempts OR $4 = 1 OR ($5 = 1 AND handbacks < 2) THEN NULL ELSE {now} END,
 expires = CASE WHEN attempt < max_attempts OR $4 = 1 OR ($5 = 1 AND handbacks < 2) THEN NULL ELSE {now} + keep_ms END,
 request = CASE WHEN attempt < max_attempts OR $4 = 1 OR ($5 = 1 AND handbacks < 2) THEN request ELSE NULL END
 WHERE id = $1 AND fence = $2 AND state = 'running'`

const end = `UPDATE geoproxy_job SET state = $3, lease_owner = NULL, lease_until = NULL, finished = {now}, expires = {now} + keep_ms,
 request = NULL, reason = $4, error = $5, answer = $6, result = $7, size = $8
 WHERE id = $1 AND fence = $2 AND state = 'running'`

// readBack tells an attempt that lost its job from one whose own commit
// succeeded and whose answer was lost: only that can have published its result.
func (s *Store) readBack(ctx context.Context, k jobs.Key, e jobs.Ending) error {
	if e.State != jobs.Successful {
		return jobs.ErrLost // whoever ended it, there is nothing to keep
	}
	var result string
	row := s.db.QueryRowContext(ctx, s.text(`SELECT COALESCE(result, '') FROM geoproxy_job WHERE id = $1 AND fence = $2 AND state = 'successful'`), string(k.ID), k.Fence)
	switch err := row.Scan(&result); {
	case errors.Is(err, sql.ErrNoRows):
		return jobs.ErrLost
	case err != nil:
		return err
	case result != e.Result:
		return jobs.ErrLost
	}
	return nil
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func empty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Reap implements [jobs.Store].
func (s *Store) Reap(ctx context.Context) (int, error) { return s.reap(ctx, false) }

// reap takes up jobs whose lease has run out, or all that run where their
// worker is known to be gone.
func (s *Store) reap(ctx context.Context, all bool) (int, error) {
	result, err := s.db.ExecContext(ctx, s.text(`
WITH c AS {once} (SELECT id AS lost FROM geoproxy_job WHERE state = 'running' AND (lease_until < {now} OR $1 = 1) {skip})
UPDATE geoproxy_job SET
 state = CASE WHEN attempt < max_attempts THEN 'accepted' ELSE 'failed' END,
 lease_owner = NULL, lease_until = NULL, not_before = {now},
 reason = CASE WHEN attempt < max_attempts THEN '' ELSE '`+jobs.ReasonLost+`' END,
 error = CASE WHEN attempt < max_attempts THEN '' ELSE 'the last attempt was lost with its worker' END,
 finished = CASE WHEN attempt < max_attempts THEN NULL ELSE {now} END,
 expires = CASE WHEN attempt < max_attempts THEN NULL ELSE {now} + keep_ms END,
 request = CASE WHEN attempt < max_attempts THEN request ELSE NULL END
 WHERE id IN (SELECT lost FROM c) AND state = 'running' AND (lease_until < {now} OR $1 = 1)`), number(all))
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	return int(n), err
}
