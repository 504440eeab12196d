package classify

import (
	"cmp"
	"net/http"
	"slices"
)

// family is one protocol. Each is one file, which registers it.
type family struct {
	name string
	// rank orders the families where the protocol of a request is detected: the
	// first that recognises it wins.
	rank int
	// recognise says what v asks for. False is what is not of this family.
	recognise func(v *view) (answer, bool)
}

// The ranks, by what a family is recognised from: the surest first. Within one,
// families add what puts them before the less specific.
const (
	rankKVP  = 100 // SERVICE= or the root of an XML body
	rankPath = 200 // the shape of the path
)

// families are sorted by rank, and by name within one.
var families []family

// register is called by the init function of a family's file.
func register(f family) {
	at, _ := slices.BinarySearchFunc(families, f, func(a, b family) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return cmp.Compare(a.name, b.name)
	})
	families = slices.Insert(families, at, f)
}

// Families lists the protocols that are recognised, in the order in which they
// are asked.
func Families() []string {
	names := make([]string, len(families))
	for i := range families {
		names[i] = families[i].name
	}
	return names
}

// view is a request as the families see it: with one reading of its path.
type view struct {
	*Request
	segments
	settings
	ows ows // what the families of OGC web services share
}

// settings are what a config says to the families.
type settings struct {
	assume Assume // with its defaults
	sure   sure
	// forced says that the config names the family, so that a shape which
	// other protocols have too may be trusted.
	forced bool
}

// sure says which of the assumptions the config states: they are then known,
// not guessed.
type sure struct{ features, vertices, limit bool }

// answer is what a family reads from a request.
type answer struct {
	Call
	// guess is the part of the inputs that was assumed.
	guess Inputs
	// unsure marks an operation whose cost is not known from its inputs.
	unsure bool
	// body says that the body changes the price.
	body bool
}

// read reports whether the method only reads.
func (r *Request) read() bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == ""
}

// count counts the geometry of the body.
func (r *Request) count() Geometry {
	return CountBody(r.Body, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Type"))
}

// unread reports whether nothing was read of a body: what is counted of it is
// then the dearest that it could be, and so a guess.
func (r *Request) unread() bool { return len(r.Body.Prefix) == 0 && !r.Body.empty() }

// timesVertices says what addVertices does.
func (v *view) timesVertices(b *basis) *basis {
	return b.text(" x ").count(float64(v.assume.Vertices), "vertex").assumed(!v.sure.vertices)
}

// addVertices adds the vertices of so many features as the collection has on
// average.
func (v *view) addVertices(a *answer, features float64) {
	n := features * float64(v.assume.Vertices)
	a.Vertices += n
	if !v.sure.vertices {
		a.guess.Vertices += n
	}
}
