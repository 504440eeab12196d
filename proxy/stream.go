package proxy

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	defaultIdle        = time.Minute
	defaultMinRate     = 4 << 10
	defaultBuffer      = 256 << 10
	defaultBufferTotal = 64 << 20

	// slowWindow is how long a caller has to be waited for before it can be
	// called too slow.
	slowWindow = 30 * time.Second
	// patience is how long a caller is waited for before that counts as
	// waiting at all, and before its answer is read ahead.
	patience = 20 * time.Millisecond
	// longestTick is the longest between two looks at an exchange that holds a
	// seat.
	longestTick = time.Second
)

// longAgo is a deadline that has passed: what waits returns at once.
var longAgo = time.Unix(1, 0)

// streams is what the exchanges of a process have in common. Its zero value is
// ready to be used.
type streams struct {
	buffered atomic.Int64 // bytes that are set aside for answers read ahead
	open     atomic.Int64 // upgrades, event streams and gRPC streams: they hold no seat
	upgrades atomic.Int64 // of those, the connections that have been upgraded
}

func (c *call) streams() *streams {
	if c.x.streams != nil {
		return c.x.streams
	}
	return &c.u.own
}

// limits gives the stream's bounds with their defaults.
func (c *call) limits() StreamConfig {
	var s StreamConfig
	if c.x.stream != nil {
		s = *c.x.stream
	}
	s.Idle = orDefault(s.Idle, defaultIdle)
	s.MinRate = orDefault(s.MinRate, defaultMinRate)
	s.Buffer = orDefault(s.Buffer, defaultBuffer)
	s.BufferTotal = orDefault(s.BufferTotal, defaultBufferTotal)
	return s
}

// start is the origin of clock.
var start = time.Now()

// clock is the monotonic time, at half the price of time.Now.
func clock() time.Duration { return time.Since(start) }

// pace is how fast a caller is, measured only while it is waited for: an
// upstream that trickles never makes its caller slow. The guard of the call
// guards it.
type pace struct {
	since  time.Duration // when waiting began; 0 while nothing is waited for
	open   bool          // a window runs: it begins with the first noticeable wait
	waited time.Duration // in the window, without the wait under way
	bytes  int64         // that moved in the window
}

func (p *pace) begin(now time.Duration) { p.since = now }

// end ends a wait in which n bytes moved.
func (p *pace) end(now time.Duration, n int) {
	waited := now - p.since
	if p.open {
		p.waited += waited
		p.bytes += int64(n)
	} else if waited >= patience {
		p.open, p.waited, p.bytes = true, waited, int64(n)
	}
	p.since = 0
}

// slow says whether the caller moved less than rate bytes a second over a
// window of waiting for it, and begins the next window when one is full.
// Pending bytes are on their way to it.
func (p *pace) slow(now time.Duration, rate int64, pending int) bool {
	waited := p.waited
	if p.since != 0 {
		waited += now - p.since
	}
	if waited < slowWindow {
		return false
	}
	slow := float64(p.bytes+int64(pending)) < float64(rate)*waited.Seconds()
	p.open, p.waited, p.bytes = p.since != 0, 0, 0
	if p.open {
		p.since = now
	}
	return slow
}

// alarm is a timer that looks after one call after the other. An upstream has
// a pool of them, because a timer costs more than all else that watching a
// small exchange does.
type alarm struct {
	t *time.Timer
	// call changes hands while a ring for the one before may be on its way;
	// to look at a call once too often does no harm.
	call atomic.Pointer[call]
}

func newAlarm() any {
	a := new(alarm)
	a.t = time.AfterFunc(time.Hour, func() {
		if c := a.call.Load(); c != nil {
			c.look()
		}
	})
	a.t.Stop()
	return a
}

// arm starts watching the call.
func (c *call) arm() {
	d := c.limits().Idle
	if c.length > 0 {
		d = min(d, c.length)
	}
	if c.up.body != nil {
		d = min(d, longestTick)
	}
	if c.x.stream != nil && c.x.stream.Max > 0 {
		d = min(d, c.x.stream.Max)
	}
	a, _ := c.u.alarms.Get().(*alarm)
	c.alarm = a // before the alarm has the call: a late ring for the one before may look at once
	a.call.Store(c)
	a.t.Reset(d)
}

// stop gives the alarm back to the pool, unless it is ringing: then it is left
// to the call, which is over. The lock of the call is held.
func (a *alarm) stop(pool *sync.Pool) {
	if a.t.Stop() {
		a.call.Store(nil)
		pool.Put(a)
	}
}

// look is what the alarm does: it ends what has lasted too long, reads ahead
// of a caller that has become slow, and sets itself again.
func (c *call) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.x.fault != faultNone {
		return
	}
	now := clock()
	if f, err := c.overdue(now); f != faultNone {
		c.cut(f, err)
		return
	}
	if c.answered && !c.released && c.down.stuck(now) {
		c.down.readAhead()
	}
	c.alarm.t.Reset(c.next(now))
}

// overdue says which bound the call has passed. The lock is held.
func (c *call) overdue(now time.Duration) (fault, error) {
	s := c.limits()
	if s.Max > 0 && now-c.began >= s.Max {
		if c.answered {
			return faultBroken, errMax
		}
		return faultDeadline, errMax
	}
	if !c.released && c.up.body != nil && c.up.pace.slow(now, s.MinRate, 0) {
		return faultSlow, errSlowUp
	}
	if !c.answered {
		if c.up.pace.since != 0 { // the caller is waited for, which is not the upstream's time
			if now-c.moved >= s.Idle {
				return faultSlow, errIdle
			}
			return faultNone, nil
		}
		if c.length > 0 && now-c.asked >= c.length {
			return faultDeadline, errDeadline
		}
		return faultNone, nil
	}
	if !c.released && c.down.pace.slow(now, s.MinRate, c.down.pending) {
		return faultSlow, errSlowDown
	}
	if now-c.moved >= s.Idle {
		if c.down.reading {
			return faultBroken, errIdle
		}
		return faultSlow, errIdle
	}
	return faultNone, nil
}

// next is how long nothing can become overdue, or has to be looked at. The
// lock is held.
func (c *call) next(now time.Duration) time.Duration {
	s := c.limits()
	d := s.Idle
	switch {
	case c.answered:
		d -= now - c.moved
		if !c.released {
			c.tick = min(max(2*c.tick, patience), longestTick)
			d = min(d, c.tick)
		}
	case c.up.body != nil && !c.up.done:
		d = longestTick
		fallthrough
	default:
		if c.length > 0 && c.up.pace.since == 0 {
			d = min(d, c.length-(now-c.asked))
		}
	}
	if s.Max > 0 {
		d = min(d, s.Max-(now-c.began))
	}
	return max(d, time.Millisecond)
}

// cut ends the call for f, and wakes whatever of it waits for the caller: the
// connection is of no more use. The lock is held.
func (c *call) cut(f fault, err error) {
	c.x.fault, c.x.err = f, err
	c.cancel(err)
	caller := http.NewResponseController(c.w)
	if c.up.pace.since != 0 {
		_ = caller.SetReadDeadline(longAgo) // a writer without deadlines cannot be stuck for long
	}
	if c.answered {
		_ = caller.SetWriteDeadline(longAgo)
	}
}
