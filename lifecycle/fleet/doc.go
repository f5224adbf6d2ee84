// Package fleet keeps the sessions of a project in PostgreSQL as well, so that they outlive their
// machine and continue on another one.
//
//	f, err := fleet.Open(fleet.Options{URL: url, Project: id})
//	sess := f.Ship(store, s)           // ships what s acknowledges, in the background
//	err = sess.Replicated(ctx)         // the database has it
//	err = sess.Close(ctx)
//	err = f.Pull(ctx, store, session)  // on another machine
//
// The log on the local disk comes first. A Session ships the lines of the log that the writer has
// acknowledged, in order and byte for byte, with the contents that they name. What is there is at
// any time a beginning of what is here, and reads as a session. With the database slow, down or
// away for long nothing here waits, and the log is the backlog: a cursor keeps its segments.
//
// A lease says who continues a session: the holder, a process that knows a random text, and the term, which
// is raised whenever somebody takes the lease. Each batch is a transaction that is guarded by both
// and by the last record. So a process that was cut off while another one took the session ships
// nothing over it: it finds out, and its session pauses as fenced. Only the clock of the database
// says when a lease is over.
//
// schema/ has the tables; [SQL] returns them. The design of guarded batches follows the logs of
// raft: a record is accepted only behind the one that its sender has before it.
//
// # Concurrency
//
// A Fleet and a Session may be used from any goroutine. A Fleet has a few connections, whatever the
// number of its Sessions, and each Session has one goroutine. Nothing depends on the state of a
// connection between two transactions, so that a pooler may be in between.
//
// # Crash safety
//
// What [Session.Replicated] waited for was committed by the database, with synchronous_commit on.
// That a failover loses nothing of it takes a synchronous standby (synchronous_standby_names).
// After an unknown outcome the Session reads the last record there again before it ships on. A
// crash here costs nothing: the next Session compares the last record there with the log.
//
// # Caveats
//
// A database that was restored from an older backup lacks records that were replicated. The next
// batch says so, and ships them again as long as they are in the log.
package fleet
