package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// migrations are the steps of the schema, each run once, in order. What has
// been released is never changed: a new step is added.
var migrations = []string{`
CREATE TABLE geoproxy_job (
 id TEXT PRIMARY KEY,
 queue TEXT NOT NULL,
 tenant TEXT NOT NULL,
 owner TEXT NOT NULL,
 idem_key TEXT,
 idem_sum TEXT,
 state TEXT NOT NULL CHECK (state IN ('accepted','running','successful','failed','dismissed')),
 attempt INTEGER NOT NULL DEFAULT 0,
 max_attempts INTEGER NOT NULL,
 handbacks INTEGER NOT NULL DEFAULT 0 CHECK (handbacks <= 2),
 fence BIGINT NOT NULL DEFAULT 0,
 lease_owner TEXT,
 lease_until BIGINT,
 est_ms BIGINT NOT NULL,
 timeout_ms BIGINT NOT NULL,
 keep_ms BIGINT NOT NULL,
 info TEXT NOT NULL,
 request {bytes},
 body TEXT NOT NULL,
 created BIGINT NOT NULL,
 not_before BIGINT NOT NULL,
 started BIGINT,
 finished BIGINT,
 expires BIGINT,
 reason TEXT NOT NULL DEFAULT '',
 error TEXT NOT NULL DEFAULT '',
 answer {bytes},
 result TEXT,
 size BIGINT NOT NULL DEFAULT 0,
 collected BIGINT,
 gone INTEGER NOT NULL DEFAULT 0,
 CHECK (attempt BETWEEN 0 AND max_attempts),
 CHECK ((state = 'running') = (lease_owner IS NOT NULL)),
 CHECK ((lease_owner IS NULL) = (lease_until IS NULL)),
 CHECK ((state IN ('successful','failed','dismissed')) = (finished IS NOT NULL)),
 CHECK ((finished IS NULL) = (expires IS NULL)),
 CHECK ((state = 'successful' AND gone = 0) = (result IS NOT NULL)),
 CHECK (result IS NULL OR result = id || '.' || fence),
 CHECK ((finished IS NULL) = (request IS NOT NULL))
) {fill};
CREATE UNIQUE INDEX geoproxy_job_idem ON geoproxy_job (queue, idem_key) WHERE idem_key IS NOT NULL;
CREATE INDEX geoproxy_job_ready ON geoproxy_job (queue, created, id) WHERE state = 'accepted';
CREATE INDEX geoproxy_job_live ON geoproxy_job (queue, tenant) WHERE state IN ('accepted','running');
CREATE INDEX geoproxy_job_running ON geoproxy_job (queue) WHERE state = 'running';
CREATE INDEX geoproxy_job_owner ON geoproxy_job (owner, created, id) WHERE owner <> '';
CREATE INDEX geoproxy_job_expires ON geoproxy_job (expires) WHERE finished IS NOT NULL AND gone = 0;
CREATE INDEX geoproxy_job_gone ON geoproxy_job (expires) WHERE gone = 1;
CREATE INDEX geoproxy_job_stored ON geoproxy_job (queue, size) WHERE result IS NOT NULL;
CREATE INDEX geoproxy_job_collected ON geoproxy_job (queue, finished) WHERE result IS NOT NULL AND collected IS NOT NULL;
CREATE TABLE geoproxy_worker (
 worker TEXT NOT NULL,
 queue TEXT NOT NULL,
 slots INTEGER NOT NULL,
 seen BIGINT NOT NULL,
 PRIMARY KEY (worker, queue)
);
CREATE TABLE geoproxy_blob (
 name TEXT PRIMARY KEY,
 created BIGINT NOT NULL,
 size BIGINT
);
CREATE TABLE geoproxy_chunk (
 name TEXT NOT NULL REFERENCES geoproxy_blob (name) ON DELETE CASCADE,
 n BIGINT NOT NULL,
 data {bytes} NOT NULL,
 PRIMARY KEY (name, n)
);
`}

// migrate brings the schema up to date. Replicas that start together take
// turns; a schema from a later geoproxy is left alone and refused.
func (s *Store) migrate(ctx context.Context) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if s.lock != nil {
			if err := s.lock(ctx, tx, lockKey("schema")); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, s.text(`CREATE TABLE IF NOT EXISTS geoproxy_schema (step INTEGER PRIMARY KEY, at BIGINT NOT NULL)`)); err != nil {
			return err
		}
		var done int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM geoproxy_schema`).Scan(&done); err != nil {
			return err
		}
		if done > len(migrations) {
			return fmt.Errorf("the store's schema has %d steps and this geoproxy knows %d: it was made by a later one", done, len(migrations))
		}
		for i := done; i < len(migrations); i++ {
			for statement := range strings.SplitSeq(migrations[i], ";\n") {
				if strings.TrimSpace(statement) == "" {
					continue
				}
				if _, err := tx.ExecContext(ctx, s.text(statement)); err != nil {
					return fmt.Errorf("schema step %d: %w", i+1, err)
				}
			}
			if _, err := tx.ExecContext(ctx, s.text(`INSERT INTO geoproxy_schema (step, at) VALUES ($1, {now})`), i+1); err != nil {
				return err
			}
		}
		return nil
	})
}
