package classify

import (
	"bytes"
	"math"
)

// jsonValue is a member of an object, or an item of an array, as it stands in
// the text.
type jsonValue struct {
	name    []byte // of a member, without its quotes; its escapes are not undone
	escaped bool   // the name has escapes
	text    []byte // with its quotes or brackets; cut short where the text is
}

// is reports whether the member has a name.
func (v *jsonValue) is(name string) bool {
	if !v.escaped {
		return string(v.name) == name
	}
	const longest = 32
	if len(v.name) > longest*len(`\u0063`) {
		return false
	}
	var room [longest * len(`\u0063`)]byte
	return string(appendUnescaped(room[:0], v.name)) == name
}

// isList and isObject report what kind of value it is.
func (v *jsonValue) isList() bool   { return len(v.text) > 0 && v.text[0] == '[' }
func (v *jsonValue) isObject() bool { return len(v.text) > 0 && v.text[0] == '{' }

// isTrue reports whether the value may be taken for true: whatever is neither
// false, null, 0 nor empty.
func (v *jsonValue) isTrue() bool {
	switch string(v.text) {
	case "false", "null", "0", `""`, `"false"`, "":
		return false
	}
	return true
}

// str gives the text of a string, escapes not undone, and nothing for another value.
func (v *jsonValue) str() []byte {
	if len(v.text) == 0 || v.text[0] != '"' {
		return nil
	}
	return bytes.TrimSuffix(v.text[1:], []byte{'"'})
}

// amount reads a number, or a string that holds one, as [escaped.amount] does:
// what cannot be read is the dearest. Null is 0.
func (v *jsonValue) amount() float64 {
	text := v.text
	if s := v.str(); s != nil {
		text = s
	}
	if string(text) == "null" {
		return 0
	}
	if len(text) > maxNumber {
		return maxInput
	}
	x, ok := parseNumber(string(text))
	if !ok || x < 0 {
		return maxInput
	}
	return x
}

// eachJSON visits the members of the object, or the items of the array, that b
// begins with, in their order, and counts them. Where b ends inside of a value,
// what there is of it is visited too.
//
// It finds where values end and leaves their grammar to whoever looks into them,
// but for strings, which every parser must see end in the same place. It takes
// one pass and no memory.
func eachJSON(b []byte, visit func(v jsonValue)) (n int, how reading) {
	n, _, how = walkJSON(b, visit)
	return n, how
}

// countJSON counts the members or items of a value; one that has none is none.
func countJSON(b []byte) float64 {
	n, _ := eachJSON(b, func(jsonValue) {})
	return float64(n)
}

func walkJSON(b []byte, visit func(v jsonValue)) (n, end int, how reading) {
	i := skipSpace(b, 0)
	if i >= len(b) {
		return 0, i, open
	}
	closing := byte(']')
	switch b[i] {
	case '{':
		closing = '}'
	case '[':
	default:
		return 0, i, malformed
	}
	if i = skipSpace(b, i+1); i < len(b) && b[i] == closing {
		return 0, i + 1, complete
	}
	for {
		if i = skipSpace(b, i); i >= len(b) {
			return n, i, open
		}
		var v jsonValue
		if closing == '}' {
			if b[i] != '"' {
				return n, i, malformed
			}
			stop, escaped, how := stringEnd(b, i+1)
			if how != complete {
				return n, i, how
			}
			v.name, v.escaped = b[i+1:stop], escaped
			if i = skipSpace(b, stop+1); i >= len(b) {
				return n, i, open
			}
			if b[i] != ':' {
				return n, i, malformed
			}
			i = skipSpace(b, i+1)
		}
		start := i
		i, how = skipJSON(b, i)
		if how == malformed {
			return n, i, malformed
		}
		v.text = b[start:i]
		n++
		visit(v)
		if i = skipSpace(b, i); i >= len(b) || how == open {
			return n, i, open
		}
		switch b[i] {
		case closing:
			return n, i + 1, complete
		case ',':
			i++
		default:
			return n, i, malformed
		}
	}
}

// skipJSON gives the index after the value at b[i].
func skipJSON(b []byte, i int) (end int, how reading) {
	depth, kinds := 0, uint64(0)
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			stop, _, how := stringEnd(b, i+1)
			if how != complete {
				return min(stop, len(b)), how
			}
			i = stop + 1
		case '{', '[':
			if depth == maxBrackets {
				return i, malformed
			}
			depth++
			kinds <<= 1
			if c == '{' {
				kinds |= 1
			}
			i++
			continue
		case '}', ']':
			if depth == 0 || c != "]}"[kinds&1] {
				return i, malformed
			}
			depth--
			kinds >>= 1
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i, malformed
			}
			i = skipSpace(b, i+1)
			continue
		case 't', 'f', 'n':
			if i, how = literalEnd(b, i); how != complete {
				return len(b), how
			}
		default:
			if c != '-' && !isDigit(c) {
				return i, malformed
			}
			i = numberEnd(b, i)
		}
		if depth == 0 {
			return i, complete
		}
	}
	return i, open
}

// document says how far a body could be read, for what is to be made of the
// counts taken from it.
type document struct {
	how    reading
	length float64 // bytes of all of it, decoded
	scale  float64 // length by what was read of it
}

// whole reports whether the counts are exact.
func (d document) whole() bool { return d.how == complete }

// count makes a count of things that take at least so many bytes what it is in
// the whole body: exact where that was read, else as if it went on as it began,
// and where it cannot be read, as if it were full of them.
func (d document) count(n, least float64) float64 {
	bound := d.length / least
	switch d.how {
	case complete:
		return n
	case open:
		return math.Ceil(max(n, min(n*d.scale, bound)))
	case malformed:
	}
	return math.Ceil(max(n, bound))
}

// readJSON visits the members of the body, which is to be an object (or, where
// it is a list, its items). A body of which nothing was read is malformed, one
// that is not there is empty and complete.
func (r *Request) readJSON(visit func(v jsonValue)) document {
	if r.Body.empty() || r.Body.Whole && len(r.Body.Prefix) == 0 {
		return document{scale: 1}
	}
	room := borrow()
	defer giveBack(room)
	text, _, how := room.decode(r.Body.Prefix, r.Header.Get("Content-Encoding"))
	d := document{how: how, length: r.decodedLength(text, how), scale: 1}
	if len(text) == 0 {
		d.how = malformed
		if r.unread() && r.Body.Length > 0 {
			d.length = float64(r.Body.Length)
		}
		return d
	}
	d.scale = max(1, d.length/float64(len(text)))
	d.how = max(d.how, readJSONText(text, visit))
	switch {
	case !r.wholeBody():
		d.how = max(d.how, open)
	case d.how == open: // it ends inside of a value, and there is no more of it
		d.how = malformed
	}
	return d
}

// readJSONText is readJSON for a text. What follows its first value makes it
// malformed.
func readJSONText(text []byte, visit func(v jsonValue)) reading {
	text = trimBOM(text)
	_, end, how := walkJSON(text, visit)
	if how == complete && len(bytes.TrimLeft(text[end:], " \t\r\n")) > 0 {
		return malformed
	}
	return how
}
