package ratelimit

import (
	"cmp"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The buckets are checked against the same arithmetic in fractions of any size,
// without clamps, shards, drops or bounds.
type model map[Key]*big.Rat // when a bucket will be full, in nanoseconds

func ratio(a, b int64) *big.Rat { return big.NewRat(a, b) }

func (l Limit) exactSpan(m Milli) *big.Rat {
	r := ratio(int64(m), int64(l.Tokens))
	return r.Mul(r, ratio(int64(l.Every), 1))
}

func (m model) full(key Key, now int64) *big.Rat {
	at := ratio(now, 1)
	if kept := m[key]; kept != nil && kept.Cmp(at) > 0 {
		at.Set(kept)
	}
	return at
}

// due is when the cost can be had.
func (m model) due(d Draw, now int64) *big.Rat {
	at := m.full(d.Key, now)
	at.Add(at, d.Limit.exactSpan(d.Cost))
	at.Sub(at, d.Limit.exactSpan(d.Limit.Burst))
	if at.Cmp(ratio(now, 1)) < 0 {
		at.SetInt64(now)
	}
	return at
}

func (m model) reserve(draws []Draw, wait, now int64) bool {
	before := model{}
	for _, d := range draws {
		before[d.Key] = m.full(d.Key, now)
	}
	for _, d := range draws {
		if d.Cost > d.Limit.Burst || m.due(d, now).Cmp(ratio(now+wait, 1)) > 0 {
			maps.Copy(m, before)
			return false
		}
		full := m.full(d.Key, now)
		m[d.Key] = full.Add(full, d.Limit.exactSpan(d.Cost))
	}
	return true
}

func (m model) refund(draws []Draw, now int64) {
	for _, d := range draws {
		full := m.full(d.Key, now)
		m[d.Key] = full.Sub(full, d.Limit.exactSpan(d.Cost))
	}
}

func (m model) left(key Key, limit Limit, now int64) Milli {
	missing := m.full(key, now)
	missing.Sub(missing, ratio(now, 1))
	missing.Mul(missing, ratio(int64(limit.Tokens), int64(limit.Every)))
	left := ratio(int64(limit.Burst), 1)
	left.Sub(left, missing)
	if left.Sign() <= 0 {
		return 0
	}
	return Milli(new(big.Int).Div(left.Num(), left.Denom()).Int64())
}

// logarithmic draws a number whose size, and not only whose value, varies.
func logarithmic(low, high float64) *rapid.Generator[int64] {
	return rapid.Custom(func(t *rapid.T) int64 {
		x := rapid.Float64Range(math.Log(low), math.Log(high)).Draw(t, "log")
		return int64(max(low, min(high, math.Round(math.Exp(x)))))
	})
}

// drawLimit draws a limit as Check allows it.
func drawLimit(t *rapid.T) Limit {
	l := Limit{
		Tokens: Milli(logarithmic(1, 1e12).Draw(t, "tokens")),
		Every:  time.Duration(logarithmic(1e6, 3.6e12).Draw(t, "every")),
	}
	most := min(1e12, maxRefill.Seconds()*1e9/float64(l.Every)*float64(l.Tokens))
	l.Burst = Milli(logarithmic(1, max(1, most)).Draw(t, "burst"))
	return l
}

func TestLocalDecidesLikeTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := []Limit{drawLimit(t), drawLimit(t)}
		keys := []Key{{"p0", "a"}, {"p0", "b"}, {"p0", ""}, {"p1", "a"}, {"p1", ""}}
		limit := func(k Key) Limit { return limits[k.Policy[1]-'0'] }
		// Both tables have room for all, the small one by dropping what has refilled.
		l := NewLocal(rapid.SampledFrom([]int{len(keys), 1000}).Draw(t, "max"))
		m := model{}
		now := int64(0)
		var out [][]Draw // reserved, and not yet used or given back

		drawDraws := func(t *rapid.T) []Draw {
			draws := make([]Draw, rapid.IntRange(1, 6).Draw(t, "draws"))
			for i := range draws {
				key := rapid.SampledFrom(keys).Draw(t, "key")
				most := limit(key).Burst
				draws[i] = Draw{Key: key, Limit: limit(key), Cost: Milli(logarithmic(1, float64(most)+1).Draw(t, "cost"))}
			}
			return draws
		}
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				// As long as matters to one of the limits.
				whole := float64(wholeSpan(limits[rapid.IntRange(0, 1).Draw(t, "limit")]))
				now += int64(rapid.Float64Range(0, 1.5).Draw(t, "part") * whole)
			},
			"reserve": func(t *rapid.T) {
				draws := drawDraws(t)
				wait := int64(0)
				if rapid.Bool().Draw(t, "waits") {
					wait = logarithmic(1, 1e15).Draw(t, "wait")
				}
				g := l.reserve(draws, time.Duration(wait), now)
				if g.OK != m.reserve(draws, wait, now) {
					t.Fatalf("%+v: got %+v, the model disagrees", draws, g)
				}
				if g.Never && draws[g.Draw].Cost <= draws[g.Draw].Limit.Burst {
					t.Fatalf("%+v would fit some time, got %+v", draws, g)
				}
				if g.OK && int64(g.Wait) > wait {
					t.Fatalf("may wait %d, is due in %d", wait, g.Wait)
				}
				if g.OK {
					out = append(out, draws)
				}
			},
			"refund": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("nothing is out")
				}
				l.refund(out[0], now)
				m.refund(out[0], now)
				out = out[1:]
			},
			"": func(t *rapid.T) {
				for _, key := range keys {
					if got, want := l.left(key, limit(key), now), m.left(key, limit(key), now); got != want {
						t.Fatalf("%v has %d left, the model %d", key, got, want)
					}
				}
				if l.Len() > len(keys) {
					t.Fatalf("%d buckets for %d keys", l.Len(), len(keys))
				}
			},
		})
	})
}

// In no window is more admitted than burst + rate x window, but for what was
// given back of draws due before it. Due times are rounded up to a nanosecond,
// which a window may thereby be too short.
func TestNoWindowAdmitsMoreThanBurstAndRate(t *testing.T) {
	type admission struct {
		draws    []Draw
		at       int64
		refunded bool
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := drawLimit(t)
		whole := float64(wholeSpan(limit))
		refunds := rapid.Bool().Draw(t, "refunds")
		l := NewLocal(10)
		var all []*admission
		now := int64(0)
		for range 60 {
			now += int64(rapid.Float64Range(0, 0.3).Draw(t, "pass") * whole)
			draws := []Draw{{Key: Key{"p", "a"}, Limit: limit, Cost: Milli(logarithmic(1, float64(limit.Burst)).Draw(t, "cost"))}}
			wait := time.Duration(rapid.Float64Range(0, 3).Draw(t, "wait") * whole)
			if g := l.reserve(draws, wait, now); g.OK {
				all = append(all, &admission{draws, now + int64(g.Wait), false})
			}
			if n := len(all); n > 0 && refunds && rapid.Bool().Draw(t, "refund") {
				if a := all[rapid.IntRange(0, n-1).Draw(t, "which")]; !a.refunded {
					a.refunded = true
					l.refund(a.draws, now)
				}
			}
		}
		slices.SortStableFunc(all, func(a, b *admission) int { return cmp.Compare(a.at, b.at) })
		before := new(big.Rat) // given back of draws due before the window
		for i, first := range all {
			spent := new(big.Rat).Neg(before) // in time, as it is exact there
			for _, a := range all[i:] {
				if a.refunded {
					continue
				}
				spent.Add(spent, limit.exactSpan(a.draws[0].Cost))
				most := limit.exactSpan(limit.Burst)
				most.Add(most, ratio(a.at-first.at+1, 1))
				if spent.Cmp(most) > 0 {
					t.Fatalf("%s ns of %+v were spent within %d ns", spent.FloatString(1), limit, a.at-first.at)
				}
			}
			if first.refunded {
				before.Add(before, limit.exactSpan(first.draws[0].Cost))
			}
		}
	})
}

// A refund at the same instant leaves no trace, in debt or not.
func TestRefundRestoresExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bucket{limit: drawLimit(t)}
		cost := logarithmic(1, float64(b.limit.Burst))
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			b.debit(Milli(cost.Draw(t, "cost")), 1, maxSpan, 0)
		}
		b.refill(7)
		before, taken := b, Milli(cost.Draw(t, "taken"))
		if _, ok, _ := b.debit(taken, 1, maxSpan, 7); ok {
			b.credit(taken, 7)
		}
		if b != before {
			t.Fatalf("%+v became %+v", before, b)
		}
	})
}

// A third of a nanosecond a thousandth: rounding each would be off by a third
// of the rate.
func TestRateDoesNotDrift(t *testing.T) {
	b := bucket{limit: Limit{Tokens: 3e9, Every: time.Second, Burst: 10}}
	for range 3_000_000 {
		if _, ok, _ := b.debit(1, 1, math.MaxInt64, 0); !ok {
			t.Fatal("refused")
		}
	}
	if b.full != int64(time.Millisecond) || b.frac != 0 {
		t.Errorf("3e6 of 3e9/s take %d + %d/3e9 ns, want 1ms", b.full, b.frac)
	}
}

func TestAdoptKeepsTheUsedShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bucket{limit: drawLimit(t)}
		for range rapid.IntRange(0, 5).Draw(t, "draws") {
			b.debit(Milli(logarithmic(1, float64(b.limit.Burst)).Draw(t, "cost")), 1, maxSpan, 0)
		}
		was, limit := float64(b.reset(0))/float64(wholeSpan(b.limit)), drawLimit(t)
		b.adopt(limit, 0)
		is := float64(b.reset(0)) / float64(wholeSpan(limit))
		// Up to a nanosecond of the new whole, and the error of this test's own division.
		if slack := 1/float64(wholeSpan(limit)) + 1e-9*was; is < was-slack || is > was+slack {
			t.Fatalf("%v of it were used, now %v", was, is)
		}
	})
}

// Whatever a limit holds, nothing overflows into a free lunch.
func TestAbsurdLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		any64 := rapid.Int64()
		l := NewLocal(10)
		now := int64(0)
		for range 20 {
			limit := Limit{Milli(any64.Draw(t, "tokens")), time.Duration(any64.Draw(t, "every")), Milli(any64.Draw(t, "burst"))}
			draws := []Draw{{Key: Key{"p", "a"}, Limit: limit, Cost: Milli(any64.Draw(t, "cost"))}}
			now += rapid.Int64Range(0, 1e17).Draw(t, "pass")
			g := l.reserve(draws, time.Duration(any64.Draw(t, "wait")), now)
			if g.Wait < 0 || g.Left < 0 || g.Reset < 0 || g.OK && draws[0].Cost > max(0, limit.Burst) {
				t.Fatalf("%+v: %+v", draws, g)
			}
			if rapid.Bool().Draw(t, "refund") {
				l.refund(draws, now)
			}
			if left := l.left(draws[0].Key, limit, now); left > max(0, limit.Burst) {
				t.Fatalf("%d left of %+v", left, limit)
			}
		}
	})
}
