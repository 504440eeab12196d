// Package shed holds the gate and the bodies of refusals.
//
// # The gate
//
// A gate is N seats in front of something that can bear only so much at once.
// A request enters with a number of seats, waits in one bounded line for them
// until its deadline, and holds them as a slot until the upstream's work has
// ended. Deciding and holding happen under one lock, so the same order of
// arrival always gives the same decisions.
//
// # What always holds
//
//  1. Seats held never exceed the gate's seats, nor slots its connections,
//     whatever is cancelled, times out or panics. After a reload to fewer
//     seats nobody enters until the surplus has left.
//  2. A slot is released exactly once; releasing again does nothing.
//  3. Nobody waits past its deadline, and who cannot be served is refused at once.
//  4. Nobody overtakes in the line but by class: metadata first, batch last.
//     A request too wide for what is free holds up those behind it; one that a
//     cap of its class holds back holds up only those under the same cap.
//  5. Waiting is by event and timer. Nothing polls.
//
// # Bodies
//
// The same refusal has the same bytes: a body is a pure function of the
// request, the compiled policy, the estimate to two significant digits, and
// one whole number, the seconds to wait.
package shed
