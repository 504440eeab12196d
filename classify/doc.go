// Package classify reads what a spatial request asks for and prices it before
// it runs.
//
// # The model
//
// A request belongs to a family (the protocol it speaks), names an operation
// of it, and carries inputs: features, vertices, raster cells, bytes. Its
// estimate is
//
//	seconds = base + features*f + vertices*v + cells*c + bytes*b
//
// with the rates of the operation. The inputs come from the request in one
// pass; what the request does not carry (rows inside a bbox, vertices per
// feature) is assumed, and the estimate says so in its basis and by its low
// confidence.
//
// # Families
//
// A family is one file and one table of golden requests. Its file registers it
// with a rank: [Families] are asked in the order of their ranks, and the first
// that recognises a request wins. What a rule of the config recognises comes
// before all of them, and what nothing recognises is the default cost's. The
// families of OGC web services go by the query and by XML, which says nothing
// to an upstream that goes by the path: each of them is heard, and the first of
// those that go by the path, and the dearest counts. A
// family reads the request in place, through a view that has one reading of the
// path, and gives the inputs, which of them it had to assume, and the basis in
// words; [Classifier.Estimate] does the rest.
//
// # What always holds
//
//  1. The package is pure: no network, no clock, no log, no randomness.
//  2. Estimating never fails. Input that cannot be read is priced as the
//     dearest that it could be, never as cheap, and never expanded.
//  3. A request is priced in every reading that an upstream may make of it
//     (repeated keys, ';' as separator or as text, escaped slashes and dot
//     segments); the dearest counts.
//  4. A larger input never costs less: bbox, limit, image, zoom range, geometry.
//  5. Work and memory are linear in the size of the input, whatever it holds.
//  6. What is not known to be a read is a write.
package classify
