// Package rewind plans and carries out rewinds: the project's files, the State of a session,
// or both go back to a checkpoint.
//
//	p := rewind.Planner{ID: id, State: newest, Mark: mark, Chain: chain, Last: last, ...}
//	r, would, err := p.Preview(ctx, to, rewind.Options{Files: true})
//	done, err := p.Run(ctx, session, r, would)   // or Finish, of one that was cut off
//
// A [Planner] only reads. What a rewind does to the session goes through the [Session] that
// Run and Finish get. [Planner.SetBack] plans the rewind of a failed task, [Needed] and
// [NeededByFailed] say which checkpoints rewinds need, so that they are not removed.
//
// # Concurrency
//
// A Planner is used by one goroutine. That nothing else changes the session's checkpoints
// meanwhile is the caller's to see to.
//
// # Crash safety
//
// A checkpoint is made and the begin is on record, durably, before the first file is
// changed; the end is one commit together with the State. A rewind between the two is
// planned again from the chain and the logs alone, and finished: Finish may be called any
// number of times. One that fails before it changed anything is given up on record.
package rewind
