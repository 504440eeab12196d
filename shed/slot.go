package shed

import "github.com/geoproxy/geoproxy/classify"

// Slot is an admitted request's hold on its seats. It is to be released when
// the upstream's work has ended, by whoever learns of it: releasing again does
// nothing, and a nil slot holds nothing.
type Slot struct {
	gate     *Gate
	seats    int32
	class    classify.Class
	batch    bool
	released bool // guarded by gate.mu
}

// Release gives the seats back and lets in whoever they are enough for. It is
// safe for concurrent use.
func (s *Slot) Release() {
	if s == nil {
		return
	}
	s.gate.mu.Lock()
	s.gate.giveBackLocked(s)
	s.gate.mu.Unlock()
}

// Seats is how many seats the slot holds, or held.
func (s *Slot) Seats() int {
	if s == nil {
		return 0
	}
	return int(s.seats)
}
