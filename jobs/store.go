package jobs

import (
	"context"
	"io"
	"time"
)

// Store keeps jobs. Its clock is the only one that counts: no time of the
// process is written to it. Every method is safe for concurrent use, over all
// replicas that share the store, ends with its context, and does in one
// transaction all that it does.
type Store interface {
	// Submit admits a job into its queue or refuses it with a *FullError,
	// exactly: however many submit at once, the limits hold. Once it returns
	// without an error the job survives whatever is killed. Another error
	// leaves unknown whether the job was kept.
	//
	// With an idempotency key that the owner has used, nothing is submitted:
	// it gives the job of the first time, or ErrMismatch where the hash of the
	// request differs.
	Submit(ctx context.Context, s Submission) (*Job, error)
	// Load tells what a queue holds, for one tenant.
	Load(ctx context.Context, queue, tenant string) (Load, error)
	// Depths counts what is queued and running, by queue.
	Depths(ctx context.Context) (map[string]int, error)
	// Get gives a job, or ErrUnknown.
	Get(ctx context.Context, id ID) (*Job, error)
	// List gives an owner's jobs, newest first, without their requests.
	List(ctx context.Context, owner string, f Filter) ([]*Job, error)
	// Marks gives, of those ids that are known, their [Mark].
	Marks(ctx context.Context, ids []ID) (map[ID]string, error)

	// Ready names the queues with something to claim.
	Ready(ctx context.Context) ([]string, error)
	// Claim gives at most n jobs of a queue to a worker, oldest first, each
	// under a lease of so long. An answer that is lost on the way costs the
	// job one lease and one attempt.
	Claim(ctx context.Context, worker, queue string, n int, lease time.Duration) ([]*Job, error)
	// Beat renews leases and says which of the keys are still the worker's. It
	// also notes how many slots the worker has for each queue.
	Beat(ctx context.Context, worker string, lease time.Duration, keys []Key, slots map[string]int) ([]Key, error)
	// Finish ends an attempt, or gives ErrLost where it is no longer the
	// worker's. Repeating it after an error is safe.
	Finish(ctx context.Context, k Key, e Ending) error
	// Reap takes up what dead workers have left: to be tried again, or failed
	// where it was the last attempt. It gives how many.
	Reap(ctx context.Context) (int, error)

	// Cancel dismisses a job that has not ended, and leaves one that has. It
	// gives the job as it is then, or ErrUnknown.
	Cancel(ctx context.Context, id ID) (*Job, error)
	// Forget deletes an ended job and its result.
	Forget(ctx context.Context, id ID) error
	// Collected notes that somebody has fetched the result.
	Collected(ctx context.Context, id ID) error

	// Sweep does what time asks for: fails what was not started within keep,
	// takes results away, deletes what is over, and removes blobs that nothing
	// refers to and that are older than age. Of results above maxStored bytes
	// in a queue the oldest collected go first.
	Sweep(ctx context.Context, maxStored map[string]int64, age time.Duration) (Swept, error)
	// FailUnserved fails what waits in queues that no worker has served for so
	// long, by what workers say at their beats: their route is gone.
	FailUnserved(ctx context.Context, silent time.Duration) (int, error)
	// Healthy fails where the store does not answer.
	Healthy(ctx context.Context) error

	// Create begins a blob. Only after Commit can it be opened.
	Create(ctx context.Context, name string) (BlobWriter, error)
	// OpenBlob opens a committed blob; fs.ErrNotExist where there is none.
	OpenBlob(ctx context.Context, name string) (Blob, error)
	// DeleteBlob removes a blob; one that is not there is no error.
	DeleteBlob(ctx context.Context, name string) error
	// MaxBlob is the largest blob that the store takes, in bytes.
	MaxBlob() int64

	Close() error
}

// Submission is a job to be kept, with the limits of its queue. The store
// fills in the times and the state.
type Submission struct {
	Job     *Job
	Limits  Limits
	IdemKey string // a mark; empty without one
	IdemSum string // of the request
}

// Filter selects from a list.
type Filter struct {
	State State  // empty for all
	After Cursor // its zero value is the beginning
	Limit int
}

// Swept is what a sweep did.
type Swept struct {
	Expired     int // results taken away at their time
	Uncollected int // of them those that nobody had fetched
	Evicted     int // results taken away for lack of room
	Overdue     int // jobs not started within keep
	Orphans     int // blobs removed
	// Stored is how many bytes of results each queue has.
	Stored map[string]int64
}

// BlobWriter is a blob being written.
type BlobWriter interface {
	io.Writer
	// Commit makes it whole and durable.
	Commit() error
	// Abort drops it. After Commit it does nothing.
	Abort()
}

// Blob is a committed blob.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
}
