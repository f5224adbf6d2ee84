// Package sidecar keeps transactions: the changes that a session makes to the project's files,
// as a branch of a git repository of their own, .lopen/sidecar.git. The project's own
// repository is never opened.
//
//	s, err := sidecar.Open(store.Path(), sidecar.Options{Scratch: folder})
//	t, err := s.Begin(ctx, source, begin, "")   // before the session's State names t.ID
//	err = s.Record(ctx, t, source)              // after each completed task
//	c, err := s.Commit(ctx, t, source, subject, false)
//
//	.lopen/sidecar.git              a bare repository: main, and lopen/session-{transaction}
//	.lopen/transactions/{id}.json   the manifest of a transaction
//	.lopen/transactions/.lock       held by whoever writes one of these
//
// Commits are made from the trees of checkpoints, never from the work tree, so a branch can be
// made again from the checkpoints ([Store.Remake]). What git cannot hold is left out: empty
// folders, names that are .git to some system, permission bits other than the owner's executable one.
//
// # The state of a transaction
//
// It is committed if main has a commit that names it. It is rolled back if its manifest says so,
// and the chain of checkpoints has no undo of that rewind. Else it is in progress. So no state
// has to agree with another file.
//
// # What git may do
//
// Git is started with a git directory of our own, which exists for one command: the side-car's
// configuration, hooks, attributes and references are never read by it. Of the side-car it gets
// the objects; references are read and written here. No variable GIT_* reaches it, nor does the
// configuration of the user or the system. It may use no network and is ended after a time that
// follows from the size of the checkpoint.
//
// # Concurrency
//
// A Store belongs to one goroutine. Several processes may have one: a lock orders their writes.
//
// # Crash safety
//
// A reference is replaced when the pack with its commit is durable, and a manifest after that.
// What git writes lies apart until it has succeeded; the next writer removes what a crash left
// there. Record writes what is missing then, from the session's log.
package sidecar
