// Package tasks keeps the task tree of a session's State in step with the plan
// that a person edits: [Reconcile] copies the plan's items into the State and reports what
// differs, [Set] changes one task and derives its parents, [Order] decides what
// runs next and why the rest waits. All of it is pure: States and plans in,
// States and values out.
//
// The plan is the person's. The State remembers each box as lopen last wrote or
// saw it (session.Task.Box), so a box that differs was changed by somebody else;
// who that may have been depends on when it is noticed, which is what [When] says.
//
// # Concurrency
//
// Everything here is a function of immutable values and may be called from any
// goroutine.
package tasks
