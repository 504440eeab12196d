package classify

import (
	"bytes"
	"strings"
)

// maxSegments is the longest path that any family reads. A longer one is not
// recognised, and so priced as unknown.
const maxSegments = 32

// segments are one reading of a request's path: its segments, without the slashes.
// A slash at the end does not count.
type segments struct {
	seg [maxSegments]string
	n   int // -1 where there are more
}

func (p *segments) split(s string) {
	p.n = 0
	s = strings.TrimSuffix(strings.TrimPrefix(s, "/"), "/")
	for more := s != ""; more; p.n++ {
		if p.n == maxSegments {
			p.n = -1
			return
		}
		p.seg[p.n], s, more = strings.Cut(s, "/")
	}
}

// last gives the i-th segment from the end, "" where there is none.
func (p *segments) last(i int) string {
	if i < p.n {
		return p.seg[p.n-1-i]
	}
	return ""
}

// PathReadings calls visit with every other reading that an upstream may make
// of a path beside the one with its escapes kept: decoded, so that %2F ends a
// segment, and both of these cleaned of dot segments, empty segments and the
// parameters behind a ';' that servlet containers take off. Most paths have no
// other reading. Routes and exemptions are found in all of them too: the price,
// the policy and the upstream must be about one path.
func PathReadings(raw string, visit func(string)) {
	cleaned := cleanPath(raw)
	if cleaned != raw {
		visit(cleaned)
	}
	if strings.IndexByte(raw, '%') < 0 {
		return
	}
	decoded := decodePath(raw)
	if decoded != raw {
		visit(decoded)
	}
	if twice := cleanPath(decoded); twice != decoded && twice != cleaned {
		visit(twice)
	}
}

// decodePath undoes %XX. A '%' that begins no escape stands for itself.
func decodePath(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		var c byte
		if c = s[i]; c == '+' { // a space in queries only
			i++
		} else {
			c, i = escaped(s).at(i)
		}
		b = append(b, c)
	}
	return string(b)
}

// cleanPath resolves "." and ".." (RFC 3986 5.2.4), joins slashes and takes
// ";parameters" off. It returns s itself where there is nothing to do.
func cleanPath(s string) string {
	if !strings.Contains(s, "/.") && !strings.Contains(s, "//") && strings.IndexByte(s, ';') < 0 {
		return s
	}
	var room [256]byte // most paths fit in
	b := room[:0]
	for segment := range strings.SplitSeq(s, "/") {
		segment, _, _ = strings.Cut(segment, ";")
		switch segment {
		case "", ".":
		case "..":
			b = b[:max(0, bytes.LastIndexByte(b, '/'))]
		default:
			b = append(append(b, '/'), segment...)
		}
	}
	if len(b) == 0 {
		return "/"
	}
	if strings.HasSuffix(s, "/") {
		b = append(b, '/')
	}
	return string(b)
}

// small reads a whole number without sign in its usual spelling, below 1e9.
func small(s string) (n int, ok bool) {
	if len(s) == 0 || len(s) > 9 || digits(s) != len(s) || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
