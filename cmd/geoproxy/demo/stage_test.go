package demo_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/cmd/geoproxy/demo"
)

func stage(t *testing.T) *demo.Stage {
	t.Helper()
	began := time.Now()
	s, err := demo.Start(t.Context(), demo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if took := time.Since(began); took > time.Second {
		t.Errorf("starting took %v", took)
	}
	return s
}

func TestEveryStepBehavesAsPromised(t *testing.T) {
	s := stage(t)
	var out bytes.Buffer
	faults, err := s.Once(t.Context(), &out, false)
	if err != nil || faults != 0 {
		t.Fatalf("%d faults, %v\n%s", faults, err, out.String())
	}
	for _, want := range []string{"Geoproxy-Estimate: ", "Geoproxy-Reason: over-budget", "Retry-After: ", "9 of 9 steps as promised"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q\n%s", want, out.String())
		}
	}
}

func TestStepsAreAlsoForPrograms(t *testing.T) {
	s := stage(t)
	var out bytes.Buffer
	if _, err := s.Once(t.Context(), &out, true); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Steps  []demo.Result
		Pool   demo.PoolStats
		Faults int
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Steps) != 9 || doc.Pool.Size != 8 {
		t.Errorf("%d steps, %+v", len(doc.Steps), doc.Pool)
	}
}

func TestACrowdIsToldWhatBecameOfIt(t *testing.T) {
	s := stage(t)
	res, body := do(t, http.MethodPost, s.URL+"/demo/crowd", "")
	var c struct{ Sent, Answered, Refused int }
	if err := json.Unmarshal(body, &c); err != nil || res.status != http.StatusOK {
		t.Fatalf("%d %v %s", res.status, err, body)
	}
	if c.Sent < 200 || c.Answered+c.Refused != c.Sent || c.Refused == 0 {
		t.Errorf("%+v", c)
	}
	if pool := s.Service.Pool(); pool.PeakBusy != 8 || pool.PeakWaiting != 0 {
		t.Errorf("%+v", pool)
	}
}

func TestTheIntroductionHasALineForEachStep(t *testing.T) {
	s := stage(t)
	var out bytes.Buffer
	if err := s.Introduce(&out); err != nil {
		t.Fatal(err)
	}
	steps, err := s.Steps()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if !strings.Contains(out.String(), step.Curl) || !strings.Contains(step.Curl, s.URL) {
			t.Errorf("%s: no line to paste", step.Name)
		}
	}
	if !strings.Contains(out.String(), s.URL+"/map") {
		t.Error("no map")
	}
}
