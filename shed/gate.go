package shed

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// Why a request did not get through a gate, other than that its context ended.
var (
	// ErrFull says that the line is full, or that the gate has no seat for this
	// class at all.
	ErrFull = errors.New("the gate's line is full")
	// ErrLate says that no seat came by the deadline.
	ErrLate = errors.New("no seat by the deadline")
)

// Want is what a request wants of a gate.
type Want struct {
	Class classify.Class
	// Batch says that nobody waits for the answer right now: served last and
	// under the cap of "batch". Downloads always are.
	Batch bool
	// Seconds is the estimate, from which the gate makes the number of seats.
	Seconds float64
}

// batch reports whether the request counts as batch.
func (w Want) batch() bool { return w.Batch || w.Class == classify.Download }

// Gate lets so many requests through at once and has the others wait in line.
// It is safe for concurrent use.
type Gate struct {
	name string

	mu sync.Mutex
	// All below is guarded by mu. Methods that want it held end in Locked.
	limits  limits
	held    int // seats
	slots   int
	byClass [classCount]int // seats held of each class
	batch   int             // seats held by what is batch, of any class
	line    line
}

// limits is a compiled GateConfig.
type limits struct {
	seats, queue, connections int
	maxSeats                  int
	seatSeconds               float64 // 0: every request takes one seat
	atMost                    [classCount]int
	batchAtMost               int
}

// NewGate makes a gate with every seat free. The config has passed its Check.
func NewGate(name string, cfg GateConfig) *Gate {
	return &Gate{name: name, limits: cfg.compile()}
}

// Name is the gate's name in the config and in metrics.
func (g *Gate) Name() string { return g.name }

// Enter takes seats, at once where they are free and it is this request's turn,
// or else as soon as that is so. The caller releases the slot.
//
// It fails with [ErrFull] where the line has no place, with [ErrLate] once the
// deadline has passed, and with the context's error once that has ended; it
// holds nothing then. Only waiting is bounded by the deadline: a free seat is
// taken even if the clock has just run past it.
func (g *Gate) Enter(ctx context.Context, want Want, deadline time.Time) (*Slot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	slot, w := g.arriveLocked(want)
	if w == nil {
		g.mu.Unlock()
		if slot == nil {
			return nil, ErrFull
		}
		return slot, nil
	}
	wait := time.Until(deadline)
	if wait <= 0 {
		g.line.remove(w) // as if it had never come: nobody moves up
		g.mu.Unlock()
		return nil, ErrLate
	}
	w.ready = make(chan struct{})
	g.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.ready:
		if w.slot == nil {
			return nil, ErrFull
		}
		return w.slot, nil
	case <-timer.C:
		return g.leave(w, ErrLate)
	case <-ctx.Done():
		return g.leave(w, ctx.Err())
	}
}

// leave ends a wait for the reason given. The seats may have come at the same
// moment: who was only late takes them, who is gone gives them back.
func (g *Gate) leave(w *waiter, reason error) (*Slot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case w.queued:
		g.line.remove(w)
		g.admitLocked() // it may have stood in the way of narrower ones
	case w.slot != nil && errors.Is(reason, ErrLate):
		return w.slot, nil
	case w.slot != nil:
		g.giveBackLocked(w.slot)
	}
	return nil, reason
}

// TryEnter is Enter for those who never wait: it takes seats only where Enter
// would at once.
func (g *Gate) TryEnter(want Want) (*Slot, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slot, w := g.arriveLocked(want)
	if w != nil {
		g.line.remove(w)
	}
	return slot, slot != nil
}

// arriveLocked lets a request in, or puts it into the line. It gives neither
// where the request cannot be served.
func (g *Gate) arriveLocked(want Want) (*Slot, *waiter) {
	want.Batch = want.batch()
	seats := g.limits.width(want)
	if seats == 0 {
		return nil, nil
	}
	if g.line.count == 0 && g.heldBackLocked(want, seats) == 0 && g.fitsLocked(seats) {
		return g.takeLocked(want, seats), nil
	}
	// Whose turn it is is for the line to say, even where that is the newcomer.
	w := &waiter{want: want, seats: seats}
	g.line.push(w)
	g.admitLocked()
	switch {
	case w.slot != nil:
		return w.slot, nil
	case g.line.count > g.limits.queue:
		g.line.remove(w)
		return nil, nil
	}
	return nil, w
}

// admitLocked lets in everybody whose turn it is and for whom there are seats.
// The line is strict: where the next is too wide for what is free, those behind
// wait as well, or a wide request would wait for ever.
func (g *Gate) admitLocked() {
	for {
		w := g.nextLocked()
		if w == nil || !g.fitsLocked(w.seats) {
			return
		}
		g.line.remove(w)
		w.slot = g.takeLocked(w.want, w.seats)
		if w.ready != nil {
			close(w.ready)
		}
	}
}

// nextLocked gives the waiter whose turn it is: the first that no cap of its
// class holds back. One that is held back holds back those behind it that are
// under the same cap, and nobody else.
func (g *Gate) nextLocked() *waiter {
	among := allLanes
	for {
		w := g.line.first(among)
		if w == nil {
			return nil
		}
		held := g.heldBackLocked(w.want, w.seats)
		if held == 0 {
			return w
		}
		among &^= held
	}
}

// heldBackLocked gives the lanes under a cap that the request would pass; none
// where it would pass none.
func (g *Gate) heldBackLocked(want Want, seats int) laneSet {
	var held laneSet
	if i := classIndex(want.Class); g.byClass[i]+seats > g.limits.atMost[i] {
		held |= lanesOf(want.Class)
	}
	if want.Batch && g.batch+seats > g.limits.batchAtMost {
		held |= batchLanes
	}
	return held
}

// fitsLocked reports whether so many seats, and a connection, are free.
func (g *Gate) fitsLocked(seats int) bool {
	return g.held+seats <= g.limits.seats && g.slots < g.limits.connections
}

func (g *Gate) takeLocked(want Want, seats int) *Slot {
	g.held += seats
	g.slots++
	g.byClass[classIndex(want.Class)] += seats
	if want.Batch {
		g.batch += seats
	}
	return &Slot{gate: g, seats: int32(seats), class: want.Class, batch: want.Batch} //nolint:gosec // at most 100000
}

func (g *Gate) giveBackLocked(s *Slot) {
	if s.released {
		return
	}
	s.released = true
	seats := int(s.seats)
	g.held -= seats
	g.slots--
	g.byClass[classIndex(s.class)] -= seats
	if s.batch {
		g.batch -= seats
	}
	if g.line.count > 0 {
		g.admitLocked()
	}
}

// Reconfigure gives a living gate other limits. Who is in stays in; with fewer
// seats nobody enters until the surplus has left. Who waits keeps its place,
// also in a line that has become shorter, but is refused where its class is no
// longer let in at all. The config has passed its Check.
func (g *Gate) Reconfigure(cfg GateConfig) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limits = cfg.compile()
	g.line.each(func(w *waiter) {
		w.seats = g.limits.width(w.want)
		if w.seats == 0 {
			g.line.remove(w)
			close(w.ready)
		}
	})
	g.admitLocked()
}

// SeatsFor is the number of seats that a request takes; 0 says that it can
// never enter.
func (g *Gate) SeatsFor(want Want) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limits.width(want)
}

// width is the number of seats a request takes: one for each SeatSeconds of its
// estimate, at least one, at most MaxSeats and what its class may hold. 0 says
// that it can never enter.
func (l *limits) width(want Want) int {
	seats := 1
	if l.seatSeconds > 0 {
		// A hair's breadth of rounding error is no seat.
		n := math.Ceil(want.Seconds/l.seatSeconds - 1e-9)
		switch {
		case n <= 1:
		case n < float64(l.maxSeats):
			seats = int(n)
		default: // not a number included: what cannot be read is dear
			seats = l.maxSeats
		}
	}
	seats = min(seats, l.atMost[classIndex(want.Class)])
	if want.batch() {
		seats = min(seats, l.batchAtMost)
	}
	return seats
}

// compile fills in the defaults.
func (c *GateConfig) compile() limits {
	l := limits{
		seats: c.Seats, queue: c.Queue, connections: c.Connections,
		maxSeats: min(max(1, c.MaxSeats), c.Seats), seatSeconds: c.SeatSeconds.Seconds(),
		batchAtMost: max(1, c.Seats/4),
	}
	if l.queue == 0 {
		l.queue = 8 * l.seats
	}
	if l.connections == 0 {
		l.connections = l.seats
	}
	for i := range l.atMost {
		l.atMost[i] = l.seats
	}
	l.atMost[classify.Write] = max(1, l.seats/2)
	for name, n := range c.AtMost {
		if name == batchName {
			l.batchAtMost = n
		} else if class, err := classify.ParseClass(name); err == nil {
			l.atMost[class] = n
		}
	}
	// A class that may hold every seat is held back by the gate alone, and so
	// keeps its turn: a cap would let others past it.
	for i, n := range l.atMost {
		if n >= l.seats {
			l.atMost[i] = noCap
		}
	}
	if l.batchAtMost >= l.seats {
		l.batchAtMost = noCap
	}
	return l
}

// noCap stands for a class without a cap of its own.
const noCap = math.MaxInt32

// Stats is what a gate holds at one moment.
type Stats struct {
	Seats, Held        int
	Connections, Slots int
	Queue, Waiting     int
	// HeldBy are the seats held of each class, by its name, and by "batch",
	// which counts some of them again. What is held by nobody is left out.
	HeldBy map[string]int
}

// Stats tells what the gate holds.
func (g *Gate) Stats() Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{
		Seats: g.limits.seats, Held: g.held,
		Connections: g.limits.connections, Slots: g.slots,
		Queue: g.limits.queue, Waiting: g.line.count,
		HeldBy: make(map[string]int),
	}
	for i, n := range g.byClass {
		if n > 0 {
			s.HeldBy[classify.Class(i).String()] = n
		}
	}
	if g.batch > 0 {
		s.HeldBy[batchName] = g.batch
	}
	return s
}
