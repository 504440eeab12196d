package jobs

import (
	"fmt"
	"time"
)

// Limits bound a queue.
type Limits struct {
	Depth int           // queued and running together
	Wait  time.Duration // the longest projected wait, the job's own estimate included
}

// Load is what a queue holds at the moment of a submission.
type Load struct {
	Depth   int           // queued and running
	Queued  int           // of them those that wait
	Mine    int           // of them the submitter's
	Tenants int           // whose they are, the submitter included
	Work    time.Duration // estimated of what is queued, and the rest of what runs
	Slots   int           // of the workers that are alive
}

// FullError says that a queue takes no more of somebody for now.
type FullError struct {
	// ByWait says that the projected wait is too long; otherwise the queue, or
	// the submitter's share of it, is full.
	ByWait bool
	// Share says that it is the submitter's own share that is full.
	Share bool
	// Projected is how long the job would have taken from now to its end.
	Projected time.Duration
	Limits    Limits
	Load      Load
}

// Error states the wait.
func (e *FullError) Error() string {
	switch {
	case e.ByWait:
		return fmt.Sprintf("the projected wait of %s exceeds %s", e.Projected.Round(time.Second), e.Limits.Wait)
	case e.Share:
		return fmt.Sprintf("%d jobs of this tenant are its share of the queue; projected wait %s", e.Load.Mine, e.Projected.Round(time.Second))
	default:
		return fmt.Sprintf("%d jobs are queued or running; projected wait %s", e.Load.Depth, e.Projected.Round(time.Second))
	}
}

// Projected is how long a job of an estimate would take from now to its end.
func (l Load) Projected(estimate time.Duration) time.Duration {
	return l.Work/time.Duration(max(1, l.Slots)) + estimate
}

// Admit says whether a queue takes one more job. Depth counts what is queued
// and what runs. A queue that is half full is shared out evenly among the
// tenants who have something in it, so that one cannot fill it before the
// others; a tenant alone may have all of it.
func (lim Limits) Admit(l Load, estimate time.Duration) error {
	full := &FullError{Projected: l.Projected(estimate), Limits: lim, Load: l}
	share := (lim.Depth + l.Tenants - 1) / max(1, l.Tenants)
	switch {
	case l.Depth >= lim.Depth:
		return full
	case 2*l.Depth >= lim.Depth && l.Mine >= share:
		full.Share = true
		return full
	case full.Projected > lim.Wait:
		full.ByWait = true
		return full
	}
	return nil
}
