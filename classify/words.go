package classify

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes at a time: every byte of a word is 0x01, or 0x80.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// notNumeric marks the bytes of a word that are not in " +,-.0123456789" by their
// highest bits. The lowest mark is exact; those above it need not be, for an
// addition or subtraction may have carried out of the byte below.
//
// With a space taken for 0, the bytes wanted are 0, and '+' to '9' without '/'.
// In a byte below 0x80, x+0x7f sets the highest bit where x is above 0, and
// x+0x7f-n where it is above n; 0x80+x-n loses it where x is below n; and
// x-1 &^ x sets it where x is 0.
func notNumeric(w uint64) uint64 {
	x := w ^ ' '*ones
	slash := w ^ '/'*ones
	low := (x + 0x7f*ones) &^ ((x | highs) - ('+'^' ')*ones)
	high := x + (0x7f-('9'^' '))*ones
	return (low | high | x | (slash-ones)&^slash) & highs
}

// notOrdinate marks the bytes of a word that are not in "-.0123456789 ", as
// notNumeric does.
func notOrdinate(w uint64) uint64 {
	x := w ^ ' '*ones
	slash := w ^ '/'*ones
	low := (x + 0x7f*ones) &^ ((x | highs) - ('-'^' ')*ones)
	high := x + (0x7f-('9'^' '))*ones
	return (low | high | x | (slash-ones)&^slash) & highs
}

// numericBytes counts the numeric bytes that 24 bytes begin with. Positions are
// mostly 8 to 23 long, and how long exactly is nothing that the processor's
// branch prediction could learn: there is no branch on it.
func numericBytes(b []byte) int {
	_ = b[23]
	if stop := notNumeric(binary.LittleEndian.Uint64(b)); stop != 0 {
		return bits.TrailingZeros64(stop) >> 3
	}
	second := notNumeric(binary.LittleEndian.Uint64(b[8:]))
	third := notNumeric(binary.LittleEndian.Uint64(b[16:]))
	inSecond, n := 64+bits.TrailingZeros64(second), 128+bits.TrailingZeros64(third)
	if second != 0 {
		n = inSecond // a conditional move
	}
	return n >> 3
}

// isNumeric is notNumeric for one byte, without the space.
func isNumeric(c byte) bool { return c-'+' <= '9'-'+' && c != '/' }

// skipSpace gives the index of the first byte from i on that is not white space
// of JSON. Indentation is read eight bytes at a time.
func skipSpace(b []byte, i int) int {
	for i < len(b) {
		switch c := b[i]; c {
		case ' ', '\t':
			i++
			for i+8 <= len(b) {
				other := binary.LittleEndian.Uint64(b[i:]) ^ uint64(c)*ones
				if other != 0 {
					i += bits.TrailingZeros64(other) >> 3
					break
				}
				i += 8
			}
		case '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}
