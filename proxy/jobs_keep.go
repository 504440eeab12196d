package proxy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"sync"
)

// keptInMemory is how much of a body is kept in memory before a file takes it.
const keptInMemory = 64 << 10

// keeper keeps a request's body while it is forwarded, so that a job can be
// made of a request that overran: in memory, then in a file without a name, to
// a limit. Beyond that it only passes the body on.
type keeper struct {
	src   io.ReadCloser
	limit int64

	mu    sync.Mutex
	buf   []byte
	file  *os.File // nil while memory is enough
	size  int64
	whole bool // the end was seen
	lost  bool // too large, or it could not be kept
}

func keepBody(src io.ReadCloser, limit int64) *keeper { return &keeper{src: src, limit: limit} }

// Read passes the body on and keeps what passes.
func (k *keeper) Read(p []byte) (int, error) {
	n, err := k.src.Read(p)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(p[:n])
	if errors.Is(err, io.EOF) {
		k.whole = true
	}
	return n, err
}

// Close closes the body; what was kept stays.
func (k *keeper) Close() error { return k.src.Close() }

func (k *keeper) keep(p []byte) {
	if k.lost || len(p) == 0 {
		return
	}
	if k.size += int64(len(p)); k.size > k.limit {
		k.drop()
		return
	}
	if k.file == nil && len(k.buf)+len(p) <= keptInMemory {
		k.buf = append(k.buf, p...)
		return
	}
	if k.file == nil {
		f, err := os.CreateTemp("", "geoproxy-body-*")
		if err == nil {
			err = os.Remove(f.Name()) // it lives as long as it is open
			k.file = f
		}
		if err == nil {
			_, err = k.file.Write(k.buf)
		}
		k.buf = nil
		if err != nil {
			k.drop()
			return
		}
	}
	if _, err := k.file.Write(p); err != nil {
		k.drop()
	}
}

func (k *keeper) drop() {
	k.lost, k.buf = true, nil
	if k.file != nil {
		_ = k.file.Close() // it is given up
		k.file = nil
	}
}

// body gives what was kept, from its beginning, where that is the whole body.
func (k *keeper) body() (io.Reader, int64, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.lost || !k.whole:
		return nil, 0, false
	case k.file != nil:
		return io.NewSectionReader(k.file, 0, k.size), k.size, true
	default:
		return bytes.NewReader(k.buf), k.size, true
	}
}

// tooLarge says that the body passed the limit.
func (k *keeper) tooLarge() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.size > k.limit
}

// free lets go of what was kept.
func (k *keeper) free() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop()
}
