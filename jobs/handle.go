package jobs

import (
	"crypto/rand"
	"strings"
)

// ID is a job's handle in its written form: 100 random bits as twenty digits
// of Crockford's base 32, in five groups ("k3v9-7qtm-2x4c-9wnd-h8rb"). It can be
// said aloud, and cannot be guessed.
type ID string

const (
	crockford = "0123456789abcdefghjkmnpqrstvwxyz" // without i, l, o and u
	idDigits  = 20
	idGroup   = 4
)

// NewID draws a handle.
func NewID() ID {
	var raw [idDigits]byte
	_, _ = rand.Read(raw[:]) // never fails
	for i, b := range raw {
		raw[i] = crockford[b&31]
	}
	return group(raw[:])
}

// ParseID reads a handle without regard to case, dashes and spaces, and takes
// I and L for 1 and O for 0, as Crockford's reader does.
func ParseID(s string) (ID, bool) {
	if len(s) > 2*idDigits {
		return "", false
	}
	digits := make([]byte, 0, idDigits)
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '-' || c == ' ':
			continue
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		}
		switch c {
		case 'i', 'l':
			c = '1'
		case 'o':
			c = '0'
		}
		if strings.IndexByte(crockford, c) < 0 || len(digits) == idDigits {
			return "", false
		}
		digits = append(digits, c)
	}
	if len(digits) != idDigits {
		return "", false
	}
	return group(digits), true
}

func group(digits []byte) ID {
	b := make([]byte, 0, idDigits+idDigits/idGroup-1)
	for i, d := range digits {
		if i > 0 && i%idGroup == 0 {
			b = append(b, '-')
		}
		b = append(b, d)
	}
	return ID(b)
}
