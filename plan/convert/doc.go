// Package convert makes the content of a new plan: of the task lists of other tools
// ([Plan]), and of the acceptance criteria of a specification ([FromCriteria]). It is pure:
// bytes in, bytes out.
//
// # Nothing is lost
//
// The lines of a list that have a box are found without a parser. The parser of Markdown
// decides which of them are list items, what their marks mean is decided by the kind of
// the list, and each is a task of the plan or a [plan.Remark] of [Result.Left].
//
// An item that is no task stays as a list item without a box. What would change the tasks
// if it stood in the plan as it is (prose, or details with a code block that is left open)
// is put into a code block.
//
// # Order
//
// Numbers and "depends on" become `<!-- after: ID -->`. Of a circle what points forward in
// the file is left out, so that no task waits for itself.
//
// # Concurrency
//
// The functions may be called from any goroutine.
package convert
