package main_test

import (
	"bytes"
	"sync"
	"testing"
	"time"
)

// lockedBuffer is what a running program has printed so far.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// eventually waits for another process to do something.
func eventually(t *testing.T, log *lockedBuffer, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("it did not happen; the log is\n%s", log.String())
		}
	}
}
