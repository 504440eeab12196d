package classify

import "time"

// Inputs are the quantities that drive the cost of a request.
type Inputs struct {
	Features float64 // features read, rows dropped by an offset included
	Vertices float64 // vertices read and sent, those of the request's own geometry included
	Cells    float64 // raster cells or pixels
	Bytes    float64 // bytes, of byte ranges
}

// Call is what a request asks for: the answer of a family that recognised it.
type Call struct {
	Family string // "ogcapi"; "http" where a rule or nothing recognised it
	Op     string // "items"
	Class  Class
	Inputs

	Collection string // what the operation reads, as the request names it; not verified to exist
	Layer      string
	Format     string

	// Assumed says that an input which the request does not carry was assumed.
	Assumed bool
	// Basis says in words what the inputs were taken from: "limit=1000 x 52 vertices".
	Basis string
	// Replayable says that sending the request twice does no more than sending it once.
	Replayable bool
	// LaterPage marks a page of a paged read after its first.
	LaterPage bool
	// Timeout is the request's own, where its protocol has one; 0 where it does not.
	Timeout time.Duration
	// Native is the form in which the caller's software expects a refusal.
	Native Native
}

// Estimate is the price of a call.
type Estimate struct {
	Call
	// Seconds the upstream is expected to work, in [1e-3, 3600].
	Seconds float64
	// Low marks an estimate that must not be the ground for refusing: its
	// inputs were assumed, or the request was not recognised.
	Low bool
}

// Native names the form of a refusal that a protocol's software understands.
type Native uint8

// The forms. The zero value, NativeProblem, is right for every JSON protocol.
const (
	NativeProblem    Native = iota // application/problem+json, RFC 9457
	NativeRasterTile               // a short text: an <img> takes a picture under an error status for success
	NativeVectorTile               // no bytes at all
)
