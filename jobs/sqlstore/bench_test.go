package sqlstore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/jobs"
	"github.com/geoproxy/geoproxy/jobs/sqlstore"
)

// ended is how many ended jobs a store holds in the benchmarks that ask whether
// those slow anything.
const ended = 1_000_000

// benchStores are an empty store and one with a million ended jobs, of each
// engine.
func benchStores(b *testing.B, f func(b *testing.B, s *sqlstore.Store)) {
	b.Helper()
	for _, full := range []bool{false, true} {
		suffix := ""
		if full {
			suffix = ", a million ended"
		}
		if full && testing.Short() {
			continue
		}
		b.Run("sqlite"+suffix, func(b *testing.B) {
			s, err := sqlstore.OpenSQLite(b.Context(), b.TempDir())
			bench(b, s, err, full, f)
		})
		b.Run("postgres"+suffix, func(b *testing.B) {
			s, err := sqlstore.OpenPostgres(b.Context(), server.dsn(b))
			bench(b, s, err, full, f)
		})
	}
}

func bench(b *testing.B, s *sqlstore.Store, err error, full bool, f func(b *testing.B, s *sqlstore.Store)) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if full {
		if err := s.Fill(b.Context(), ended); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	f(b, s)
}

// drain keeps the queue short, so that submissions are never refused.
func drain(ctx context.Context, tb testing.TB, s *sqlstore.Store, stop <-chan struct{}) {
	tb.Helper()
	for {
		list, err := s.Claim(ctx, "w", "q", 64, time.Minute)
		if err != nil {
			tb.Error(err)
			return
		}
		for _, j := range list {
			if err := s.Finish(ctx, key(j), jobs.Ending{State: jobs.Failed, Reason: "x"}); err != nil {
				tb.Error(err)
			}
		}
		select {
		case <-stop:
			return
		default:
		}
		if len(list) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func BenchmarkSubmit(b *testing.B) {
	benchStores(b, func(b *testing.B, s *sqlstore.Store) {
		b.Helper()
		times := make([]time.Duration, 0, b.N)
		for b.Loop() {
			sub := submission("q", "a")
			sub.Limits.Depth, sub.Limits.Wait = 1<<30, 1<<62
			began := time.Now()
			if _, err := s.Submit(b.Context(), sub); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(began))
			b.StopTimer()
			if j, err := s.Claim(b.Context(), "w", "q", 1, time.Minute); err != nil || len(j) != 1 {
				b.Fatal(err)
			} else if err := s.Finish(b.Context(), key(j[0]), jobs.Ending{State: jobs.Failed, Reason: "x"}); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	})
}

// BenchmarkSubmitMany is 32 submitters at once, with the exact admission of a
// queue of a thousand that is being worked off.
func BenchmarkSubmitMany(b *testing.B) {
	benchStores(b, func(b *testing.B, s *sqlstore.Store) {
		b.Helper()
		stop := make(chan struct{})
		var worker, submitters sync.WaitGroup
		worker.Go(func() { drain(b.Context(), b, s, stop) })
		work := make(chan struct{})
		for range 32 {
			submitters.Go(func() {
				for range work {
					for {
						sub := submission("q", "a")
						sub.Limits.Wait = 1 << 62
						if _, err := s.Submit(b.Context(), sub); err == nil {
							break
						}
					}
				}
			})
		}
		began := time.Now()
		n := 0
		for b.Loop() {
			work <- struct{}{}
			n++
		}
		close(work)
		submitters.Wait()
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "accepted/s")
		close(stop)
		worker.Wait()
	})
}

func BenchmarkClaimAndFinish(b *testing.B) {
	benchStores(b, func(b *testing.B, s *sqlstore.Store) {
		b.Helper()
		for b.Loop() {
			b.StopTimer()
			sub := submission("q", "a")
			if _, err := s.Submit(b.Context(), sub); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			list, err := s.Claim(b.Context(), "w", "q", 1, time.Minute)
			if err != nil || len(list) != 1 {
				b.Fatal(len(list), err)
			}
			if err := s.Finish(b.Context(), key(list[0]), jobs.Ending{State: jobs.Failed, Reason: "x"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkIdle is one tick, beat and a thirtieth of a sweep of an engine that
// has nothing to do.
func BenchmarkIdle(b *testing.B) {
	benchStores(b, func(b *testing.B, s *sqlstore.Store) {
		b.Helper()
		n := 0
		for b.Loop() {
			_, err1 := s.Ready(b.Context())
			_, err2 := s.Reap(b.Context())
			_, err3 := s.Depths(b.Context())
			if err1 != nil || err2 != nil || err3 != nil {
				b.Fatal(err1, err2, err3)
			}
			if n++; n%30 == 1 {
				if _, err := s.Sweep(b.Context(), map[string]int64{"q": 1 << 40}, time.Hour); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
