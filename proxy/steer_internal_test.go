package proxy

import (
	"net/http"
	"testing"
	"time"
)

func TestReadSteer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		want        steer
	}{
		{"Prefer", "respond-async", steer{async: true}},
		{"Prefer", "Respond-Async, wait=5", steer{async: true, wait: 5 * time.Second, within: 5 * time.Second}},
		{"Prefer", `return=minimal, wait="7"`, steer{wait: 7 * time.Second, within: 7 * time.Second}},
		{"Prefer", "wait=-1", steer{}},
		{"Prefer", "wait=99999999999999999999", steer{}},
		{"Prefer", "wait=4000000000", steer{wait: longest, within: longest}},
		{"Priority", "u=7", steer{batch: true}},
		{"Priority", "u=6, i", steer{batch: true}},
		{"Priority", "u=5", steer{}},
		{"Priority", "u=9", steer{}},
		{"Priority", "i;;", steer{}},
		{"Grpc-Timeout", "250m", steer{within: 250 * time.Millisecond}},
		{"Grpc-Timeout", "99999999H", steer{within: longest}},
		{"Grpc-Timeout", "999999999S", steer{}},
		{"Grpc-Timeout", "5x", steer{}},
		{"X-Envoy-Expected-Rq-Timeout-Ms", "1500", steer{within: 1500 * time.Millisecond}},
	} {
		if got := readSteer(http.Header{c.name: {c.value}}); got != c.want {
			t.Errorf("%s: %s: %+v; want %+v", c.name, c.value, got, c.want)
		}
	}
	both := http.Header{"Prefer": {"wait=5"}, "Grpc-Timeout": {"2S"}, "X-Envoy-Expected-Rq-Timeout-Ms": {"3000"}}
	if got := readSteer(both).within; got != 2*time.Second {
		t.Errorf("the shortest of several: %s; want 2s", got)
	}
}

func FuzzReadSteer(f *testing.F) {
	f.Add("respond-async, wait=5", "u=3, i", "10S", "1000")
	f.Add(`wait="`, "u=?1;a", "S", "-")
	f.Fuzz(func(t *testing.T, prefer, priority, grpc, envoy string) {
		s := readSteer(http.Header{"Prefer": {prefer}, "Priority": {priority}, "Grpc-Timeout": {grpc}, "X-Envoy-Expected-Rq-Timeout-Ms": {envoy}})
		if s.wait < 0 || s.within < 0 || s.within > longest || (s.wait > 0 && s.within > s.wait) {
			t.Errorf("%q %q %q %q: %+v", prefer, priority, grpc, envoy, s)
		}
	})
}
