// Package criteria knows what a specification asked for when a module's plan was made of it, and
// what has become of that since.
//
// A [Specification] is what one asks for now: its sections, and its acceptance criteria as
// plan.Criteria finds them. A [Record] is what is remembered of one: hashes of the sections, and
// of each criterion its hash, its text and the task that it became. [Record.Compare] says in a
// [Diff] what differs, and [Diff.Update] takes that into the plan.
//
// # What is the same
//
// White space, markup, a box, the place in the file and the kind of heading or bullet make no
// difference. A criterion with an equal hash is the same one wherever it stands. Of the others,
// two of the same section are one that was reworded if their first lines are equal, or if they have
// more than three quarters of their words in common, or half behind the same neighbour, each more
// with the other than with any third. Everything else is gone, or was added.
//
// # What covers a criterion
//
// A criterion that the record has is covered, whatever a person made of its task: who removed or
// renamed a task has decided. One that was added or reworded is covered by a task of the same
// text that no other criterion has. So an update that died before it had written the record,
// and is made again, finds what it did.
//
// # Concurrency
//
// A Specification and a Record are immutable. Only one goroutine at a time may save the
// record of a module: the holder of the plan's lock.
//
// # Crash safety
//
// A record is replaced by one atomic rename. It is written after the plan that it is about, and
// a plan without one is compared by the text of its tasks, or counts as made of what is there.
package criteria
