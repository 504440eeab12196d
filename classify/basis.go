package classify

import "strconv"

// basis builds the words that say what the inputs were taken from, on the
// stack: one allocation, for the finished text.
type basis struct {
	buf [192]byte
	n   int
}

func (b *basis) text(s string) *basis {
	b.n += copy(b.buf[b.n:], s)
	return b
}

func (b *basis) number(x float64) *basis {
	var digits [32]byte
	if whole := int64(x); float64(whole) == x && x < maxInput { // most are, and that is faster
		b.n += copy(b.buf[b.n:], strconv.AppendInt(digits[:0], whole, 10))
		return b
	}
	if x < maxInput {
		b.n += copy(b.buf[b.n:], strconv.AppendFloat(digits[:0], x, 'f', -1, 64))
		return b
	}
	return b.text("1e9")
}

// count adds a number of things: "1 vertex", "4 vertices".
func (b *basis) count(n float64, thing string) *basis {
	b.number(n).text(" ")
	switch {
	case n == 1:
		return b.text(thing)
	case thing == "vertex":
		return b.text("vertices")
	}
	return b.text(thing).text("s")
}

// assumed marks what was said last.
func (b *basis) assumed(is bool) *basis {
	if is {
		b.text(" (assumed)")
	}
	return b
}

func (b *basis) String() string { return string(b.buf[:b.n]) }
