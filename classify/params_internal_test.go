package classify

import (
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestReadQuery(t *testing.T) {
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", nil},
		{"a=1", []string{"a=1"}},
		{"a=1&b=2", []string{"a=1", "b=2"}},
		{"&&a=1&", []string{"a=1"}},
		{"a", []string{"a="}},
		{"=1", []string{"=1"}},
		{"a=b=c", []string{"a=b=c"}},
		{"a=1&a=2", []string{"a=1", "a=2"}},
		{"DataInputs=distance=35;unit=km", []string{"DataInputs=distance=35;unit=km", "DataInputs=distance=35", "unit=km"}},
		{"a=1;b=2&c=3", []string{"a=1;b=2", "a=1", "b=2", "c=3"}},
		{";", []string{";="}},
		{"a=1;;", []string{"a=1;;", "a=1"}},
		{"%61=%31", []string{"a=1"}},
		{"a+b=c+d", []string{"a b=c d"}},
		{"a=%", []string{"a=%"}},
		{"a=%zz%4", []string{"a=%zz%4"}},
		{"a=100%25", []string{"a=100%"}},
	} {
		var got []string
		for q := readQuery(c.query); q.next(); {
			got = append(got, q.key.text()+"="+q.value.text())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.query, got, c.want)
		}
	}
}

func TestEscapedIs(t *testing.T) {
	for _, c := range []struct {
		e, name  escaped
		is, fold bool
	}{
		{"limit", "limit", true, true},
		{"LIMIT", "limit", false, true},
		{"%6Cimit", "limit", true, true},
		{"%4CIMIT", "limit", false, true},
		{"limit2", "limit", false, false},
		{"limi", "limit", false, false},
		{"limi%", "limit", false, false},
		{"", "limit", false, false},
		{"%6C%69%6D%69%74", "limit", true, true},
	} {
		if got := c.e.is(string(c.name)); got != c.is {
			t.Errorf("%q is %q: %v", c.e, c.name, got)
		}
		if got := c.e.isFold(string(c.name)); got != c.fold {
			t.Errorf("%q is %q, whatever its case: %v", c.e, c.name, got)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		e    escaped
		want float64 // NaN is none
	}{
		{"0", 0},
		{"-0.5", -0.5},
		{"1e3", 1000},
		{"1E%2B3", 1000},
		{"1E+3", math.NaN()}, // a space in it
		{"1.5e-3", 0.0015},
		{"%31%30", 10},
		{"+10", 10}, // a space before it
		{" 10 ", 10},
		{"99999999999999999999", 1e9},
		{"-99999999999999999999", -1e9},
		{"1e400", 1e9},
		{"-1e400", -1e9},
		{"1e-400", 0},
		{"", math.NaN()},
		{"-", math.NaN()},
		{".5", math.NaN()},
		{"1.", math.NaN()},
		{"%2B1", math.NaN()},
		{"1e", math.NaN()},
		{"1e+", math.NaN()},
		{"0x10", math.NaN()},
		{"0x1p-2", math.NaN()},
		{"1_000", math.NaN()},
		{"NaN", math.NaN()},
		{"Inf", math.NaN()},
		{"1,5", math.NaN()},
		{"１０", math.NaN()},
		{"00000000000000000000000000000010", 10},
		{"000000000000000000000000000000010", math.NaN()},
		{escaped(strings.Repeat("%30", 32)), 0},
		{escaped(strings.Repeat("%30", 33)), math.NaN()},
	} {
		got, ok := c.e.number()
		if ok == math.IsNaN(c.want) || ok && got != c.want {
			t.Errorf("%q: %v %v, want %v", c.e, got, ok, c.want)
		}
	}
}

func TestWorldShare(t *testing.T) {
	for _, c := range []struct {
		e    escaped
		want float64 // -1 is no box
	}{
		{"-180,-90,180,90", 1},
		{"0,0,180,90", 0.25},
		{"0,0,-5,180,90,5", 0.25},
		{"0%2C0%2C180%2C90", 0.25},
		{"0,+0,+180,+90", 0.25},
		{"170,-90,-170,90", 20.0 / 360},
		{"0,90,180,0", 0.25}, // upside down
		{"10,10,10,10", 0},
		{"121000,486000,122000,487000", 1}, // metres
		{"0,0,1e400,1", 1},
		{"0,0,1", -1},
		{"0,0,1,1,1", -1},
		{"0,0,1,1,1,1,1", -1},
		{"0,0,1,x", -1},
		{"0,0,NaN,1", -1},
		{"", -1},
		{",,,", -1},
	} {
		got, ok := c.e.worldShare()
		if ok != (c.want >= 0) || ok && math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%q: %v %v, want %v", c.e, got, ok, c.want)
		}
	}
}

// The query is read without allocating, whatever is in it.
func TestReadQueryAllocates(t *testing.T) {
	const query = "%6Cimit=%31%30&LIMIT=7;x=2&bbox=1,2,3,4&filter=a+b&limit=99999999999999999999"
	if n := testing.AllocsPerRun(100, func() {
		for q := readQuery(query); q.next(); {
			if q.key.is("limit") || q.key.isFold("limit") {
				q.value.amount()
			}
			if q.key.is("bbox") {
				q.value.worldShare()
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever Go's own reader finds in a query is among the readings, and the
// reader ends.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "a=1&b=2", "a=1;b=2", "%61=%zz", "a+b=c%2Bd", "&&;;==", "bbox=1,2,3,4&limit=1e400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		want, _ := url.ParseQuery(query) // what it cannot read it leaves out
		n := 0
		for q := readQuery(query); q.next(); n++ {
			if n > 2*len(query) {
				t.Fatal("no end")
			}
			key := q.key.text()
			if values := want[key]; len(values) > 0 && values[0] == q.value.text() {
				want[key] = values[1:]
			}
			if !q.key.is(key) {
				t.Fatalf("%q does not spell %q", q.key, key)
			}
			if x, ok := q.value.number(); ok && (math.IsNaN(x) || math.Abs(x) > maxInput) {
				t.Fatalf("%q is %v", q.value, x)
			}
			if share, ok := q.value.worldShare(); ok && !(share >= 0 && share <= 1) {
				t.Fatalf("%q covers %v", q.value, share)
			}
			if got := q.value.items(); got != float64(1+strings.Count(q.value.text(), ",")) {
				t.Fatalf("%q has %v items", q.value, got)
			}
		}
		for key, values := range want {
			if len(values) > 0 {
				t.Fatalf("%q: %q = %q was not read", query, key, values)
			}
		}
	})
}
