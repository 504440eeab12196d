package sqlstore

import (
	"context"
	"database/sql"
	"hash/fnv"
	"regexp"
	"strings"
)

// dialect is what differs between the databases: words in braces in the
// statements stand for it. Statements are written with Postgres's $1.
type dialect struct {
	name  string
	words *strings.Replacer
	// lock keeps others that ask for the same key out until tx ends. nil where
	// a transaction has the whole database to itself.
	lock func(ctx context.Context, tx *sql.Tx, key int64) error
}

var sqlite = dialect{
	name: "sqlite",
	words: strings.NewReplacer(
		"{now}", "CAST(unixepoch('subsec')*1000 AS INTEGER)",
		"{bytes}", "BLOB",
		"{skip}", "",
		"{once}", "",
		"{list}", "SELECT value FROM json_each($1)",
		"{greatest}", "max",
		"{fill}", "",
	),
}

var postgres = dialect{
	name: "postgres",
	words: strings.NewReplacer(
		"{now}", "(extract(epoch from clock_timestamp())*1000)::bigint",
		"{bytes}", "BYTEA",
		"{skip}", "FOR UPDATE SKIP LOCKED",
		// Without it the planner may run the inner query again for each row,
		// and lock more than was asked for.
		"{once}", "MATERIALIZED",
		"{list}", "SELECT jsonb_array_elements_text($1::jsonb)",
		"{greatest}", "greatest",
		// Room in each page keeps the renewed leases beside their old rows,
		// without touching an index.
		"{fill}", "WITH (fillfactor = 80)",
	),
	lock: func(ctx context.Context, tx *sql.Tx, key int64) error {
		_, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", key)
		return err
	},
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// text writes a statement in the database's own words.
func (d *dialect) text(statement string) string {
	statement = d.words.Replace(statement)
	if d.name == sqlite.name {
		return parameter.ReplaceAllString(statement, "?$1")
	}
	return statement
}

// lockKey is the number of an advisory lock.
func lockKey(name string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("geoproxy jobs " + name)) // never fails
	return int64(h.Sum64())                         //nolint:gosec // any 64 bits will do
}
