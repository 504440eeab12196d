package classify

import "bytes"

// The bounds of XML that is read. What passes them is malformed, and so dear.
const (
	maxXMLDepth = 100
	maxXMLAttrs = 64
	maxXMLValue = 64 << 10 // bytes of an attribute's value
)

// xmlEvent is what [xmlScan.next] came to.
type xmlEvent uint8

const (
	xmlDone  xmlEvent = iota // nothing more, for the reason that how says
	xmlStart                 // an element begins: name, attrs
	xmlEnd                   // the element ends: name
	xmlText                  // text between tags: text, literal
)

// xmlScan walks a document in place. It allocates nothing and takes one pass.
//
// It expands nothing: a document type, which is where entities are declared
// (XML 1.0, 2.8 and 4.2), ends the walk, for no OGC request needs one and
// parsers have been brought down by them. Tags have to match; which characters
// a name may hold is not looked at closely. Names are local names, because
// prefixes are the caller's choice and requests differ between versions in
// little but their namespaces.
type xmlScan struct {
	b []byte
	i int

	how reading // once done
	dtd bool    // ended at a document type or an entity

	name    []byte // local
	text    []byte // raw: references are not undone
	literal bool   // of a CDATA section: there are no references in it
	attrs   [maxXMLAttrs]xmlAttr
	n       int // attributes
	depth   int // elements that are open, the one that just began included

	closing bool // the element that just began has no content
	rooted  bool // the root has begun
	open    [maxXMLDepth][]byte
}

// xmlAttr is an attribute: its local name, and its value as it stands.
type xmlAttr struct{ name, value []byte }

// reset begins a document. What is left of another one in the arrays is never
// looked at.
func (x *xmlScan) reset(b []byte) {
	x.b, x.i, x.how, x.dtd = trimBOM(b), 0, complete, false
	x.name, x.text, x.n, x.depth, x.closing, x.rooted = nil, nil, 0, 0, false, false
}

// attr gives the value of an attribute of the element that just began. A value
// with references in it has them still.
func (x *xmlScan) attr(name string) (value []byte, ok bool) {
	for i := range x.n {
		if string(x.attrs[i].name) == name {
			return x.attrs[i].value, true
		}
	}
	return nil, false
}

// character gives the value of an attribute that is a single character of
// ASCII, as itself or as a reference; 0 is any other.
func (x *xmlScan) character(name string) byte {
	value, _ := x.attr(name)
	switch {
	case len(value) == 1 && value[0] != '&' && value[0] < 0x80:
		return value[0]
	case len(value) > 1 && value[0] == '&':
		if c, n := reference(value); n == len(value) {
			return c
		}
	}
	return 0
}

func (x *xmlScan) end(how reading) xmlEvent {
	x.how = how
	return xmlDone
}

func (x *xmlScan) next() xmlEvent {
	if x.closing {
		x.closing = false
		x.depth--
		return xmlEnd
	}
	for x.i < len(x.b) {
		if x.b[x.i] != '<' {
			run := x.b[x.i:]
			if n := bytes.IndexByte(run, '<'); n >= 0 {
				run = run[:n]
			}
			x.i += len(run)
			if x.depth > 0 {
				x.text, x.literal = run, false
				return xmlText
			}
			if len(bytes.TrimLeft(run, " \t\r\n")) > 0 {
				return x.end(malformed)
			}
			continue
		}
		rest := x.b[x.i:]
		if len(rest) < 2 {
			return x.end(open)
		}
		switch rest[1] {
		case '/':
			return x.endTag(rest)
		case '?':
			n := bytes.Index(rest, []byte("?>"))
			if n < 0 {
				return x.end(open)
			}
			x.i += n + 2
		case '!':
			if event, ok := x.declaration(rest); ok {
				return event
			}
		default:
			return x.startTag(rest)
		}
	}
	if x.depth > 0 || !x.rooted {
		return x.end(open)
	}
	return x.end(complete)
}

// declaration reads what begins with "<!". Comments are passed over; false is
// to go on.
func (x *xmlScan) declaration(rest []byte) (xmlEvent, bool) {
	const comment, cdata = "<!--", "<![CDATA["
	switch {
	case bytes.HasPrefix(rest, []byte(comment)):
		n := bytes.Index(rest[len(comment):], []byte("-->"))
		if n < 0 {
			return x.end(open), true
		}
		x.i += len(comment) + n + len("-->")
		return xmlDone, false
	case bytes.HasPrefix(rest, []byte(cdata)):
		if x.depth == 0 {
			return x.end(malformed), true
		}
		n := bytes.Index(rest[len(cdata):], []byte("]]>"))
		if n < 0 {
			x.text = rest[len(cdata):]
			x.i = len(x.b)
		} else {
			x.text = rest[len(cdata) : len(cdata)+n]
			x.i += len(cdata) + n + len("]]>")
		}
		x.literal = true
		return xmlText, true
	case len(rest) < len(cdata) && (bytes.HasPrefix([]byte(comment), rest) || bytes.HasPrefix([]byte(cdata), rest)):
		return x.end(open), true
	}
	x.dtd = true
	return x.end(malformed), true
}

func (x *xmlScan) endTag(rest []byte) xmlEvent {
	n := bytes.IndexByte(rest, '>')
	if n < 0 {
		return x.end(open)
	}
	name := bytes.TrimRight(rest[2:n], " \t\r\n")
	if x.depth == 0 || !bytes.Equal(name, x.open[x.depth-1]) {
		return x.end(malformed)
	}
	x.i += n + 1
	x.depth--
	x.name = local(name)
	return xmlEnd
}

func (x *xmlScan) startTag(rest []byte) xmlEvent {
	if x.depth == 0 && x.rooted || x.depth == maxXMLDepth {
		return x.end(malformed)
	}
	i := 1 + nameLength(rest[1:])
	if i == 1 {
		return x.end(malformed)
	}
	name := rest[1:i]
	x.n = 0
	for {
		i = skipSpace(rest, i)
		if i >= len(rest) {
			return x.end(open)
		}
		switch rest[i] {
		case '>':
		case '/':
			if i+1 >= len(rest) {
				return x.end(open)
			}
			if rest[i+1] != '>' {
				return x.end(malformed)
			}
			x.closing = true
			i++
		default:
			var how reading
			if i, how = x.readAttr(rest, i); how != complete {
				return x.end(how)
			}
			continue
		}
		break
	}
	x.i += i + 1
	x.rooted = true
	x.open[x.depth] = name
	x.depth++
	x.name = local(name)
	return xmlStart
}

// readAttr reads an attribute, and gives where it ends.
func (x *xmlScan) readAttr(rest []byte, i int) (end int, how reading) {
	n := nameLength(rest[i:])
	if n == 0 || x.n == maxXMLAttrs {
		return i, malformed
	}
	name := rest[i : i+n]
	i = skipSpace(rest, i+n)
	if i < len(rest) && rest[i] != '=' {
		return i, malformed
	}
	i = skipSpace(rest, i+1)
	if i >= len(rest) {
		return i, open
	}
	quote := rest[i]
	if quote != '"' && quote != '\'' {
		return i, malformed
	}
	n = bytes.IndexByte(rest[i+1:], quote)
	if n > maxXMLValue {
		return i, malformed
	}
	if n < 0 {
		return i, open
	}
	x.attrs[x.n] = xmlAttr{local(name), rest[i+1 : i+1+n]}
	x.n++
	return i + n + 2, complete
}

// nameLength is how many bytes at the beginning of s can be of a name.
func nameLength(s []byte) int {
	for i, c := range s {
		if !inName[c] {
			return i
		}
	}
	return len(s)
}

// inName are the bytes that a name may hold, or nearly: those of XML 1.0, 2.3
// that are ASCII, and every other one.
var inName = func() (is [256]bool) {
	for c := range is {
		b := byte(c)
		is[c] = isLetter(b) || isDigit(b) || b == '_' || b == ':' || b == '-' || b == '.' || b >= 0x80
	}
	return is
}()

// local cuts the prefix off a name.
func local(name []byte) []byte {
	if i := bytes.IndexByte(name, ':'); i > 0 && i < len(name)-1 {
		return name[i+1:]
	}
	return name
}

// reference reads the character reference that s begins with. Zero is any other
// that is no white space: which it is does not matter to a count.
func reference(s []byte) (c byte, length int) {
	n := bytes.IndexByte(s[:min(len(s), 12)], ';')
	if n < 0 {
		return 0, 1
	}
	digits, base := s[1:n], 10
	if len(digits) == 0 || digits[0] != '#' {
		return 0, n + 1
	}
	if digits = digits[1:]; len(digits) > 0 && digits[0] == 'x' {
		digits, base = digits[1:], 16
	}
	value := 0
	for _, d := range digits {
		x := int(unhex(d))
		if x >= base || value > 0x10ffff {
			return 0, n + 1
		}
		value = value*base + x
	}
	if value >= 0x80 {
		return 0, n + 1
	}
	return byte(value), n + 1
}
