package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
)

// files keeps each blob in a file of its own. It is written under another name,
// made durable, and only then given its own (rename(2) is atomic).
type files struct{ dir string }

const partial = ".partial"

func newFiles(dir string) (*files, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &files{dir: dir}, nil
}

func (f *files) path(name string) string { return filepath.Join(f.dir, filepath.Base(name)) }

func (f *files) create(_ context.Context, name string) (jobs.BlobWriter, error) {
	w, err := os.OpenFile(f.path(name)+partial, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &fileWriter{File: w, to: f.path(name)}, nil
}

type fileWriter struct {
	*os.File
	to   string
	done bool
}

// Commit makes the file's content durable before its name, and then the name.
func (w *fileWriter) Commit() error {
	if err := errors.Join(w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := os.Rename(w.Name(), w.to); err != nil {
		return err
	}
	w.done = true
	return syncDir(filepath.Dir(w.to))
}

// Abort removes what was written.
func (w *fileWriter) Abort() {
	if w.done {
		return
	}
	w.done = true
	_ = w.Close()           // it may be closed
	_ = os.Remove(w.Name()) // Sweep finds it otherwise
}

func syncDir(path string) error {
	d, err := os.Open(path) //nolint:gosec // the store's own folder
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (f *files) open(_ context.Context, name string) (jobs.Blob, error) {
	r, err := os.Open(f.path(name))
	if err != nil {
		return nil, err
	}
	info, err := r.Stat()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return &fileBlob{File: r, size: info.Size()}, nil
}

type fileBlob struct {
	*os.File
	size int64
}

func (b *fileBlob) Size() int64 { return b.size }

func (f *files) remove(_ context.Context, name string) error {
	for _, path := range []string{f.path(name), f.path(name) + partial} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (f *files) list(_ context.Context, age time.Duration) ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		// The clock of the files is the host's own, like the database's here.
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) >= age {
			names = append(names, strings.TrimSuffix(e.Name(), partial))
		}
	}
	return names, nil
}

func (f *files) max() int64 { return math.MaxInt64 }
