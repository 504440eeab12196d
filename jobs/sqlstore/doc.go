// Package sqlstore keeps jobs in SQLite or in Postgres: one code path over
// database/sql, which differs in a handful of words (see dialect).
//
// SQLite is one file of one process, locked for it alone, every commit on disk
// before it counts; blobs are files beside it. Postgres is shared by any number
// of replicas; blobs are rows of 256 KiB in it. The schema is made and brought
// up to date when a store is opened, forward only, by one replica at a time.
//
// Times are milliseconds of the database's clock and are only compared there.
// The table's CHECKs are the last line of defence: what must never be is an
// error of the statement that would have made it so.
package sqlstore
