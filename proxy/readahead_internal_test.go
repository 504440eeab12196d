package proxy

import (
	"bytes"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestRing writes and reads in any order and size: what comes out is what went
// in, and the memory set aside stays within both bounds and is all given back.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var total atomic.Int64
		size := int64(rapid.IntRange(1, 4*chunkSize).Draw(t, "size"))
		limit := int64(rapid.IntRange(0, 4*chunkSize).Draw(t, "limit"))
		r := newRing(size, &total, limit)
		if r == nil {
			if limit >= chunkSize {
				t.Fatal("no ring, though there is room")
			}
			return
		}
		var in, out []byte
		var next byte
		buf := make([]byte, 2*chunkSize)
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				room := r.room()
				if room == nil {
					if r.empty() {
						t.Fatal("neither room nor bytes: both sides would wait forever")
					}
					return
				}
				n := rapid.IntRange(0, len(room)).Draw(t, "n")
				for i := range room[:n] {
					room[i] = next
					next++
				}
				in = append(in, room[:n]...)
				r.add(n)
			},
			"read": func(t *rapid.T) {
				if r.empty() {
					return
				}
				n := r.take(buf[:rapid.IntRange(1, len(buf)).Draw(t, "n")])
				if n == 0 {
					t.Fatal("not empty, and nothing to take")
				}
				out = append(out, buf[:n]...)
			},
			"": func(t *rapid.T) {
				if total.Load() > limit || total.Load() > max(size, chunkSize) {
					t.Fatalf("%d bytes set aside", total.Load())
				}
			},
		})
		for !r.empty() {
			out = append(out, buf[:r.take(buf)]...)
		}
		if !bytes.Equal(in, out) {
			t.Fatalf("%d bytes in, %d out, or in another order", len(in), len(out))
		}
		if r.free(); total.Load() != 0 {
			t.Fatalf("%d bytes not given back", total.Load())
		}
	})
}

// TestPace checks that only waiting counts, and that a burst before it does not.
func TestPace(t *testing.T) {
	const rate = 4 << 10
	p := new(pace)
	now := slowWindow
	for range 1000 { // a caller that never keeps anybody waiting
		p.begin(now)
		now += patience / 2
		p.end(now, 1)
	}
	if p.slow(now, rate, 0) {
		t.Error("slow, though it was never waited for")
	}
	p.begin(now)
	if p.slow(now+slowWindow-1, rate, 0) {
		t.Error("slow before the window is over")
	}
	if !p.slow(now+slowWindow, rate, 0) {
		t.Error("nothing moved for a whole window")
	}
	now += slowWindow
	p.end(now+slowWindow, rate*30)
	if p.slow(now+slowWindow, rate, 0) {
		t.Error("slow at exactly the rate")
	}
}
