package classify

import "fmt"

// Class says what kind of call a request is for admission: how long it may
// wait, how long it may run, and what happens when it is too big.
type Class uint8

// The classes. The zero value is no class and is never the class of an
// estimate.
const (
	_         Class = iota
	Metadata        // capabilities, landing pages, schemas, TileJSON, styles, legends
	Tile            // one tile of a pyramid, or a map picture no larger than 512 x 512
	Map             // larger pictures, exports, feature info
	Typeahead       // autocomplete, suggest
	Read            // one page of features, look-ups, reverse geocoding, a route
	Download        // later pages, unbounded reads, coverages, file formats
	Compute         // processes, overlays, matrices, isochrones, statistics
	Async           // submissions that the upstream queues itself
	Range           // byte ranges of cloud-optimised files
	MCP             // tools/call
	Write           // transactions, edits, whatever is not known to be a read

	classEnd
)

var classNames = [classEnd]string{
	Metadata: "metadata", Tile: "tile", Map: "map", Typeahead: "typeahead", Read: "read", Download: "download",
	Compute: "compute", Async: "async", Range: "range", MCP: "mcp", Write: "write",
}

// String gives the class's name as it stands in the config file and in metrics.
func (c Class) String() string {
	if c < classEnd && classNames[c] != "" {
		return classNames[c]
	}
	return "unknown"
}

// Classes lists every class, in the order of their declaration.
func Classes() []Class {
	all := make([]Class, 0, classEnd-1)
	for c := Metadata; c < classEnd; c++ {
		all = append(all, c)
	}
	return all
}

// ParseClass reads a class's name.
func ParseClass(name string) (Class, error) {
	for c := Metadata; c < classEnd; c++ {
		if classNames[c] == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("%q is no class", name)
}
