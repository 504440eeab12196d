package shed

import "github.com/geoproxy/geoproxy/classify"

// Refusal is all that the answer to a refused request is made of. The same
// refusal has the same bytes.
type Refusal struct {
	Reason Reason
	// Status is the answer's, after BodyConfig.StatusFor. 0 stands for the
	// reason's own.
	Status int
	// Wait is the whole seconds of Retry-After, 1 to 3600; 0 where waiting
	// cannot help.
	Wait int
	// Projected is the whole seconds that a job would have taken from now to
	// its end; 0 where the refusal is not a queue's.
	Projected int
	// Job says that the same request is taken as a job where the caller asks
	// for that.
	Job bool

	Family, Op string
	Class      classify.Class
	Native     classify.Native
	Dialect    classify.Dialect // where Native is NativeOWS
	Format     string

	// Seconds is the estimate; Basis its basis in words. Zero and empty where
	// they are not to be disclosed, or nothing was estimated.
	Seconds float64
	Basis   string
	// Low marks an estimate whose inputs were assumed.
	Low bool
	// Limit is what was passed; its zero value is none.
	Limit Limit
	// Detail adds what is wrong with a request that cannot be read. It must
	// not quote what the request may hold of secrets.
	Detail string
}

// Limit names a limit, its value, and what the request has of it.
type Limit struct {
	Name  string
	Value float64
	Unit  string // "s" where it is seconds of the estimate
	Yours float64
}
