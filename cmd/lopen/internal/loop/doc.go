// Package loop is the run of `lopen run`: everything between its flags and its exit code. It
// takes the tasks of a plan one after another, starts the command on each, judges the outcome,
// saves the State, ticks the box, and survives failures meanwhile.
//
// [Run] executes a [Config] with a [Session] and a [UI], and returns an [*Exit] if the module
// is not complete. [DryRun] returns what Run would do. [PlanFor] finds or drafts the plan, and
// [EndOrphans] ends the commands of earlier runs before a run.
//
// # Order of what becomes durable
//
// Before the command starts, the State with the active task is durable, so that a restart
// knows that the task may have been worked on. When a task is done, its State becomes durable
// first and then its box is ticked: a kill in between leaves a complete task with an open box,
// which the next run ticks without running the task.
//
// # Concurrency
//
// A run belongs to one goroutine. Goroutines of package child copy the command's output, and
// one goroutine delivers events to OnEvent. They call UI and the writers that it returns too.
package loop
