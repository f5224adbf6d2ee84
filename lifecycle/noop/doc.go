// Package noop is a store with nothing behind it, for tests, and for a loop that is
// to leave nothing on the disk.
//
//	store, err := noop.Open(project, lifecycle.Options{})
//	sess, err := store.Create(ctx, "auth")
//	err = sess.Save(st, session.TriggerTaskCompleted) // State has it
//	err = store.Close(ctx)                            // gone
//
// A [Store] and a [Session] have the methods of those of package lifecycle that a loop
// calls, and accept and refuse the same things, so that a loop does not know which
// it has. They are as good as nothing allows:
//
//   - A session is what its holder has of it. State, the messages and the plans are
//     there as long as it is open, since a loop that reads back what it said must go
//     on as with files; a long conversation takes its memory.
//   - No store finds a session again: Open, Latest, Fork and Delete say
//     lifecycle.ErrNotFound, also of one that is open, and List is empty.
//   - Sync and Flush have nothing to wait for. They say ErrClosed and the end of
//     their context like the others.
//   - Events and attempts are checked and dropped.
//   - Checkpoint says errors.ErrUnsupported: a nil would have a loop go on as if there
//     were a way back. Look works, since it only reads.
//
// IDs count from 1,000,000,001 on, so that none is that of a session with files.
//
// # Concurrency
//
// As in package lifecycle: a Store and a Session may be used from any goroutine. A
// session has the writer goroutine of package actors, whose commits are discarded.
//
// # Crash safety
//
// None. No file is opened for writing.
package noop
