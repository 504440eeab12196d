package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

const (
	// chunkSize is that of a row: larger ones are no faster, smaller ones are
	// slower.
	chunkSize = 256 << 10
	// maxChunked bounds a blob in the database: each is written to its log and
	// copied to its replicas.
	maxChunked = 256 << 20
	// chunkTime bounds the writing of one row.
	chunkTime = 30 * time.Second
)

// chunks keeps blobs as rows, each in a transaction of its own: one for the
// whole of an upstream's answer would hold back the database's housekeeping for
// as long as that takes. A blob is whole where its size is set.
type chunks struct{ *Store }

func (c *chunks) create(ctx context.Context, name string) (jobs.BlobWriter, error) {
	if err := c.remove(ctx, name); err != nil {
		return nil, err
	}
	if _, err := c.db.ExecContext(ctx, c.text(`INSERT INTO geoproxy_blob (name, created) VALUES ($1, {now})`), name); err != nil {
		return nil, err
	}
	return &chunkWriter{ctx: ctx, c: c, name: name, buf: make([]byte, 0, chunkSize)}, nil
}

type chunkWriter struct {
	ctx  context.Context //nolint:containedctx // of the attempt that writes
	c    *chunks
	name string
	buf  []byte
	n    int64
	size int64
	done bool
}

func (w *chunkWriter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n := min(len(p), chunkSize-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p, written = p[n:], written+n
		if len(w.buf) == chunkSize {
			if err := w.flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

func (w *chunkWriter) flush() error {
	ctx, cancel := context.WithTimeout(w.ctx, chunkTime)
	defer cancel()
	if w.size += int64(len(w.buf)); w.size > maxChunked+(1<<20) {
		return errors.New("larger than a blob in the database may be")
	}
	_, err := w.c.db.ExecContext(ctx, w.c.text(`INSERT INTO geoproxy_chunk (name, n, data) VALUES ($1, $2, $3)`), w.name, w.n, w.buf)
	w.buf, w.n = w.buf[:0], w.n+1
	return err
}

// Commit writes the last row and then the size, which makes it whole.
func (w *chunkWriter) Commit() error {
	if len(w.buf) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(w.ctx, chunkTime)
	defer cancel()
	result, err := w.c.db.ExecContext(ctx, w.c.text(`UPDATE geoproxy_blob SET size = $2 WHERE name = $1`), w.name, w.size)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(fs.ErrNotExist, err)
	}
	w.done = true
	return nil
}

// Abort removes what was written.
func (w *chunkWriter) Abort() {
	if w.done {
		return
	}
	w.done = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), chunkTime)
	defer cancel()
	_ = w.c.remove(ctx, w.name) // Sweep finds it otherwise
}

func (c *chunks) open(ctx context.Context, name string) (jobs.Blob, error) {
	var size sql.NullInt64
	err := c.db.QueryRowContext(ctx, c.text(`SELECT size FROM geoproxy_blob WHERE name = $1`), name).Scan(&size)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !size.Valid:
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	}
	return &chunkBlob{ctx: ctx, c: c, name: name, size: size.Int64, at: -1}, nil
}

// chunkBlob keeps the row that was read last.
type chunkBlob struct {
	ctx  context.Context //nolint:containedctx // of whoever opened it
	c    *chunks
	name string
	size int64
	at   int64
	data []byte
}

func (b *chunkBlob) Size() int64  { return b.size }
func (b *chunkBlob) Close() error { return nil }

func (b *chunkBlob) ReadAt(p []byte, off int64) (int, error) {
	read := 0
	for len(p) > 0 {
		if off >= b.size {
			return read, io.EOF
		}
		if n := off / chunkSize; n != b.at {
			ctx, cancel := context.WithTimeout(b.ctx, chunkTime)
			err := b.c.db.QueryRowContext(ctx, b.c.text(`SELECT data FROM geoproxy_chunk WHERE name = $1 AND n = $2`), b.name, n).Scan(&b.data)
			cancel()
			if errors.Is(err, sql.ErrNoRows) {
				err = fs.ErrNotExist // taken away meanwhile
			}
			if err != nil {
				return read, err
			}
			b.at = n
		}
		at := off % chunkSize
		if at >= int64(len(b.data)) {
			return read, io.ErrUnexpectedEOF
		}
		n := copy(p, b.data[at:])
		p, off, read = p[n:], off+int64(n), read+n
	}
	return read, nil
}

// remove deletes the name, and with it the rows that refer to it: whoever still
// writes one fails.
func (c *chunks) remove(ctx context.Context, name string) error {
	_, err := c.db.ExecContext(ctx, c.text(`DELETE FROM geoproxy_blob WHERE name = $1`), name)
	return err
}

func (c *chunks) list(ctx context.Context, age time.Duration) ([]string, error) {
	return c.strings(ctx, `SELECT name FROM geoproxy_blob WHERE created <= {now} - $1`, age.Milliseconds())
}

func (c *chunks) max() int64 { return maxChunked }
