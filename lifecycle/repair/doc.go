// Package repair judges the condition of a session's files, and recovers a State from
// damaged ones.
//
// [Verify] reads all of a session's folder and returns a [Report]: the [Condition], and
// each [Fault] with its place. [Recover] rebuilds the State of a damaged session by one of
// four strategies and returns a [Recovery], with what was lost in words; the caller makes a
// new session of it. The damaged folder stays as it is.
//
// # Concurrency
//
// Everything may be called from any goroutine. Nothing takes a lock: while a writer is live
// the end of a log may look torn for a moment.
//
// # Crash safety
//
// Nothing is changed on the disk.
package repair
