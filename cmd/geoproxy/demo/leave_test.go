package demo_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/geoproxy/geoproxy/cmd/geoproxy/demo"
)

// dear holds a connection for 1.2 seconds.
const dear = "/collections/countries/items?limit=241"

func TestAQueryOutlivesItsClient(t *testing.T) {
	for _, test := range []struct {
		name    string
		cancels bool
		served  int // or more: a connection may be handed over before the next in line knows that it has left
	}{
		{"by default", false, 20},
		{"unless the service looks", true, 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := demo.NewService()
				defer service.Close()
				service.Cancels = test.cancels
				ctx, leave := context.WithCancel(t.Context())
				for range 20 {
					go service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, dear, nil))
				}
				synctest.Wait()
				if stats := service.Pool(); stats.Busy != 8 || stats.Waiting != 12 {
					t.Fatalf("before they leave: %+v", stats)
				}
				leave()
				synctest.Wait()
				stats := service.Pool()
				if test.cancels != (stats.Busy == 0 && stats.Waiting == 0) {
					t.Errorf("after they left: %+v", stats)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if stats := service.Pool(); stats.Busy != 0 || stats.Waiting != 0 || stats.Served < test.served || stats.PeakBusy != 8 {
					t.Errorf("at the end: %+v, want %d served or more", stats, test.served)
				}
			})
		})
	}
}

func TestCloseEndsWhatRunsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := demo.NewService()
		for range 20 {
			go service.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, dear, nil))
		}
		synctest.Wait()
		service.Close()
		synctest.Wait()
		if stats := service.Pool(); stats.Busy != 0 || stats.Waiting != 0 {
			t.Errorf("%+v", stats)
		}
	})
}
