package classify

import (
	"bytes"
	"unicode/utf8"
)

// memberName is a member's name, as far as it matters.
type memberName uint8

const (
	nameOther memberName = iota
	nameType
	nameCoordinates
)

// nameOf reads a member's name as any parser could: escapes undone, in any case.
// Unicode folds U+017F to 's', as encoding/json does, which makes the name a byte
// longer.
func nameOf(s []byte, escaped bool) memberName {
	if escaped {
		const longest = len(`\u0063`) * len("coordinates")
		if len(s) > longest {
			return nameOther
		}
		var room [longest]byte
		s = appendUnescaped(room[:0], s)
	}
	switch len(s) {
	case len("type"):
		if s[0]|0x20 == 't' && bytes.EqualFold(s, []byte("type")) {
			return nameType
		}
	case len("coordinates"), len("coordinate\u017f"):
		if s[0]|0x20 == 'c' && bytes.EqualFold(s, []byte("coordinates")) {
			return nameCoordinates
		}
	}
	return nameOther
}

// isFeature reports whether a string is "Feature".
func isFeature(s []byte, escaped bool) bool {
	if escaped {
		const longest = len(`\u0046`) * len("Feature")
		if len(s) > longest {
			return false
		}
		var room [longest]byte
		s = appendUnescaped(room[:0], s)
	}
	return string(s) == "Feature"
}

// appendUnescaped undoes the escapes of a string that stringEnd has passed. Half
// of a surrogate pair becomes U+FFFD; no syntax that is counted lies beyond ASCII.
func appendUnescaped(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(dst, s[:i]...)
		c := s[i+1]
		if c == 'u' {
			r := rune(unhex(s[i+2]))<<12 | rune(unhex(s[i+3]))<<8 | rune(unhex(s[i+4]))<<4 | rune(unhex(s[i+5]))
			dst = utf8.AppendRune(dst, r)
			s = s[i+6:]
			continue
		}
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		}
		dst = append(dst, c)
		s = s[i+2:]
	}
}

// text counts the geometry in a string value.
func (s *geoJSON) text(t []byte, escaped bool) {
	first := t[0]
	if escaped {
		if first != '{' && first != '[' && first > ' ' && first != '\\' &&
			bytes.IndexByte(t, '(') < 0 && !bytes.Contains(t, []byte(`\u0028`)) {
			return
		}
		room := borrow()
		defer giveBack(room)
		room.out = appendUnescaped(room.out[:0], t)
		t = room.out
		if len(t) < minText {
			return
		}
	}
	if first <= ' ' || escaped {
		t = bytes.TrimLeft(t, " \t\r\n")
		if len(t) == 0 {
			return
		}
	}
	if t[0] != '{' && t[0] != '[' {
		g, how := scanWKT(t, s.box)
		s.addText(g, how, t)
		return
	}
	inner, how := geoJSON{b: t, level: s.level + 1, box: s.box}, open
	if inner.level <= maxTexts {
		how = inner.scan()
	}
	if how != complete && !bytes.Contains(t, []byte("coordinates")) {
		how = complete // prose in brackets
	}
	s.addText(inner.geometry(), how, t)
}

// addText adds what was counted in a text, which is dear where it could not be read.
func (s *geoJSON) addText(g Geometry, how reading, t []byte) {
	if how != complete {
		g.Vertices = max(g.Vertices, float64(len(t)/minVertexBytes))
		g.Features = max(g.Features, 1)
	}
	s.texts = s.texts.add(g)
}
