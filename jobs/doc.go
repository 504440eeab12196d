// Package jobs turns a request that is too big to wait for into a job with a
// handle: it is kept, run behind the interactive requests, and its answer is
// kept until it is collected.
//
// # States
//
// The words are those of OGC API - Processes (statusCode).
//
//	       Submit                Claim                    Finish
//	(none) ------> accepted -----------------> running -----------> successful
//	                |  ^  |    attempt+1        | | |
//	                |  |  |    fence+1          | | +------------> failed
//	         Cancel |  |  |                     | |   a final answer that is no result; the last
//	                |  |  | not started in keep | |   attempt lost, by Finish or Reap
//	                |  |  +--> failed           | |
//	                |  +------------------------+ | Cancel
//	                |    Finish to try again, Reap, hand-back
//	                v                             v
//	             dismissed <----------------------+
//
//	successful, failed, dismissed: ended, for good. Expire takes the result away
//	after keep (410) and the rest after as long again (404).
//
// # What always holds
//
//  1. A job whose Submit returned is never lost: it ends, whatever is killed.
//  2. A worker holds a job by a lease, which it renews, and writes its end only
//     under the fence of its own claim. Who was thought dead and comes back
//     changes nothing, and stops by itself once its lease may be over.
//  3. A result is complete or absent. It is stored under the job and the fence,
//     and the statement that ends the job is what publishes it.
//  4. An attempt is counted when it is claimed, before anything is sent, so a
//     request that kills its workers ends after its last attempt. Only what was
//     never sent, and at most two orderly shutdowns, are given back.
//  5. Cancelling ends a job at once, also a running one: whatever its worker
//     still brings is dropped.
//
// Execution is at least once and publication at most once. Between the end of a
// paused worker's lease and its waking, two attempts may be at work.
package jobs
