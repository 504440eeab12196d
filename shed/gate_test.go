package shed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/geoproxy/geoproxy/classify"
	"github.com/geoproxy/geoproxy/shed"
)

var (
	read     = shed.Want{Class: classify.Read}
	metadata = shed.Want{Class: classify.Metadata}
	mapped   = shed.Want{Class: classify.Map}
	download = shed.Want{Class: classify.Download}
)

func in(d time.Duration) time.Time { return time.Now().Add(d) }

// enter takes seats that must be free.
func enter(t *testing.T, g *shed.Gate, want shed.Want) *shed.Slot {
	t.Helper()
	slot, err := g.Enter(t.Context(), want, in(0))
	if err != nil {
		t.Fatalf("Enter(%+v): %v", want, err)
	}
	return slot
}

func TestEnterRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shed.NewGate("g", shed.GateConfig{Seats: 1, Queue: 1, AtMost: map[string]int{"map": 0}})
		start := time.Now()
		held := enter(t, g, read)

		if _, err := g.Enter(t.Context(), read, in(-time.Second)); !errors.Is(err, shed.ErrLate) {
			t.Errorf("past its deadline: %v", err)
		}
		if _, err := g.Enter(t.Context(), mapped, in(time.Hour)); !errors.Is(err, shed.ErrFull) {
			t.Errorf("a class without seats: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.Enter(gone, read, in(time.Hour)); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has gone: %v", err)
		}

		waiting := make(chan error)
		go func() {
			slot, err := g.Enter(t.Context(), read, in(time.Hour))
			slot.Release()
			waiting <- err
		}()
		synctest.Wait()
		if _, err := g.Enter(t.Context(), metadata, in(time.Hour)); !errors.Is(err, shed.ErrFull) {
			t.Errorf("a full line: %v", err)
		}
		if _, ok := g.TryEnter(read); ok {
			t.Error("TryEnter overtook")
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %v to be refused", time.Since(start))
		}
		held.Release()
		if err := <-waiting; err != nil {
			t.Errorf("the one in line: %v", err)
		}
	})
}

// A token may be due in the very moment of the deadline. Who then finds a seat
// free does not wait, and is not late.
func TestAFreeSeatIsTakenAtTheDeadline(t *testing.T) {
	g := shed.NewGate("g", shed.GateConfig{Seats: 1})
	slot, err := g.Enter(t.Context(), read, in(-time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	slot.Release()
}

func TestNobodyWaitsPastItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shed.NewGate("g", shed.GateConfig{Seats: 1})
		held := enter(t, g, read)
		start := time.Now()
		if _, err := g.Enter(t.Context(), read, in(1500*time.Millisecond)); !errors.Is(err, shed.ErrLate) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took != 1500*time.Millisecond {
			t.Errorf("waited %v", took)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("left"))
		defer cancel()
		if _, err := g.Enter(ctx, read, in(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		held.Release()
		if s := g.Stats(); s.Held != 0 || s.Slots != 0 || s.Waiting != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// 200 at once on 8 seats with a line of 64: 8 are in, 64 wait, and 128 are told
// so at once. Each works for a second, so 16 more are in before it is too late
// for the others.
func TestAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := shed.NewGate("g", shed.GateConfig{Seats: 8})
		start := time.Now()
		var entered, full, late atomic.Int64
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				slot, err := g.Enter(t.Context(), read, in(2500*time.Millisecond))
				defer slot.Release()
				switch took := time.Since(start); {
				case err == nil:
					entered.Add(1)
					time.Sleep(time.Second)
				case errors.Is(err, shed.ErrFull) && took == 0:
					full.Add(1)
				case errors.Is(err, shed.ErrLate) && took == 2500*time.Millisecond:
					late.Add(1)
				default:
					t.Errorf("after %v: %v", took, err)
				}
			})
		}
		wg.Wait()
		if entered.Load() != 24 || full.Load() != 128 || late.Load() != 48 {
			t.Errorf("%d entered, %d found the line full, %d were late; want 24, 128, 48", entered.Load(), full.Load(), late.Load())
		}
	})
}

// arrivals lets requests arrive one after the other and notes in which order
// they are let in; each leaves as soon as it is in.
type arrivals struct {
	gate *shed.Gate
	wg   sync.WaitGroup
	mu   sync.Mutex
	in   []string
}

func (a *arrivals) arrive(t *testing.T, name string, want shed.Want) {
	t.Helper()
	a.wg.Go(func() {
		slot, err := a.gate.Enter(t.Context(), want, in(time.Hour))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		a.mu.Lock()
		a.in = append(a.in, name)
		a.mu.Unlock()
		time.Sleep(time.Second)
		slot.Release()
	})
	synctest.Wait()
}

func TestLineIsServedMetadataFirstBatchLastElseInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &arrivals{gate: shed.NewGate("g", shed.GateConfig{Seats: 1})}
		held := enter(t, a.gate, read)
		a.arrive(t, "batch1", download)
		a.arrive(t, "batch2", shed.Want{Class: classify.Read, Batch: true})
		a.arrive(t, "read1", read)
		a.arrive(t, "map1", mapped)
		a.arrive(t, "metadata1", metadata)
		a.arrive(t, "read2", read)
		a.arrive(t, "metadata2", metadata)
		held.Release()
		a.wg.Wait()
		if want := []string{"metadata1", "metadata2", "read1", "map1", "read2", "batch1", "batch2"}; !slices.Equal(a.in, want) {
			t.Errorf("served %v, want %v", a.in, want)
		}
	})
}

func TestAWideRequestIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &arrivals{gate: shed.NewGate("g", shed.GateConfig{Seats: 8, SeatSeconds: time.Second, MaxSeats: 4})}
		var held []*shed.Slot
		for range 6 {
			held = append(held, enter(t, a.gate, read))
		}
		a.arrive(t, "wide", shed.Want{Class: classify.Read, Seconds: 99}) // 4 of the 2 free
		a.arrive(t, "narrow", mapped)
		if len(a.in) != 0 {
			t.Fatalf("%v overtook", a.in)
		}
		held[0].Release()
		synctest.Wait()
		if len(a.in) != 0 {
			t.Fatalf("%v is in with 3 seats free", a.in)
		}
		held[1].Release()
		synctest.Wait()
		if !slices.Equal(a.in, []string{"wide"}) {
			t.Fatalf("with 4 seats free %v is in", a.in)
		}
		for _, s := range held {
			s.Release()
		}
		a.wg.Wait()
	})
}

// The last in line may go as soon as the wide one before it has given up.
func TestLeavingLetsThoseBehindIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &arrivals{gate: shed.NewGate("g", shed.GateConfig{Seats: 8, SeatSeconds: time.Second, MaxSeats: 4})}
		var held []*shed.Slot
		for range 6 {
			held = append(held, enter(t, a.gate, read))
		}
		go func() { _, _ = a.gate.Enter(t.Context(), shed.Want{Class: classify.Read, Seconds: 4}, in(time.Minute)) }()
		synctest.Wait()
		a.arrive(t, "narrow", read)
		start := time.Now()
		a.wg.Wait()
		if took := time.Since(start); took != time.Minute+time.Second {
			t.Errorf("let in and out again after %v", took)
		}
		for _, s := range held {
			s.Release()
		}
	})
}

func TestACapHoldsBackOnlyItsClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &arrivals{gate: shed.NewGate("g", shed.GateConfig{Seats: 8, AtMost: map[string]int{"map": 1, "batch": 1}})}
		held := []*shed.Slot{enter(t, a.gate, mapped), enter(t, a.gate, download)}
		a.arrive(t, "map", mapped)
		a.arrive(t, "batch", shed.Want{Class: classify.Read, Batch: true})
		a.arrive(t, "read", read)
		if !slices.Equal(a.in, []string{"read"}) {
			t.Errorf("in are %v, want only read", a.in)
		}
		s := a.gate.Stats()
		if s.HeldBy["map"] != 1 || s.HeldBy["batch"] != 1 || s.HeldBy["download"] != 1 || s.HeldBy["read"] != 1 {
			t.Errorf("held by %v", s.HeldBy)
		}
		for _, slot := range held {
			slot.Release()
		}
		a.wg.Wait()
	})
}

// Within a cap the order is as strict as in the line: a wide request that the
// cap holds back is not overtaken by narrower ones under the same cap.
func TestACapHoldsBackAllThatAreUnderIt(t *testing.T) {
	for _, c := range []struct {
		cap                string
		in, wide, narrower shed.Want
	}{
		{"batch", download, shed.Want{Class: classify.Read, Batch: true, Seconds: 2}, download},
		{"map", mapped, shed.Want{Class: classify.Map, Seconds: 2}, shed.Want{Class: classify.Map, Batch: true}},
	} {
		t.Run(c.cap, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &arrivals{gate: shed.NewGate("g", shed.GateConfig{
					Seats: 16, SeatSeconds: time.Second, MaxSeats: 2, AtMost: map[string]int{c.cap: 2},
				})}
				held := enter(t, a.gate, c.in)
				a.arrive(t, "wide", c.wide)
				a.arrive(t, "narrower", c.narrower)
				if len(a.in) != 0 {
					t.Errorf("%v entered", a.in)
				}
				held.Release()
				a.wg.Wait()
				if !slices.Equal(a.in, []string{"wide", "narrower"}) {
					t.Errorf("served %v", a.in)
				}
			})
		})
	}
}

func TestReconfigureToFewerSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &arrivals{gate: shed.NewGate("g", shed.GateConfig{Seats: 4})}
		var held []*shed.Slot
		for range 4 {
			held = append(held, enter(t, a.gate, read))
		}
		a.gate.Reconfigure(shed.GateConfig{Seats: 2})
		a.arrive(t, "next", read)
		for i, slot := range held[:3] {
			if len(a.in) != 0 {
				t.Fatalf("somebody entered after %d of a surplus of 2 had left", i)
			}
			slot.Release()
			synctest.Wait()
		}
		if len(a.in) != 1 {
			t.Error("nobody entered when the surplus had left")
		}
		held[3].Release()
		a.wg.Wait()
	})
}

func TestReconfigureToMoreSeatsLetsTheLineIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &arrivals{gate: shed.NewGate("g", shed.GateConfig{Seats: 1})}
		held := enter(t, a.gate, read)
		for i := range 3 {
			a.arrive(t, fmt.Sprint(i), read)
		}
		refused := make(chan error, 1)
		go func() {
			_, err := a.gate.Enter(t.Context(), mapped, in(time.Hour))
			refused <- err
		}()
		synctest.Wait()
		a.gate.Reconfigure(shed.GateConfig{Seats: 3, AtMost: map[string]int{"map": 0}})
		synctest.Wait()
		if len(a.in) != 2 {
			t.Errorf("%v entered, want the first two", a.in)
		}
		if err := <-refused; !errors.Is(err, shed.ErrFull) {
			t.Errorf("a class that lost its seats: %v", err)
		}
		held.Release()
		a.wg.Wait()
	})
}

func TestReleaseIsOnce(t *testing.T) {
	var none *shed.Slot
	none.Release()
	g := shed.NewGate("g", shed.GateConfig{Seats: 2})
	a, b := enter(t, g, read), enter(t, g, read)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(a.Release)
	}
	wg.Wait()
	if s := g.Stats(); s.Held != 1 || s.Slots != 1 {
		t.Errorf("one of two released: %+v", s)
	}
	b.Release()
}

func TestSeatsOfAnEstimate(t *testing.T) {
	g := shed.NewGate("g", shed.GateConfig{
		Seats: 32, SeatSeconds: 100 * time.Millisecond, MaxSeats: 8, AtMost: map[string]int{"map": 3, "batch": 2},
	})
	for _, c := range []struct {
		want  shed.Want
		seats int
	}{
		{shed.Want{Class: classify.Read}, 1},
		{shed.Want{Class: classify.Read, Seconds: -1}, 1},
		{shed.Want{Class: classify.Read, Seconds: 0.1}, 1},
		{shed.Want{Class: classify.Read, Seconds: 0.11}, 2},
		{shed.Want{Class: classify.Read, Seconds: 0.3}, 3}, // 0.3/0.1 is a hair below 3
		{shed.Want{Class: classify.Read, Seconds: 0.6}, 6},
		{shed.Want{Class: classify.Read, Seconds: 3600}, 8},
		{shed.Want{Class: classify.Read, Seconds: math.Inf(1)}, 8},
		{shed.Want{Class: classify.Read, Seconds: math.NaN()}, 8},
		{shed.Want{Class: classify.Map, Seconds: 3600}, 3},
		{shed.Want{Class: classify.Read, Seconds: 3600, Batch: true}, 2},
		{shed.Want{Class: classify.Download, Seconds: 3600}, 2},
		{shed.Want{Class: 200, Seconds: 3600}, 8},
	} {
		slot := enter(t, g, c.want)
		if slot.Seats() != c.seats {
			t.Errorf("%+v takes %d seats, want %d", c.want, slot.Seats(), c.seats)
		}
		if n := g.SeatsFor(c.want); n != c.seats {
			t.Errorf("SeatsFor(%+v) is %d, want %d", c.want, n, c.seats)
		}
		slot.Release()
	}
}

// Callers enter, wait, give up and release from everywhere while the gate
// shrinks and grows. What is in never exceeds the largest of its limits, and
// nothing is left behind.
func TestManyCallersAtOnce(t *testing.T) {
	const seats = 8
	g := shed.NewGate("g", shed.GateConfig{Seats: seats, SeatSeconds: time.Second, MaxSeats: 3})
	var inside, entered, late atomic.Int64
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			want := shed.Want{Class: classify.Classes()[i%11], Batch: i%7 == 0, Seconds: float64(i % 5)}
			for round := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+round)%3 == 0 {
					go cancel()
				}
				slot, err := g.Enter(ctx, want, in(time.Duration((i+round)%4)*time.Millisecond))
				if err != nil {
					late.Add(1)
					cancel()
					continue
				}
				if now := inside.Add(int64(slot.Seats())); now > seats {
					t.Errorf("%d seats held of %d", now, seats)
				}
				entered.Add(1)
				runtime.Gosched()
				inside.Add(-int64(slot.Seats()))
				slot.Release()
				cancel()
			}
		})
	}
	stop := make(chan struct{})
	var reload sync.WaitGroup
	reload.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			g.Reconfigure(shed.GateConfig{Seats: 4 + n%5, SeatSeconds: time.Second, MaxSeats: 1 + n%2})
			runtime.Gosched()
		}
	})
	callers.Wait()
	close(stop)
	reload.Wait()
	if s := g.Stats(); s.Held != 0 || s.Slots != 0 || s.Waiting != 0 || len(s.HeldBy) != 0 {
		t.Errorf("left behind: %+v", s)
	}
	if entered.Load() == 0 || late.Load() == 0 {
		t.Errorf("%d entered, %d did not: this showed nothing", entered.Load(), late.Load())
	}
}

func TestGateConfigCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  shed.GateConfig
		want []string
	}{
		{"smallest", shed.GateConfig{Seats: 1}, nil},
		{"full", shed.GateConfig{
			Seats: 32, Queue: 5, Connections: 8, SeatSeconds: time.Second, MaxSeats: 16,
			AtMost: map[string]int{"map": 4, "batch": 2, "write": 0},
		}, nil},
		{"empty", shed.GateConfig{}, []string{"seats"}},
		{"too many", shed.GateConfig{Seats: 100_001}, []string{"seats"}},
		{"no seats and a line of less than nobody", shed.GateConfig{Queue: -1}, []string{"queue", "seats"}},
		{"everything else", shed.GateConfig{
			Seats: 8, Queue: -1, Connections: 9, SeatSeconds: -1, AtMost: map[string]int{"map": 9, "maps": 1, "read": -1},
		}, []string{"queue", "at_most.map", "at_most.maps", "at_most.read", "connections", "seat_seconds"}},
		{"wider than half", shed.GateConfig{Seats: 8, SeatSeconds: time.Second, MaxSeats: 5}, []string{"max_seats"}},
		{"width of nothing", shed.GateConfig{Seats: 8, MaxSeats: 2}, []string{"max_seats"}},
		{"no width", shed.GateConfig{Seats: 8, SeatSeconds: time.Second}, []string{"seat_seconds"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			c.cfg.Check(func(path, message string) {
				got = append(got, path)
				if message == "" {
					t.Errorf("%s: no message", path)
				}
			})
			if !slices.Equal(got, c.want) {
				t.Errorf("mistakes at %v, want %v", got, c.want)
			}
		})
	}
}

func BenchmarkGateEnter(b *testing.B) {
	deadline := in(time.Hour)
	ctx := b.Context()
	b.Run("uncontended", func(b *testing.B) {
		g := shed.NewGate("g", shed.GateConfig{Seats: 8})
		b.ReportAllocs()
		for b.Loop() {
			slot, _ := g.Enter(ctx, read, deadline)
			slot.Release()
		}
	})
	b.Run("parallel", func(b *testing.B) {
		g := shed.NewGate("g", shed.GateConfig{Seats: 1000})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				slot, _ := g.Enter(ctx, read, deadline)
				slot.Release()
			}
		})
	})
	b.Run("contended", func(b *testing.B) {
		g := shed.NewGate("g", shed.GateConfig{Seats: 8, Queue: 1000})
		b.ReportAllocs()
		b.SetParallelism(100)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				slot, err := g.Enter(ctx, read, deadline)
				if err != nil {
					b.Error(err)
				}
				runtime.Gosched()
				slot.Release()
			}
		})
	})
	b.Run("refused", func(b *testing.B) {
		g := shed.NewGate("g", shed.GateConfig{Seats: 1})
		slot, _ := g.Enter(ctx, read, deadline)
		defer slot.Release()
		late := in(-time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = g.Enter(ctx, read, late)
		}
	})
}
