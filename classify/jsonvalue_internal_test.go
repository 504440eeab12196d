package classify

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// What encoding/json takes is walked to its end, with the same members; and
// whatever is thrown at it, nothing is read past the end.
func FuzzEachJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":1,"b":[1,2,[3]],"c":"x\"y","d":{"e":null}}`, ` [ [1,2] , {"lat":1} , "s" , true ] `, `{"a":[1,2`, `{"a`, `{"a":"`,
		`{"\u0061":-1.5e3}`, `[1,,2]`, `{"a":1}{`, strings.Repeat("[", 70) + strings.Repeat("]", 70), `[tru`, "{\"a\" :\n1}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		names := map[string]bool{}
		walked, how := eachJSON(b, func(v jsonValue) {
			n++
			if v.name != nil {
				names[string(appendUnescaped(nil, v.name))] = true
			}
			v.amount()
			v.isTrue()
		})
		if walked != n {
			t.Fatalf("%d and %d values of %q", walked, n, b)
		}
		first := bytes.TrimLeft(b, " \t\r\n")
		if len(first) == 0 || !json.Valid(b) || deepest(b) > maxBrackets {
			return
		}
		switch first[0] {
		case '[':
			var list []json.RawMessage
			if err := json.Unmarshal(b, &list); err != nil || how != complete || len(list) != n {
				t.Fatalf("%d values, %d, of %q: %v", n, how, b, err)
			}
		case '{':
			var object map[string]json.RawMessage
			if err := json.Unmarshal(b, &object); err != nil || how != complete {
				t.Fatalf("%d of %q: %v", how, b, err)
			}
			if len(object) != len(names) && bytes.IndexByte(b, '\\') < 0 && bytes.ContainsFunc(b, func(r rune) bool { return r > 0x7f }) == false {
				t.Fatalf("%d names, want %d, of %q", len(names), len(object), b)
			}
		}
	})
}

func deepest(b []byte) (most int) {
	depth := 0
	for _, c := range b {
		switch c {
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			depth--
		}
	}
	return most
}

func TestEachJSONAllocatesNothing(t *testing.T) {
	b := []byte(`{"sources":[{"lat":1,"lon":2}],"costing":"auto","targets":[[1,2],[3,4]]}`)
	total := 0.0
	if n := testing.AllocsPerRun(100, func() {
		_, _ = eachJSON(b, func(v jsonValue) {
			if v.is("targets") {
				total += countJSON(v.text)
			}
		})
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEachJSON(b *testing.B) {
	text := []byte(`{"locations":[` + strings.TrimSuffix(strings.Repeat(`[4.90123,52.37456],`, 3000), ",") + `]}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = eachJSON(text, func(v jsonValue) { countJSON(v.text) })
	}
}
