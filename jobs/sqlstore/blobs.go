package sqlstore

import (
	"context"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// blobs keep what is too large for a row.
type blobs interface {
	create(ctx context.Context, name string) (jobs.BlobWriter, error)
	open(ctx context.Context, name string) (jobs.Blob, error)
	remove(ctx context.Context, name string) error
	// list names the blobs, whole or not, that are at least so old.
	list(ctx context.Context, age time.Duration) ([]string, error)
	max() int64
}

// Create implements [jobs.Store].
func (s *Store) Create(ctx context.Context, name string) (jobs.BlobWriter, error) {
	return s.blobs.create(ctx, name)
}

// OpenBlob implements [jobs.Store].
func (s *Store) OpenBlob(ctx context.Context, name string) (jobs.Blob, error) {
	return s.blobs.open(ctx, name)
}

// DeleteBlob implements [jobs.Store].
func (s *Store) DeleteBlob(ctx context.Context, name string) error {
	return s.blobs.remove(ctx, name)
}

// MaxBlob implements [jobs.Store].
func (s *Store) MaxBlob() int64 { return s.blobs.max() }
