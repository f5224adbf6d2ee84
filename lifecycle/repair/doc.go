// Package repair assesses the condition of a session's files, and recovers a State from
// damaged ones.
//
// [Verify] reads all of a session's folder and returns a [Report]: the [Condition], and
// each [Fault] with its place. [Recover] rebuilds the State of a damaged session by one of
// four strategies and returns a [Recovery], which lists what was lost. The caller makes a
// new session of it. The damaged folder is not changed.
//
// # Concurrency
//
// Any goroutine may call the functions. They take no lock: while a writer is live the end of
// a log may look torn for a moment.
//
// # Crash safety
//
// Only [Writing] and [Sync] write to the disk: a temporary file, which they remove.
package repair
