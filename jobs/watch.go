package jobs

import (
	"context"
	"time"
)

// watch is what is known of a job that somebody waits for.
type watch struct {
	waiters int
	changed chan struct{} // closed at the next change
	mark    string        // of the store, when it was last asked
}

// Wait returns when a job is not any more as the caller saw it, with ctx, or
// with ErrStopping when the engine stops. It may return although nothing has
// changed. One query a tick asks for all that
// is waited for in this process; what changes here is told at once.
func (e *Engine) Wait(ctx context.Context, seen *Job) error {
	e.mu.Lock()
	w := e.watched[seen.ID]
	if w == nil {
		w = &watch{changed: make(chan struct{})}
		e.watched[seen.ID] = w
	}
	w.waiters++
	changed := w.changed
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.waiters--; w.waiters == 0 {
			delete(e.watched, seen.ID)
		}
	}()
	// It may have changed before it was watched.
	now, err := e.store.Get(ctx, seen.ID)
	if err != nil || now.State != seen.State || now.Fence != seen.Fence || now.Gone != seen.Gone {
		return err
	}
	select {
	case <-changed:
		return nil
	case <-e.over:
		return ErrStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}

// changed tells who waits for a job.
func (e *Engine) changed(id ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.watched[id]; w != nil {
		close(w.changed)
		w.changed = make(chan struct{})
	}
}

// look asks the store about everything that is waited for, and about what runs
// here: who was cancelled elsewhere stops at once.
func (e *Engine) look(ctx context.Context) {
	e.mu.Lock()
	ids := make([]ID, 0, len(e.watched)+len(e.running))
	for id := range e.watched {
		ids = append(ids, id)
	}
	for k := range e.running {
		ids = append(ids, k.ID)
	}
	e.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	sent := time.Now()
	marks, err := e.store.Marks(ctx, ids)
	if err != nil {
		e.trouble("looking at jobs", err)
		return
	}
	e.mu.Lock()
	var moved []ID
	for id, w := range e.watched {
		if mark := marks[id]; mark != w.mark {
			if w.mark != "" {
				moved = append(moved, id)
			}
			w.mark = mark
		}
	}
	for k, a := range e.running {
		if a.beat.Before(sent) && marks[k.ID] != runningMark(k) {
			a.cancel(ErrLost)
		}
	}
	e.mu.Unlock()
	for _, id := range moved {
		e.changed(id)
	}
}
