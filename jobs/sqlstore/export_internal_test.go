package sqlstore

import (
	"context"
	"time"
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
