// Package commit writes the files of one session: a [Committer] is what the session's
// actor hands its States and entries to.
//
// [Make] makes a session, [Open] resumes one. A commit is one write to the log and one
// fdatasync. When the session is quiet a publication makes state.json and metrics.json
// again, and the readable copies of messages and events; nothing that it writes decides
// what is true. Closed segments of the log are compressed, and the oldest records dropped
// where the log may not be as long as it is.
//
// A Committer checks its lease and folder before it writes, and returns an error when either
// is gone. Recover takes the lease again where nobody else resumed the session, and recreates
// a removed session from memory.
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
// or not at all. Commit returns nil only for what is durable. A crash at any other moment
// leaves readable files that are older than the log, or not whole: the next Open of the
// session writes them again.
package commit

// filePerm is that of every file that is written here.
const filePerm = 0o600
