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
	// Dialect says more of it where Native is NativeOWS.
	Dialect Dialect

	// Window is where on earth the operation reads, x before y (longitude before
	// latitude) whatever the order in the request. It is empty where the request
	// names none, or in a reference system whose order of axes is not known.
	Window Bounds
	// SRID is the EPSG code of the Window's reference system: 4326 for CRS84 too,
	// 3857 for its older names. 0 where it is empty.
	SRID int

	// Forbidden says why the request must not be forwarded at all, whatever it
	// costs: the front end answers bad-request with these words. Empty for
	// nearly every request.
	Forbidden string
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
	NativeOWS                      // an OGC exception report, or a picture, as the Dialect says
)

// Dialect is what a caller of an OGC web service expects an exception to look
// like. Its zero value is no such caller.
type Dialect struct {
	Service string // "WMS", "WMTS", "WFS" or "WCS"
	// Version is that of the answer, one that the service has and not the
	// caller's own words: WMS 1.1.1 or 1.3.0; WFS 1.0.0, 1.1.0 or 2.0.0; WCS
	// 1.0.0, 1.1.0 or 2.0.1; WMTS 1.0.0.
	Version string
	// Exceptions is the form that the caller asked for.
	Exceptions Exceptions
	// Width and Height are those of the picture that was asked for, at least 1
	// and at most 4096; 0 where there is none. The picture's format is Call.Format.
	Width, Height int
	// Transparent says that the picture's background was to be transparent.
	Transparent bool
}

// Exceptions is a form of exceptions that clients of OGC web services ask for.
type Exceptions uint8

// The forms. The zero value is an XML report.
const (
	ExceptionsXML     Exceptions = iota
	ExceptionsInImage            // a picture with the message written on it (WMS INIMAGE)
	ExceptionsBlank              // a picture of nothing but the background (WMS BLANK)
	ExceptionsJSON               // JSON, as GeoServer and MapServer have it
)
