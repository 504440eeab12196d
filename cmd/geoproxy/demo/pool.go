package demo

import (
	"context"
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
	connections chan struct{}

	mu    sync.Mutex
	stats PoolStats // guarded by mu
}

func newPool(size int) *pool {
	p := &pool{connections: make(chan struct{}, size)}
	p.stats.Size = size
	for range size {
		p.connections <- struct{}{}
	}
	return p
}

// take waits for a connection, first come first served, for as long as ctx
// lasts. The caller puts back what it took.
func (p *pool) take(ctx context.Context) error {
	p.mu.Lock()
	p.stats.Waiting++
	p.stats.PeakWaiting = max(p.stats.PeakWaiting, p.stats.Waiting-len(p.connections))
	p.mu.Unlock()

	var err error
	select {
	case <-p.connections:
	case <-ctx.Done():
		err = ctx.Err()
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Waiting--
	if err == nil {
		p.stats.Busy++
		p.stats.PeakBusy = max(p.stats.PeakBusy, p.stats.Busy)
	}
	return err
}

func (p *pool) put() {
	p.mu.Lock()
	p.stats.Busy--
	p.stats.Served++
	p.mu.Unlock()
	p.connections <- struct{}{}
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
