package shed

import (
	"math/bits"

	"github.com/geoproxy/geoproxy/classify"
)

// A line is kept as lanes, so that taking the next waiter, finding one that its
// class does not hold back, and leaving from the middle all take constant time.
// Within a lane the order is that of arrival; between lanes of one rank the
// older ticket goes first. What orders a lane differently (newest first,
// fairness between tenants) changes that lane only.
//
// The lanes are one a class, and one a class for what of it is batch.
const (
	classCount = int(classify.Write) + 1 // with the zero class
	laneCount  = 2 * classCount

	batchLanes    laneSet = (1<<classCount - 1) << classCount
	metadataLanes laneSet = 1 << classify.Metadata
	allLanes      laneSet = 1<<laneCount - 1
)

// ranks are the lanes in the order in which they are served: metadata first,
// batch last.
var ranks = [...]laneSet{metadataLanes, allLanes &^ metadataLanes &^ batchLanes, batchLanes}

// laneSet is a set of lanes, one bit each.
type laneSet uint32

// lane gives the number of the lane in which a class waits.
func lane(class classify.Class, batch bool) int {
	n := classIndex(class)
	if batch {
		n += classCount
	}
	return n
}

// classIndex maps what is no class to the zero class.
func classIndex(class classify.Class) int {
	if int(class) >= classCount {
		return 0
	}
	return int(class)
}

// lanesOf are the lanes of a class, batch and not.
func lanesOf(class classify.Class) laneSet {
	return 1<<classIndex(class) | 1<<(classIndex(class)+classCount)
}

// waiter is a request in the line. Its fields are guarded by the gate's lock.
type waiter struct {
	want   Want
	seats  int
	ticket uint64
	queued bool
	slot   *Slot         // once it was let in
	ready  chan struct{} // closed when it was let in, or can no longer be

	prev, next *waiter
}

// line holds the waiters of a gate.
type line struct {
	lanes   [laneCount]struct{ head, tail *waiter }
	filled  laneSet // the lanes that are not empty
	tickets uint64
	count   int
}

// push puts a waiter at the end of its lane.
func (l *line) push(w *waiter) {
	n := lane(w.want.Class, w.want.Batch)
	in := &l.lanes[n]
	l.tickets++
	w.ticket, w.queued = l.tickets, true
	w.prev = in.tail
	if in.tail == nil {
		in.head = w
	} else {
		in.tail.next = w
	}
	in.tail = w
	l.filled |= 1 << n
	l.count++
}

// remove takes a waiter out, wherever it stands.
func (l *line) remove(w *waiter) {
	n := lane(w.want.Class, w.want.Batch)
	in := &l.lanes[n]
	if w.prev == nil {
		in.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		in.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	if in.head == nil {
		l.filled &^= 1 << n
	}
	l.count--
}

// first gives the waiter that is served first among some lanes, or nil.
func (l *line) first(among laneSet) *waiter {
	among &= l.filled
	for _, rank := range ranks {
		var first *waiter
		for rest := among & rank; rest != 0; rest &= rest - 1 {
			if w := l.lanes[bits.TrailingZeros32(uint32(rest))].head; first == nil || w.ticket < first.ticket {
				first = w
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// each calls f with every waiter. f may remove the one it is called with.
func (l *line) each(f func(*waiter)) {
	for n := range l.lanes {
		for w := l.lanes[n].head; w != nil; {
			next := w.next
			f(w)
			w = next
		}
	}
}
