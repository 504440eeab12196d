package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// pending is a submission that waits for its transaction.
type pending struct {
	jobs.Submission
	info   string
	kept   *jobs.Job
	err    error
	result chan struct{} // closed when kept or err is there
}

const (
	// together is the most submissions that share a transaction.
	together = 64
	// submitTime bounds such a transaction, so that a lock somewhere cannot
	// hold up submissions for ever.
	submitTime = 5 * time.Second
)

// Submit implements [jobs.Store].
//
// Counting and inserting under one lock makes admission exact, and a commit is
// what costs time. So those that come while a transaction is under way share
// the next.
func (s *Store) Submit(ctx context.Context, sub jobs.Submission) (*jobs.Job, error) {
	info, err := json.Marshal(sub.Job.Info)
	if err != nil {
		return nil, err
	}
	p := &pending{Submission: sub, info: string(info), result: make(chan struct{})}
	select {
	case s.pending <- p:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.stop.Done():
		return nil, errClosed
	}
	select {
	case <-p.result:
		return p.kept, p.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errClosed = errors.New("the store is closed")

// submitter runs the transactions of submissions, one after the other.
func (s *Store) submitter() {
	defer close(s.done)
	for {
		var batch []*pending
		select {
		case p := <-s.pending:
			batch = append(batch, p)
		case <-s.stop.Done():
			for {
				select {
				case p := <-s.pending:
					p.err = errClosed
					close(p.result)
				default:
					return
				}
			}
		}
		for len(batch) < together {
			select {
			case p := <-s.pending:
				batch = append(batch, p)
				continue
			default:
			}
			break
		}
		s.submitAll(batch)
	}
}

func (s *Store) submitAll(batch []*pending) {
	ctx, cancel := context.WithTimeout(s.stop, submitTime)
	defer cancel()
	// Locks are taken in one order by everybody.
	slices.SortStableFunc(batch, func(a, b *pending) int { return cmp.Compare(a.Job.Queue, b.Job.Queue) })
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		for i := 0; i < len(batch); {
			queue, from := batch[i].Job.Queue, i
			for i < len(batch) && batch[i].Job.Queue == queue {
				i++
			}
			if err := s.submitQueue(ctx, tx, batch[from:i]); err != nil {
				return err
			}
		}
		return nil
	})
	for _, p := range batch {
		if err != nil && p.err == nil {
			p.kept, p.err = nil, err
		}
		close(p.result)
	}
}

// submitQueue admits and inserts the submissions of one queue.
func (s *Store) submitQueue(ctx context.Context, tx *sql.Tx, batch []*pending) error {
	queue := batch[0].Job.Queue
	if s.lock != nil {
		if err := s.lock(ctx, tx, lockKey("queue "+queue)); err != nil {
			return err
		}
	}
	load, err := s.load(ctx, tx, queue)
	if err != nil {
		return err
	}
	for _, p := range batch {
		if p.IdemKey != "" {
			if found, err := s.repeated(ctx, tx, p); found || err != nil {
				if err != nil {
					return err
				}
				continue
			}
		}
		now := load.of(p.Job.Tenant)
		if p.err = p.Limits.Admit(now, p.Job.Estimate); p.err != nil {
			continue
		}
		if p.kept, err = s.insert(ctx, tx, p); err != nil {
			return err
		}
		p.kept.Ahead = jobs.Ahead{Position: now.Queued + 1, Wait: now.Projected(0)}
		load.add(p.Job)
	}
	return nil
}

// repeated answers a submission whose idempotency key was used before.
func (s *Store) repeated(ctx context.Context, tx *sql.Tx, p *pending) (bool, error) {
	var sum string
	row := tx.QueryRowContext(ctx, s.text(`SELECT COALESCE(idem_sum, '') FROM geoproxy_job WHERE queue = $1 AND idem_key = $2`), p.Job.Queue, p.IdemKey)
	switch err := row.Scan(&sum); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case sum != p.IdemSum:
		p.err = jobs.ErrMismatch
		return true, nil
	}
	kept, err := scan(tx.QueryRowContext(ctx, s.text(`SELECT `+columns+` FROM geoproxy_job WHERE queue = $1 AND idem_key = $2`), p.Job.Queue, p.IdemKey))
	p.kept = kept
	return true, err
}

func (s *Store) insert(ctx context.Context, tx *sql.Tx, p *pending) (*jobs.Job, error) {
	j := p.Job
	nullable := func(v string) any {
		if v == "" {
			return nil
		}
		return v
	}
	row := tx.QueryRowContext(ctx, s.text(`INSERT INTO geoproxy_job
 (id, queue, tenant, owner, idem_key, idem_sum, state, max_attempts, est_ms, timeout_ms, keep_ms, info, request, body, created, not_before)
 VALUES ($1, $2, $3, $4, $5, $6, 'accepted', $7, $8, $9, $10, $11, $12, $13, {now}, {now})
 RETURNING `+columns),
		string(j.ID), j.Queue, j.Tenant, j.Owner, nullable(p.IdemKey), nullable(p.IdemSum), j.MaxAttempts,
		j.Estimate.Milliseconds(), j.Timeout.Milliseconds(), j.Keep.Milliseconds(), p.info, j.Request, j.Body)
	return scan(row)
}

// queueLoad is what a queue holds, by tenant.
type queueLoad struct {
	all    jobs.Load
	tenant map[string]int
}

func (l *queueLoad) of(tenant string) jobs.Load {
	load := l.all
	load.Mine, load.Tenants = l.tenant[tenant], len(l.tenant)
	if load.Mine == 0 {
		load.Tenants++
	}
	return load
}

func (l *queueLoad) add(j *jobs.Job) {
	l.all.Depth++
	l.all.Queued++
	l.all.Work += j.Estimate
	l.tenant[j.Tenant]++
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// load counts a queue: what is queued in full, and of what runs the rest.
func (s *Store) load(ctx context.Context, q querier, queue string) (*queueLoad, error) {
	rows, err := q.QueryContext(ctx, s.text(`
SELECT tenant, count(*), sum(CASE WHEN state = 'accepted' THEN 1 ELSE 0 END), sum(CASE WHEN state = 'accepted' THEN est_ms ELSE {greatest}(0, est_ms - ({now} - started)) END),
 (SELECT COALESCE(sum(slots), 0) FROM geoproxy_worker WHERE queue = $1 AND seen > {now} - $2)
 FROM geoproxy_job WHERE queue = $1 AND state IN ('accepted','running') GROUP BY tenant
UNION ALL
SELECT '', 0, 0, 0, (SELECT COALESCE(sum(slots), 0) FROM geoproxy_worker WHERE queue = $1 AND seen > {now} - $2)`),
		queue, s.workerSeen.Milliseconds())
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	l := &queueLoad{tenant: make(map[string]int)}
	for rows.Next() {
		var tenant string
		var n, queued, slots int
		var work float64 // Postgres sums to a numeric
		if err := rows.Scan(&tenant, &n, &queued, &work, &slots); err != nil {
			return nil, err
		}
		l.all.Slots = slots
		if n == 0 {
			continue
		}
		l.all.Depth += n
		l.all.Queued += queued
		l.all.Work += millis(int64(work))
		l.tenant[tenant] = n
	}
	return l, rows.Err()
}

// Load implements [jobs.Store].
func (s *Store) Load(ctx context.Context, queue, tenant string) (jobs.Load, error) {
	l, err := s.load(ctx, s.db, queue)
	if err != nil {
		return jobs.Load{}, err
	}
	return l.of(tenant), nil
}
