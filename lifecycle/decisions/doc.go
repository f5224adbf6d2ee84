// Package decisions edits a module's plan for a run and for a person's commands at the same
// time, and notes what the person decided, so that the run can tell it from what its agent
// wrote into the plan.
//
// [Edit] changes the plan. [Decide] changes it for a person: it notes the decision durably and
// then edits the plan. [Read] returns the decisions that were noted, and [Forget] removes those
// that the State of a session has, durably.
//
// # Concurrency
//
// Functions may be called from any process at any time. Edit, Decide and Forget hold a lock of
// the plan, so that no two of them lose each other's change. It is held for a moment only.
// Editors do not take it; see plan.Apply. Read takes no lock: a caller that reads the plan
// first and the decisions second finds the decision for each edit that it saw.
//
// # Crash safety
//
// The note is what counts. After a crash before it, nothing was decided. After a crash between
// note and plan, who reads the note carries it out on the plan. A decision that was taken and
// not forgotten is taken again, which changes nothing (tasks.Decision.Apply). Where the plan
// cannot be written the note is withdrawn: a command that fails has decided nothing.
package decisions
