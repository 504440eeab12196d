package classify

import (
	"math"
	"strconv"
	"strings"
)

// The bounds of a query, above which the front end answers 414: far above what
// any client of a spatial API sends, and low enough that reading a query in
// every way is never the expensive part of a request.
const (
	maxQueryKeys  = 256
	maxQueryBytes = 64 << 10
)

// TooLong reports whether a raw query has more than 256 keys or 64 KiB. Such a
// request is to be refused with 414 before it is priced.
func TooLong(query string) bool {
	return len(query) > maxQueryBytes || strings.Count(query, "&") >= maxQueryKeys
}

// maxInput bounds every input: beyond it nothing gets dearer.
const maxInput = 1e9

// params walks the pairs of a raw query in every reading that an upstream may
// make of it. Pairs end at '&'. A segment with a ';' is one pair whose value
// holds it (as Go, Java and the WHATWG read it) and also the pairs between its
// ';' (as Python before 3.9.2 and many CGI programs read it). A key that comes
// several times is met several times: the caller keeps the dearest.
//
// It allocates nothing and takes time linear in the query.
type params struct {
	rest  string // behind the current segment
	inner string // what is left of the current segment's parts between ';'

	key, value escaped
}

func readQuery(raw string) params { return params{rest: raw} }

// next moves on to the next pair, if there is one.
func (p *params) next() bool {
	for {
		var segment string
		switch {
		case p.inner != "":
			segment, p.inner, _ = strings.Cut(p.inner, ";")
		case p.rest != "":
			segment, p.rest, _ = strings.Cut(p.rest, "&")
			if strings.IndexByte(segment, ';') >= 0 {
				p.inner = segment
			}
		default:
			return false
		}
		if segment != "" {
			key, value, _ := strings.Cut(segment, "=")
			p.key, p.value = escaped(key), escaped(value)
			return true
		}
	}
}

// escaped is a part of a query as it came: '+' and %XX are not yet undone.
type escaped string

// at gives the byte of e that begins at i with its escape undone, and where the
// next one begins. A '%' that begins no escape stands for itself, as most
// readers have it.
func (e escaped) at(i int) (c byte, next int) {
	switch c = e[i]; c {
	case '+':
		return ' ', i + 1
	case '%':
		if i+2 < len(e) {
			if hi, lo := unhex(e[i+1]), unhex(e[i+2]); hi|lo < 16 {
				return hi<<4 | lo, i + 3
			}
		}
	}
	return c, i + 1
}

// plain reports whether e has no escapes: its text is then itself.
func (e escaped) plain() bool {
	return strings.IndexByte(string(e), '%') < 0 && strings.IndexByte(string(e), '+') < 0
}

// is reports whether e spells name.
func (e escaped) is(name string) bool {
	return string(e) == name || len(e) >= len(name) && e.spells(name, false)
}

// isFold is is for the protocols whose keys know no case. The name is in lower case.
func (e escaped) isFold(name string) bool { return len(e) >= len(name) && e.spells(name, true) }

func (e escaped) spells(name string, fold bool) bool {
	i, n := 0, 0
	for ; i < len(e) && n < len(name); n++ {
		var c byte
		if c, i = e.at(i); fold && c-'A' < 26 {
			c |= 0x20
		}
		if c != name[n] {
			return false
		}
	}
	return i == len(e) && n == len(name)
}

// text undoes the escapes. It allocates only where there are any.
func (e escaped) text() string {
	if e.plain() {
		return string(e)
	}
	return string(e.appendText(make([]byte, 0, len(e))))
}

func (e escaped) appendText(dst []byte) []byte {
	for i := 0; i < len(e); {
		var c byte
		c, i = e.at(i)
		dst = append(dst, c)
	}
	return dst
}

// items counts the items of a comma-joined list: 1 for an empty one.
func (e escaped) items() float64 {
	n := 1.0
	for i := 0; i < len(e); {
		var c byte
		if c, i = e.at(i); c == ',' {
			n++
		}
	}
	return n
}

// number reads e as a number of at most [maxNumber] characters.
func (e escaped) number() (x float64, ok bool) {
	if e.plain() {
		return parseNumber(string(e))
	}
	if len(e) > 3*maxNumber {
		return 0, false
	}
	var buf [3 * maxNumber]byte
	return parseNumber(string(e.appendText(buf[:0])))
}

// amount reads e as an amount that costs the more the larger it is, at most
// maxInput. What cannot be read, and what is negative, is that: some upstream
// takes it for "no limit" (pg_featureserv does) or reads digits that we do not.
func (e escaped) amount() float64 {
	x, ok := e.number()
	if !ok || x < 0 {
		return maxInput
	}
	return x
}

// maxNumber is the longest number that is read: the shortest form of any
// float64 has 24 characters.
const maxNumber = 32

// parseNumber reads -?digits[.digits][e[+-]digits]; spaces around it do not
// matter. strconv alone would also take hexadecimals, underscores, "inf" and
// "nan", which upstreams read in as many ways. What is too large for a float64
// is ±maxInput, not an error: a caller who writes twenty digits asks for all
// there is, not for the default.
func parseNumber(s string) (x float64, ok bool) {
	if s = strings.TrimSpace(s); len(s) > maxNumber || !isNumber(s) {
		return 0, false
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(x, 0) {
		return 0, false
	}
	return max(-maxInput, min(x, maxInput)), true
}

func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	n := digits(s)
	if n == 0 {
		return false
	}
	if s = s[n:]; s != "" && s[0] == '.' {
		if n = digits(s[1:]); n == 0 {
			return false
		}
		s = s[1+n:]
	}
	if s != "" && s[0]|0x20 == 'e' {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if n = digits(s); n == 0 {
			return false
		}
		s = s[n:]
	}
	return s == ""
}

// digits counts the digits that s begins with.
func digits(s string) int {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return i
		}
	}
	return len(s)
}
