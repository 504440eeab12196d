package shed

import (
	"net/http"

	"github.com/geoproxy/geoproxy/classify"
)

// Body is the body of a refusal. Its bytes may be shared between answers and
// must not be changed.
type Body struct {
	ContentType string // empty where there are no bytes
	Bytes       []byte
}

// Body gives the refusal's body in the form that the caller's software
// understands. It is a pure function of the refusal and the config: no clock,
// no identifier, no randomness.
func (r *Refusal) Body(cfg BodyConfig) Body {
	status := r.status()
	if status == http.StatusNoContent {
		return Body{}
	}
	if cfg.Body == bodyEmpty {
		if body, ok := r.emptyBody(); ok {
			return body
		}
	}
	switch r.Native {
	case classify.NativeRasterTile:
		return Body{ContentType: "text/plain; charset=utf-8", Bytes: append(r.appendMessage(make([]byte, 0, maxMessage+1)), '\n')}
	case classify.NativeVectorTile:
		return Body{}
	case classify.NativeOWS:
		return r.owsBody()
	case classify.NativeProblem:
	}
	return Body{ContentType: "application/problem+json", Bytes: r.appendProblem(make([]byte, 0, problemSize))}
}

func (r *Refusal) status() int {
	if r.Status != 0 {
		return r.Status
	}
	return r.Reason.Status()
}
