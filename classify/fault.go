package classify

import (
	"bytes"
	"strings"
)

// Some protocols tell of an error under a status of success: WMS always did
// (WMS 1.1.1, 6.5.3 wants no other status), and servers of other OGC services
// do so too. Such an answer must not count as one, nor be learned from. What it
// is shows from its content type and the head of its body.

// How many bytes of an answer's body, as they are sent, show whether it tells of
// an error: at its beginning, and at its end, where servers that stream write
// what went wrong after they had begun.
const (
	FaultHead = 2 << 10
	FaultTail = 512
)

// Answer says what an answer with a status below 400 is.
type Answer uint8

// What answers are. The zero value is what the upstream was asked for.
const (
	AnswerGood   Answer = iota
	AnswerFault         // it tells of an error
	AnswerUnread        // the head of its body shows which: ask Call.AnswerWith
	// AnswerMute is a picture asked for by someone who wants errors as pictures
	// too. It may be either, so nothing is to be learned from it.
	AnswerMute
)

// AnswerOf says what an answer of a content type is, as far as that shows it.
// It is good for nearly every answer, whose body then need not be looked at.
func (c *Call) AnswerOf(contentType string) Answer {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.TrimSpace(kind)
	switch {
	case startsFold(kind, "image/"):
		if c.Dialect.Exceptions == ExceptionsInImage || c.Dialect.Exceptions == ExceptionsBlank {
			return AnswerMute
		}
		return AnswerGood
	case startsFold(kind, "application/vnd.ogc.se_"):
		return AnswerFault
	case kind == "", strings.EqualFold(kind, "text/xml"), strings.EqualFold(kind, "application/xml"),
		strings.EqualFold(kind, "text/html"), strings.EqualFold(kind, "text/plain"),
		endsFold(kind, "+xml"), startsFold(kind, "application/vnd.ogc."):
		return AnswerUnread
	case (c.Dialect.Exceptions == ExceptionsJSON || c.errsInJSON()) && (strings.EqualFold(kind, "application/json") || endsFold(kind, "+json")):
		return AnswerUnread
	}
	return AnswerGood
}

// AnswerWith says what an answer is that [Call.AnswerOf] could not tell, by the
// first [FaultHead] and the last [FaultTail] bytes of its body (fewer where it
// has fewer) and its Content-Encoding. It is good unless they say otherwise. The
// end of a coded body is not read.
func (c *Call) AnswerWith(head, tail []byte, contentEncoding string) Answer {
	if contentEncoding != "" && !strings.EqualFold(contentEncoding, "identity") {
		r := borrow()
		defer giveBack(r)
		head, tail = r.decodeHead(head, contentEncoding), nil
	}
	head = bytes.TrimLeft(trimBOM(head), " \t\r\n")
	switch {
	case len(head) == 0:
	case head[0] == '<' && (isFaultReport(head) || endsInReport(tail) || c.isFaultXML(head, tail)),
		head[0] == '{' && (c.Dialect.Exceptions == ExceptionsJSON && isFaultJSON(head) || c.isFaultOf(head, tail)):
		return AnswerFault
	}
	return AnswerGood
}

// isFaultReport reports whether an XML document is an exception report of any
// version, by its root; or an HTML page the one in which MapServer says what is
// wrong with a request of which it cannot tell the service.
func isFaultReport(b []byte) bool {
	root := rootName(b)
	return isReport(root) || len(root) == 4 && strings.EqualFold(string(root), "html") &&
		bytes.Contains(b, []byte("<TITLE>MapServer Message</TITLE>"))
}

// isReport reports whether an element of a name, with or without a prefix, is a
// report of exceptions: of OWS Common, of what came before it, or of WMS 1.0.
func isReport(name []byte) bool {
	switch string(name[bytes.LastIndexByte(name, ':')+1:]) {
	case "ExceptionReport", "ServiceExceptionReport", "WMTException":
		return true
	}
	return false
}

// endsInReport reports whether the last tag of a document closes a report.
func endsInReport(tail []byte) bool {
	tail = bytes.TrimRight(tail, " \t\r\n")
	i := bytes.LastIndex(tail, []byte("</"))
	return i >= 0 && tail[len(tail)-1] == '>' && isReport(tail[i+2:len(tail)-1])
}

// rootName gives the name of a document's root, with its prefix: what the first
// tag has that is neither a declaration, a comment nor the document type. It is
// empty where the document ends before.
func rootName(b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '<')
		if i < 0 || i+1 == len(b) {
			return nil
		}
		switch b = b[i+1:]; {
		case b[0] == '?':
			b = after(b, "?>")
		case bytes.HasPrefix(b, []byte("!--")):
			b = after(b, "-->")
		case b[0] == '!':
			// The document type ends behind its internal subset, if it has one.
			if end, subset := bytes.IndexByte(b, '>'), bytes.IndexByte(b, '['); subset >= 0 && subset < end {
				b = after(b, "]")
			}
			b = after(b, ">")
		default:
			end := bytes.IndexAny(b, " \t\r\n/>")
			if end < 0 {
				return nil
			}
			return b[:end]
		}
	}
}

// after gives what follows the first mark in b.
func after(b []byte, mark string) []byte {
	if i := bytes.Index(b, []byte(mark)); i >= 0 {
		return b[i+len(mark):]
	}
	return nil
}

// isFaultJSON reports whether a JSON document is the exceptions that GeoServer
// and MapServer answer EXCEPTIONS=application/json with: an object that begins
// with its version and a list of exceptions, in either order.
func isFaultJSON(b []byte) bool {
	key, rest := firstKey(b[1:])
	if string(key) == "version" {
		value := bytes.TrimLeft(rest, " \t\r\n")
		if len(value) == 0 || value[0] != '"' {
			return false
		}
		value = after(value[1:], `"`)
		value = bytes.TrimLeft(value, " \t\r\n")
		if len(value) == 0 || value[0] != ',' {
			return false
		}
		key, rest = firstKey(value[1:])
	}
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return string(key) == "exceptions" && len(rest) > 0 && rest[0] == '['
}

// firstKey gives the key of the member that b begins with, and what follows its
// colon. Both are empty where b begins with none.
func firstKey(b []byte) (key, rest []byte) {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != '"' {
		return nil, nil
	}
	end := bytes.IndexByte(b[1:], '"')
	if end < 0 {
		return nil, nil
	}
	key, rest = b[1:1+end], bytes.TrimLeft(b[end+2:], " \t\r\n")
	if len(rest) == 0 || rest[0] != ':' {
		return nil, nil
	}
	return key, rest[1:]
}

// errsInJSON reports whether the protocol tells of errors in JSON under a status
// of success.
func (c *Call) errsInJSON() bool {
	switch c.Family {
	case "arcgis", "nominatim", "overpass":
		return true
	}
	return false
}

// isFaultOf reports whether a JSON document is an error of the call's protocol.
func (c *Call) isFaultOf(head, tail []byte) bool {
	switch c.Family {
	case "arcgis": // whatever is wrong, and a job that has failed
		key, _ := firstKey(head[1:])
		return string(key) == "error" || bytes.Contains(head, []byte(`"esriJobFailed"`))
	case "nominatim": // also for a position with nothing near it
		key, _ := firstKey(head[1:])
		return string(key) == "error"
	case "overpass": // a query that was cut short says so behind what it had found
		return hasRemark(head, `"remark":`) || hasRemark(tail, `"remark":`)
	}
	return false
}

// isFaultXML is isFaultOf for XML.
func (c *Call) isFaultXML(head, tail []byte) bool {
	switch c.Family {
	case "nominatim":
		return c.Op == "reverse" && bytes.Contains(head, []byte("<error>"))
	case "overpass":
		return hasRemark(head, "<remark>") || hasRemark(tail, "<remark>")
	}
	return false
}

// hasRemark reports whether Overpass says, behind a mark, that it gave up.
func hasRemark(b []byte, mark string) bool {
	i := bytes.LastIndex(b, []byte(mark))
	return i >= 0 && bytes.Contains(b[i:], []byte("runtime error"))
}

// decodeHead undoes the content coding of the head of a body, up to FaultHead
// bytes. What cannot be undone, or has several, is given as nothing.
func (r *room) decodeHead(head []byte, contentEncoding string) []byte {
	coding := strings.ToLower(strings.TrimSpace(contentEncoding))
	r.out, _, _ = appendDecoded(r.out[:0], head, coding, FaultHead)
	return r.out[:min(len(r.out), FaultHead)]
}

func startsFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

func endsFold(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}
