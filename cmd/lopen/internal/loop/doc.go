// Package loop is what `lopen run` does between its flags and its exit code:
// it takes the tasks of a plan one after another, starts the command on each,
// judges the outcome, saves the state and ticks the box, and survives what goes
// wrong meanwhile.
//
// # Order of what becomes durable
//
// Before the command starts, the State that names the active task is durable, so
// that a restart knows that somebody may have worked. When a task is done its
// State is durable first and its box is ticked then: a kill in between leaves a
// complete task with an open box, which the next start ticks without running it.
//
// # Concurrency
//
// A [Runner] is used by one goroutine. The command's output is copied by
// goroutines of package child; the UI's writers take care of themselves.
package loop
