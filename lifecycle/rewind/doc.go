// Package rewind plans and executes rewinds: they bring the project's files, the State of a
// session, or both back to a checkpoint.
//
//	p := rewind.Planner{ID: id, State: newest, Mark: mark, Chain: chain, Last: last, ...}
//	r, would, err := p.Preview(ctx, to, rewind.Options{Files: true})
//	done, err := p.Run(ctx, session, r, would)   // or Finish, for an interrupted rewind
//
// Planning only reads. Run and Finish change the session through the [Session] that they get.
// [Planner.SetBack] plans the rewind of a failed task. [Needed] and [NeededByFailed] return the
// checkpoints that rewinds need, so that they are not removed.
//
// # Concurrency
//
// A Planner belongs to one goroutine. The caller makes sure that nothing else changes the
// session's checkpoints meanwhile.
//
// # Crash safety
//
// Before the first file is changed, a checkpoint is made and the begin is recorded, durably.
// The end is recorded in one commit together with the State. A rewind that was interrupted
// between the two is planned again from the chain and the logs alone, and then finished;
// Finish may be called any number of times. A rewind that fails before it changed anything is
// recorded as given up.
package rewind
