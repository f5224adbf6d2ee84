// Package commit writes the files of one session: the session's actor hands its States and
// entries to a [Committer].
//
// [Make] makes a session, [Open] resumes one. [Stage] makes one elsewhere, for an import of many:
// each of its files is synced once, when it is closed. A commit is one write to the log and one
// fdatasync. When the session is quiet a publication writes state.json and metrics.json, and
// the readable copies of messages and events; only the log decides what is true. Closed
// segments of the log are compressed, and the oldest records are dropped when the log is
// longer than the policy allows.
//
// A Committer checks its lease and folder before it writes, and returns an error when either
// is gone. Recover takes the lease again unless another process resumed the session, and
// recreates a removed session from memory.
//
// # Concurrency
//
// A Committer belongs to one actor: its methods are called one at a time. The job that
// Publication returns runs in another goroutine while commits continue. A [Reserve] may be
// used from any goroutine.
//
// # Crash safety
//
// Make renames a complete folder into place: after a power cut the session is there whole
// or not at all. After Stage the caller renames it, once Close has returned nil. Commit returns nil only when the batch is durable. A crash at any other
// moment may leave readable files that are older than the log or damaged; the next Open of
// the session writes them again.
package commit

// filePerm is the mode of every file that this package writes.
const filePerm = 0o600
