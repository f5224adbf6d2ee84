// Package actors has the goroutines that own state: one [Actor] per session
// owns that session's files through a [Committer], and one [Supervisor] holds
// the actors of a process and shuts them down together. It knows nothing of
// files, paths or Markdown.
//
// # Life of a save
//
// [Actor.Save] puts the newest State into an atomic pointer and one request
// into a buffered mailbox. The writer goroutine takes whatever waits there,
// coalesces it into one [Batch] and hands that to the Committer; meanwhile the
// next burst gathers. A State is immutable, so nothing is copied or encoded in
// the caller, and the cost of a Save does not depend on its size.
//
// A full mailbox neither blocks nor loses: the State is in the pointer already,
// and the trigger is added to a counter that the writer drains with the mailbox.
//
// # Concurrency
//
//   - Save, Update, State, Paused, Critical: any goroutine, never wait. They
//     touch atomics and do one non-blocking channel send.
//   - Sync, Flush, Unpause, Close: any goroutine, wait for the disk or for their
//     context. A barrier is an ordinary message to the writer goroutine: all
//     that was saved before the call is in the pointer that it reads.
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
// The shape (state that one goroutine has authority over, channels that are nil
// while they do not apply) is that of the actors in tailscale's event bus; the
// sticky error and the group commit are those of write-ahead logs.
package actors
