package classify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/geoproxy/geoproxy/classify"
)

// hostile are inputs that are meant to be slow. Each gives about n bytes.
var hostile = []struct {
	name string
	text func(n int) string
}{
	{"brackets", repeated("[", "", "")},
	{"empty arrays", repeated("[],", "[", "0]")},
	{"empty arrays in coordinates", repeated("[],", `{"coordinates":[`, "0]}")},
	{"nested arrays in coordinates", repeated("[[[[[1]]]]],", `{"coordinates":[`, "0]}")},
	{"tiny positions", repeated("[1],", `{"coordinates":[`, "0]}")},
	{"spaced positions", repeated("[ 1 , 2 ] , ", `{"coordinates":[`, "0]}")},
	{"positions of objects", repeated("[1,{}],", `{"coordinates":[`, "0]}")},
	{"coordinates of single positions", repeated(`{"coordinates":[1]},`, "[", "0]")},
	{"exponents", repeated("1e1,", "[", "0]")},
	{"empty objects", repeated("{},", "[", "0]")},
	{"empty strings", repeated(`"",`, "[", "0]")},
	{"short members", repeated(`"":0,`, "{", `"":0}`)},
	{"types", repeated(`"type":"Feature",`, "{", `"":0}`)},
	{"escaped names", repeated(`"\u0063oordinates":1,`, "{", `"":0}`)},
	{"names that are nearly it", repeated(`"coordinateS":1,"coordinatex":1,`, "{", `"":0}`)},
	{"literals", repeated("true,null,", "[", "0]")},
	{"digits in many values", repeated(`{"a":1},`, "[", "0]")},
	{"white space of one kind", repeated(" ", "[", "0]")},
	{"white space of every kind", repeated("\t \r\n", "[", "0]")},
	{"one long string", repeated("a", `"`, `"`)},
	{"backslashes", repeated(`\\`, `"`, `"`)},
	{"unicode escapes", repeated(`\u0028`, `"`, `"`)},
	{"strings with a parenthesis", repeated(`"aaaaaa(",`, "[", "0]")},
	{"strings with a point", repeated(`"TIN(1 2)",`, "[", "0]")},
	{"strings with escapes", repeated(`"\\(aaaaa",`, "[", "0]")},
	{"strings that look like JSON", repeated(`"[aaaaaaa",`, "[", "0]")},
	{"strings that hold JSON", repeated(`"{\"a\":[1,2]}",`, "[", "0]")},
	{"a string that holds JSON", repeated(`{\"coordinates\":[1,2]},`, `"[`, `0]"`)},
	{"a string that holds strings", repeated(`\"{\\\"a\\\":\\\"POINT(1 2)\\\"}\",`, `"[`, `0]"`)},
	{"lines", repeated("{}\n", "", "")},
	{"record separators", repeated("\x1e", "", "")},

	{"WKT of parentheses", repeated("(", "a", "")},
	{"WKT of names", repeated("POINT", "a", "")},
	{"WKT of names and parentheses", repeated("POINT(", "", "")},
	{"WKT of points", repeated("POINT(1 2)", "", "")},
	{"WKT of nearly points", repeated("ZPOINT(", "", "")},
	{"WKT of long names", repeated("aGEOMETRYCOLLECTIONZM(", "", "")},
	{"WKT of dimensions", repeated("POINTZM ZM (", "", "")},
	{"WKT of space and parentheses", repeated("                (", "a", "")},
	{"WKT of commas", repeated(",", "POINT(", ")")},
	{"WKT of letters", repeated("a", "POINT(", ")")},
	{"WKT of tiny vertices", repeated("1,", "LINESTRING(", "1)")},
	{"WKT of rings", repeated("(1),", "POLYGON(", "(1))")},
	{"WKT of white space", repeated("\n\t", "POINT(", ")")},
}

func repeated(unit, before, after string) func(int) string {
	return func(n int) string { return before + strings.Repeat(unit, n/len(unit)) + after }
}

// BenchmarkHostile reports the time that a byte takes. The worst is under 10 ns.
func BenchmarkHostile(b *testing.B) {
	for _, h := range hostile {
		b.Run(strings.ReplaceAll(h.name, " ", "_"), func(b *testing.B) {
			body := whole([]byte(h.text(64 << 10)))
			b.ReportAllocs()
			for b.Loop() {
				classify.CountBody(body, "", "")
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(body.Prefix)), "ns/byte")
		})
	}
}

// Twice the input takes at most about twice the time: a quadratic step would
// take 64 times as long for 8 times the input, of which the half is tolerated
// on a loaded machine.
func TestHostileInputTakesLinearTime(t *testing.T) {
	fastest := func(body classify.Body) time.Duration {
		return leastCPU(t, 5, func() { classify.CountBody(body, "", "") })
	}
	for _, h := range hostile {
		small, large := whole([]byte(h.text(128<<10))), whole([]byte(h.text(1<<20)))
		few, many := fastest(small), fastest(large)
		if many > 32*few+time.Millisecond {
			t.Errorf("%s: %v for 128 KiB, %v for 1 MiB", h.name, few, many)
		}
		if g := classify.CountBody(large, "", ""); g.Malformed && g.Vertices < float64(len(large.Prefix)/4) {
			t.Errorf("%s: malformed and cheap: %+v", h.name, g)
		}
	}
}
