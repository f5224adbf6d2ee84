// Package actors has the goroutines that own state. One [Actor] per session
// owns that session's files through a [Committer]. One [Supervisor] holds the
// actors of a process and shuts them down together. The package knows nothing
// of files, paths or Markdown.
//
// # Life of a save
//
// [Actor.Save] puts the newest State into an atomic pointer and one request
// into a buffered mailbox. The writer goroutine takes whatever waits there,
// coalesces it into one [Batch] and hands that to the Committer; meanwhile the
// next burst gathers. A State is immutable, so nothing is copied or encoded in
// the caller, and the cost of a Save does not depend on its size.
//
// A full mailbox neither blocks Save nor loses anything: the State is in the
// pointer already, and the trigger is added to a counter that the writer drains
// with the mailbox.
//
// # Concurrency
//
//   - Any goroutine may call Save, Update, Append, State, Paused and Critical.
//     They never wait for the disk: they touch atomics or the backlog and do at
//     most one non-blocking channel send.
//   - Any goroutine may call Sync, Flush, Unpause and Close. They wait for the
//     disk or for their context. Each but Close sends a barrier, which is an
//     ordinary message to the writer goroutine: all that was saved before the
//     call is in the pointer that the writer reads.
//   - The Committer is called by the writer goroutine only, one call at a time.
//   - Which of two Saves that run at the same moment is newer is not defined;
//     loops with several goroutines use Update and then Save(nil, trigger).
//
// # Errors
//
// The first failed commit is sticky: the actor keeps the batch and every later
// State, acknowledges nothing, raises one error on [Actor.Critical] and waits for
// [Actor.Unpause]. A panic of the Committer is such an error too.
//
// The shape follows the actors in tailscale's event bus: one goroutine has
// authority over the state, and a channel is nil while it does not apply. The
// sticky error and the group commit are those of write-ahead logs.
package actors
