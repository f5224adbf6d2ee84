// Package lifecycle is the front door of Lopen's storage: a [Store] is the
// .lopen folder of one project, a [Session] is one session of it that this
// process holds for writing.
//
//	store, _, err := lifecycle.Init(project, lifecycle.Options{})
//	sess, err := store.Create(ctx, "auth")
//	err = sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error {
//		e.Header().Phase = session.PhasePlanning
//		return nil
//	})
//	err = sess.Sync(ctx)   // durable from here on
//	err = store.Close(ctx)
//
// What is damaged is told by [Store.Verify], moved aside by [Store.Open], and made
// good as far as that goes by [Store.Recover], which makes a new session and leaves
// the damaged one alone. What was edited outside stays, is shown, and is taken by
// [Store.AcceptEdit].
//
// # Concurrency
//
// A Store and a Session may be used from any goroutine. Between processes two
// locks keep order: the store lock (.lopen/.lock) is held for the moment in which
// a session is created or the hint to the latest one changes; the lease
// (sessions/{id}/.lock) is held by the one process that writes the session. The
// store lock is never held while a lease is waited for: leases are only tried.
//
// Reading takes no lock. What decides is the session's log; the readable files only
// spare a reader the records that they cover. One that meets the writer in the
// middle of something begins again.
//
// # Crash safety
//
// A session is made in a folder under a temporary name and renamed into place
// when it is complete: after a power cut it is there whole or not at all. Its
// counter in ids.json is durable before that, so an ID is never given twice.
// Every commit is one write to the log and one fdatasync; see writer/journal.
package lifecycle
