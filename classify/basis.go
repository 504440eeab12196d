package classify

import "strconv"

// basis builds the words that say what the inputs were taken from, on the
// stack: one allocation, for the finished text.
type basis struct {
	buf [112]byte
	n   int
}

func (b *basis) text(s string) *basis {
	b.n += copy(b.buf[b.n:], s)
	return b
}

func (b *basis) number(x float64) *basis {
	var digits [32]byte
	if x < maxInput {
		b.n += copy(b.buf[b.n:], strconv.AppendFloat(digits[:0], x, 'f', -1, 64))
		return b
	}
	return b.text("1e9")
}

func (b *basis) String() string { return string(b.buf[:b.n]) }
