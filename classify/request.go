package classify

import "net/http"

// Request is what the package reads of a request. Nothing in it is changed.
type Request struct {
	Method string
	Host   string      // as the caller named it
	Path   string      // with its escapes, as it came
	Query  string      // raw, without the '?', as it came
	Header http.Header // as it came; may be nil
	Body   Body
}

// Body is as much of a request's body as was read before the decision. The
// zero value is an empty body.
type Body struct {
	Prefix []byte // the first bytes, at most BodyConfig.Bytes of them
	Length int64  // bytes in the whole body; -1 where nobody said
	Whole  bool   // Prefix is all of it
}

// empty reports whether there is known to be no body.
func (b Body) empty() bool { return b.Length == 0 && len(b.Prefix) == 0 }
