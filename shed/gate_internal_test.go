package shed

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/geoproxy/geoproxy/classify"
)

// The gate is checked against a model that is slow and obvious: one list of
// waiters, sorted anew for each decision, and one list of slots, summed anew.
// Both see the same arrivals, departures, releases and reloads.
type model struct {
	limits  limits
	waiting []*modelWaiter // in the order of arrival
	slots   []*modelWaiter
}

type modelWaiter struct {
	want   Want
	seats  int
	waiter *waiter // the gate's, where it waits or waited
	slot   *Slot   // the gate's, where it is in
}

func (m *model) held(under func(*modelWaiter) bool) (seats int) {
	for _, s := range m.slots {
		if under(s) {
			seats += s.seats
		}
	}
	return seats
}

func everybody(*modelWaiter) bool { return true }

func (w *modelWaiter) rank() int {
	switch {
	case w.want.Batch:
		return 2
	case w.want.Class == classify.Metadata:
		return 0
	}
	return 1
}

// settle lets in whom the rules let in: by rank, then by arrival; past a waiter
// that a cap holds back only those who are not under that cap; past one that is
// too wide for what is free, nobody.
func (m *model) settle() (let []*modelWaiter) {
	for {
		order := slices.Clone(m.waiting)
		slices.SortStableFunc(order, func(a, b *modelWaiter) int { return cmp.Compare(a.rank(), b.rank()) })
		var classesBack []classify.Class
		batchBack := false
		var next *modelWaiter
		for _, w := range order {
			if slices.Contains(classesBack, w.want.Class) || batchBack && w.want.Batch {
				continue
			}
			class := m.held(func(s *modelWaiter) bool { return s.want.Class == w.want.Class })
			batch := m.held(func(s *modelWaiter) bool { return s.want.Batch })
			pastClass := class+w.seats > m.limits.atMost[w.want.Class]
			pastBatch := w.want.Batch && batch+w.seats > m.limits.batchAtMost
			if pastClass {
				classesBack = append(classesBack, w.want.Class)
			}
			batchBack = batchBack || pastBatch
			if !pastClass && !pastBatch {
				next = w
				break
			}
		}
		if next == nil || m.held(everybody)+next.seats > m.limits.seats || len(m.slots) >= m.limits.connections {
			return let
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(w *modelWaiter) bool { return w == next })
		m.slots = append(m.slots, next)
		let = append(let, next)
	}
}

// The seat comes in the same moment in which its waiter gives up.
func TestASeatThatComesWhileLeaving(t *testing.T) {
	for _, c := range []struct {
		reason error
		in     bool
	}{{ErrLate, true}, {context.Canceled, false}} {
		g := NewGate("g", GateConfig{Seats: 1})
		first, _ := g.TryEnter(Want{Class: classify.Read})
		_, w := g.arriveLocked(Want{Class: classify.Read})
		w.ready = make(chan struct{})
		first.Release()

		slot, err := g.leave(w, c.reason)
		if c.in && (slot == nil || err != nil) || !c.in && (slot != nil || !errors.Is(err, c.reason)) {
			t.Errorf("%v: left with %v, %v", c.reason, slot, err)
		}
		slot.Release()
		if s := g.Stats(); s.Held != 0 || s.Slots != 0 || s.Waiting != 0 {
			t.Errorf("%v: left behind %+v", c.reason, s)
		}
	}
}

var someClasses = []classify.Class{classify.Metadata, classify.Map, classify.Read, classify.Download, classify.Write}

func drawConfig(t *rapid.T) GateConfig {
	seats := rapid.IntRange(1, 12).Draw(t, "seats")
	cfg := GateConfig{Seats: seats, Queue: rapid.IntRange(0, 12).Draw(t, "queue"), AtMost: map[string]int{}}
	for _, name := range []string{"map", "read", "batch", "metadata"} {
		if rapid.Bool().Draw(t, "caps "+name) {
			cfg.AtMost[name] = rapid.IntRange(0, seats).Draw(t, name)
		}
	}
	if rapid.Bool().Draw(t, "weighted") && seats >= 4 {
		cfg.SeatSeconds = time.Second
		cfg.MaxSeats = rapid.IntRange(2, seats/2).Draw(t, "max_seats")
		cfg.Connections = rapid.IntRange(1, seats).Draw(t, "connections")
	}
	cfg.Check(func(path, message string) { t.Fatalf("%+v: %s: %s", cfg, path, message) })
	return cfg
}

func drawWant(t *rapid.T) Want {
	return Want{
		Class:   rapid.SampledFrom(someClasses).Draw(t, "class"),
		Batch:   rapid.IntRange(0, 3).Draw(t, "batch") == 0,
		Seconds: rapid.Float64Range(0, 8).Draw(t, "seconds"),
	}
}

func TestGateDecidesLikeTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		g, m := NewGate("g", cfg), &model{limits: cfg.compile()}

		// admitted finds in the gate what the model has let in.
		admitted := func(let []*modelWaiter) {
			for _, w := range let {
				if w.waiter != nil {
					w.slot = w.waiter.slot
				}
				if w.slot == nil {
					t.Fatalf("the model lets %+v in, the gate does not", w.want)
				}
			}
			for _, w := range m.waiting {
				if w.waiter.slot != nil {
					t.Fatalf("the gate let %+v in, the model does not", w.want)
				}
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				want := drawWant(t)
				w := &modelWaiter{want: want}
				w.want.Batch = want.Batch || want.Class == classify.Download
				w.seats = m.limits.width(w.want)

				before := g.held
				slot, waiter := g.arriveLocked(want)
				w.slot, w.waiter = slot, waiter
				if waiter != nil {
					waiter.ready = make(chan struct{})
				}
				switch {
				case w.seats == 0:
					if slot != nil || waiter != nil {
						t.Fatalf("%+v can never enter, but did or waits", want)
					}
					return
				case slot != nil && before+w.seats > m.limits.seats:
					t.Fatalf("entered with %d of %d seats held", before, m.limits.seats)
				}
				m.waiting = append(m.waiting, w)
				let := m.settle()
				if slices.Contains(m.waiting, w) && len(m.waiting) > m.limits.queue {
					m.waiting = m.waiting[:len(m.waiting)-1]
					if slot != nil || waiter != nil {
						t.Fatalf("the line is full, but %+v is in it", want)
					}
				} else if slices.Contains(m.waiting, w) && waiter == nil {
					t.Fatalf("%+v should wait: slot %v", want, slot)
				}
				admitted(let)
			},
			"leave": func(t *rapid.T) {
				if len(m.waiting) == 0 {
					t.Skip("nobody waits")
				}
				i := rapid.IntRange(0, len(m.waiting)-1).Draw(t, "who")
				if slot, err := g.leave(m.waiting[i].waiter, ErrLate); slot != nil || err == nil {
					t.Fatalf("left with %v, %v", slot, err)
				}
				m.waiting = slices.Delete(m.waiting, i, i+1)
				admitted(m.settle())
			},
			"release": func(t *rapid.T) {
				if len(m.slots) == 0 {
					t.Skip("nobody is in")
				}
				i := rapid.IntRange(0, len(m.slots)-1).Draw(t, "who")
				slot := m.slots[i].slot
				m.slots = slices.Delete(m.slots, i, i+1)
				slot.Release()
				slot.Release()
				admitted(m.settle())
			},
			"reconfigure": func(t *rapid.T) {
				cfg := drawConfig(t)
				g.Reconfigure(cfg)
				m.limits = cfg.compile()
				m.waiting = slices.DeleteFunc(m.waiting, func(w *modelWaiter) bool {
					w.seats = m.limits.width(w.want)
					if w.seats == 0 {
						<-w.waiter.ready
					}
					return w.seats == 0
				})
				admitted(m.settle())
			},
			"try": func(t *rapid.T) {
				want := drawWant(t)
				w := &modelWaiter{want: want}
				w.want.Batch = want.Batch || want.Class == classify.Download
				w.seats = m.limits.width(w.want)
				slot, ok := g.TryEnter(want)
				if w.seats > 0 {
					m.waiting = append(m.waiting, w)
					w.slot = slot
					m.settle()
					if i := slices.Index(m.waiting, w); i >= 0 {
						m.waiting = slices.Delete(m.waiting, i, i+1)
						w.seats = 0
					}
				}
				if ok != (w.seats > 0) || ok != (slot != nil) {
					t.Fatalf("TryEnter(%+v) is %v", want, ok)
				}
			},
			"": func(t *rapid.T) {
				stats := g.Stats()
				heldBy := map[string]int{}
				for _, s := range m.slots {
					heldBy[s.want.Class.String()] += s.seats
					if s.want.Batch {
						heldBy["batch"] += s.seats
					}
				}
				if stats.Held != m.held(everybody) || stats.Slots != len(m.slots) ||
					stats.Waiting != len(m.waiting) || !maps.Equal(stats.HeldBy, heldBy) {
					t.Fatalf("the gate has %+v, the model %d seats in %d slots, %d waiting, %v",
						stats, m.held(everybody), len(m.slots), len(m.waiting), heldBy)
				}
			},
		})
	})
}
