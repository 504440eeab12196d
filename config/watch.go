package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A change is read once the directory has been quiet, so that a file that is
// being written is not read in halves, and at the latest a while after it
// began, so that a busy directory does not put it off for ever.
const (
	quiet  = 100 * time.Millisecond
	atMost = time.Second
)

// Watch reads the file of running again whenever it changes, or one that it
// names does (keys, certificates), and at every signal of again, until ctx
// ends. It calls onChange with what was read, and onError where that has
// mistakes or changes what needs a restart ([NeedsRestart]): what runs then
// stays. The calls come one at a time. Where no byte differs neither is called,
// but for a signal.
//
// It watches directories, not files: editors and Kubernetes replace files. In
// a ConfigMap's volume the file is a link by way of ..data, a link itself,
// which is replaced at once for all files.
//
// It returns nil when ctx ends, and an error where nothing can be watched. A
// config that has no file is not watched.
func Watch(ctx context.Context, running *File, again <-chan os.Signal,
	onChange func(*File, []Warning), onError func(error),
) error {
	if running.source.path == "" {
		<-ctx.Done()
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", running.source.path, err)
	}
	defer watcher.Close() //nolint:errcheck // nothing is lost
	w := watch{watcher: watcher, running: running, seen: running.source.sum, onChange: onChange, onError: onError}
	if err := w.follow(); err != nil {
		return fmt.Errorf("watch %s: %w", running.source.path, err)
	}
	w.reload(false) // what changed between its loading and the watch

	timer := time.NewTimer(time.Hour)
	timer.Stop()
	var began time.Time // of the changes not yet read; zero where there are none
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again:
			w.reload(true)
		case event, open := <-watcher.Events:
			if !open {
				return nil
			}
			if event.Op == fsnotify.Chmod {
				continue
			}
			now := time.Now()
			if began.IsZero() {
				began = now
			}
			timer.Reset(min(quiet, atMost-now.Sub(began)))
		case err, open := <-watcher.Errors:
			if !open {
				return nil
			}
			// Events may have been lost: look, as if there had been one.
			onError(fmt.Errorf("watch %s: %w", running.source.path, err))
			timer.Reset(quiet)
		case <-timer.C:
			began = time.Time{}
			w.reload(false)
		}
	}
}

// watch is the state of one call of Watch.
type watch struct {
	watcher  *fsnotify.Watcher
	running  *File
	seen     [sha256.Size]byte // of the files as they were read last, well or not
	onChange func(*File, []Warning)
	onError  func(error)
}

// reload reads the file again, if it or what it names has changed or always.
func (w *watch) reload(always bool) {
	source := w.running.source
	var sum [sha256.Size]byte // zero while the file cannot be read
	if content, err := read(source.path); err == nil {
		sum = w.running.digest(content)
	}
	if sum == w.seen && !always {
		return
	}
	w.seen = sum
	next, warnings, err := Load(source.path, source.env)
	if err == nil {
		err = refuse(w.running, next)
	}
	if err == nil {
		w.running, w.seen = next, next.source.sum
	}
	if followErr := w.follow(); followErr != nil {
		w.onError(fmt.Errorf("watch %s: %w", source.path, followErr))
	}
	if err != nil {
		w.onError(err)
		return
	}
	w.onChange(next, warnings)
}

// follow watches the directory of every file, and that in which its links end.
// One that is watched already stays so; one that is gone drops out by itself.
func (w *watch) follow() error {
	for i, name := range w.running.watched() {
		for _, dir := range directories(name) {
			// That the file itself can be followed matters; what it names may
			// be missing without harm to what runs.
			if err := w.watcher.Add(dir); err != nil && i == 0 {
				return err
			}
		}
	}
	return nil
}

func directories(name string) []string {
	dirs := []string{filepath.Dir(name)}
	if end, err := filepath.EvalSymlinks(name); err == nil && filepath.Dir(end) != dirs[0] {
		dirs = append(dirs, filepath.Dir(end))
	}
	return dirs
}

// watched lists the file and those that it names, which are read anew with it.
func (f *File) watched() []string {
	names := []string{f.source.path}
	for _, name := range f.files() {
		if *name != "" {
			names = append(names, *name)
		}
	}
	return names
}

// digest is the hash of all the files that f is made of, the first of which
// has this content. One that cannot be read counts as empty.
func (f *File) digest(content []byte) [sha256.Size]byte {
	h := sha256.New()
	for i, name := range f.watched() {
		if i > 0 {
			content, _ = read(name)
		}
		// A hash takes all that is written to it.
		_, _ = fmt.Fprintf(h, "%d\n", len(content))
		_, _ = h.Write(content)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
