package demo

import (
	"context"
	"slices"
	"sync"
	"time"
)

// PoolStats say what a pool is doing, and the most that it ever did at once.
type PoolStats struct {
	Size        int `json:"size"`
	Busy        int `json:"busy"`
	Waiting     int `json:"waiting"`
	PeakBusy    int `json:"peak_busy"`
	PeakWaiting int `json:"peak_waiting"`
	Served      int `json:"served"`
}

// pool is a database's connection pool as many services have it: a fixed number
// of connections, and a line in front of them that has no bound. That line is
// what geoproxy is there to prevent.
type pool struct {
	mu    sync.Mutex
	stats PoolStats       // guarded by mu
	line  []chan struct{} // guarded by mu; closing one hands a connection over
}

func newPool(size int) *pool { return &pool{stats: PoolStats{Size: size}} }

// take waits for a connection, first come first served, for as long as ctx
// lasts. The caller puts back what it took.
func (p *pool) take(ctx context.Context) error {
	p.mu.Lock()
	if p.stats.Busy < p.stats.Size {
		p.stats.Busy++
		p.stats.PeakBusy = max(p.stats.PeakBusy, p.stats.Busy)
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.line = append(p.line, turn)
	p.stats.Waiting = len(p.line)
	p.stats.PeakWaiting = max(p.stats.PeakWaiting, p.stats.Waiting)
	p.mu.Unlock()

	select {
	case <-turn:
		if ctx.Err() != nil {
			p.put(false)
		}
		return ctx.Err()
	case <-ctx.Done():
	}
	p.mu.Lock()
	at := slices.Index(p.line, turn)
	if at >= 0 {
		p.line = slices.Delete(p.line, at, at+1)
		p.stats.Waiting = len(p.line)
	}
	p.mu.Unlock()
	if at < 0 { // it was handed over at the same moment
		p.put(false)
	}
	return ctx.Err()
}

// put gives a connection to the first in the line, or back to the pool. ran
// says whether there was a query on it.
func (p *pool) put(ran bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ran {
		p.stats.Served++
	}
	if len(p.line) == 0 {
		p.stats.Busy--
		return
	}
	close(p.line[0])
	p.line = p.line[1:]
	p.stats.Waiting = len(p.line)
}

func (p *pool) snapshot() PoolStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// pause is the part of a query's time that is spent on what this process does
// not have: a disk, a network, a planner.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
