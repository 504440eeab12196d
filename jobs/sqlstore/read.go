package sqlstore

import (
	"context"
	"math"
	"strings"

	"github.com/geoproxy/geoproxy/jobs"
)

// Get implements [jobs.Store].
func (s *Store) Get(ctx context.Context, id jobs.ID) (*jobs.Job, error) {
	j, err := scan(s.db.QueryRowContext(ctx, s.text(`SELECT `+columns+` FROM geoproxy_job WHERE id = $1`), string(id)))
	if err != nil || j.State != jobs.Accepted {
		return j, err
	}
	var before, slots int
	var work float64 // Postgres sums to a numeric
	err = s.db.QueryRowContext(ctx, s.text(`
SELECT COALESCE(sum(CASE WHEN state = 'accepted' THEN 1 ELSE 0 END), 0),
 COALESCE(sum(CASE WHEN state = 'accepted' THEN est_ms ELSE {greatest}(0, est_ms - ({now} - started)) END), 0),
 (SELECT COALESCE(sum(slots), 0) FROM geoproxy_worker WHERE queue = $1 AND seen > {now} - $4)
 FROM geoproxy_job WHERE queue = $1 AND (state = 'running' OR (state = 'accepted' AND (created < $2 OR (created = $2 AND id < $3))))`),
		j.Queue, j.Created.UnixMilli(), string(id), s.workerSeen.Milliseconds()).Scan(&before, &work, &slots)
	j.Ahead = jobs.Ahead{Position: before + 1, Wait: jobs.Load{Work: millis(int64(work)), Slots: slots}.Projected(0)}
	return j, err
}

// List implements [jobs.Store].
func (s *Store) List(ctx context.Context, owner string, f jobs.Filter) ([]*jobs.Job, error) {
	created, id := int64(math.MaxInt64), ""
	if !f.After.Created.IsZero() {
		created, id = f.After.Created.UnixMilli(), string(f.After.ID)
	}
	return s.query(ctx, `SELECT `+strings.Replace(columns, " request,", " NULL,", 1)+` FROM geoproxy_job
 WHERE owner = $1 AND owner <> '' AND gone = 0 AND ($2 = '' OR state = $2) AND (created < $3 OR (created = $3 AND id < $4))
 ORDER BY created DESC, id DESC LIMIT $5`, owner, string(f.State), created, id, f.Limit)
}

// Marks implements [jobs.Store].
func (s *Store) Marks(ctx context.Context, ids []jobs.ID) (map[jobs.ID]string, error) {
	rows, err := s.db.QueryContext(ctx, s.text(`SELECT id, state, fence, gone FROM geoproxy_job WHERE id IN ({list})`), names(ids))
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	marks := make(map[jobs.ID]string, len(ids))
	for rows.Next() {
		var id jobs.ID
		var state jobs.State
		var fence, gone int64
		if err := rows.Scan(&id, &state, &fence, &gone); err != nil {
			return nil, err
		}
		marks[id] = jobs.Mark(state, fence, gone != 0)
	}
	return marks, rows.Err()
}

// Depths implements [jobs.Store].
func (s *Store) Depths(ctx context.Context) (map[string]int, error) {
	rows, err := s.db.QueryContext(ctx, s.text(`SELECT queue, count(*) FROM geoproxy_job WHERE state IN ('accepted','running') GROUP BY queue`))
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	depths := make(map[string]int)
	for rows.Next() {
		var queue string
		var n int
		if err := rows.Scan(&queue, &n); err != nil {
			return nil, err
		}
		depths[queue] = n
	}
	return depths, rows.Err()
}
