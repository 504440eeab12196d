// Package proxy admits spatial requests and forwards them.
//
// # One request, one path
//
// A request is identified, routed, priced and classed; a mode is chosen; then
// tokens are reserved and seats taken under one admission deadline, and only
// then does anything touch the upstream. [Admission] does all of that for
// every front end, in [Admission.Decide], which reads top to bottom. A front
// end translates its request in and the [Verdict] out and decides nothing.
// [Proxy] is the HTTP front end.
//
// # What always holds
//
//  1. A refused request never touches the upstream: no connection, no byte.
//  2. What a verdict holds (tokens, seats) is given back exactly once, when the
//     upstream's work has ended as far as can be known.
//  3. No request waits past its deadline on any part of this package.
//  4. A request ends under the config it began with; gates and buckets are the
//     living ones, known by name.
//  5. The same request gets the same verdict through every front end, given
//     the same state of buckets, gates and model.
package proxy
