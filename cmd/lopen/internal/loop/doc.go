// Package loop is what `lopen run` does between its flags and its exit code. It takes the
// tasks of a plan one after another, starts the command on each, judges the outcome, saves
// the State, ticks the box, and survives what fails meanwhile.
//
// [Run] works through a [Config] with a [Session] and a [UI], and returns an [*Exit] where the
// module is not complete. [DryRun] says what Run would do. [PlanFor] finds or drafts the plan,
// and [EndOrphans] ends the commands of earlier runs first.
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
// A run belongs to one goroutine. Goroutines of package child copy the command's output, and
// one goroutine hands events to OnEvent; UI and the writers that it returns are called from
// these too.
package loop
