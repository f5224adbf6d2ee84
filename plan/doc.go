// Package plan reads a module's plan.md and edits it byte by byte.
//
// A [Plan] is what a file said at one moment: its tasks in file order, made by
// [Parse] or [Load]. The plan is the person's, so whatever is in the file stays as
// it is: a changed box is one changed byte ([Toggle], [SetBoxes]), and no file is
// ever written from the task tree, except for a new one ([FromMarkdown],
// [FromCriteria], [CreateFile]).
//
// # Tasks
//
// Every task-list item that the Markdown parser sees is a [Task]. A heading that
// directly owns items is their component; the title (the first heading, if it is
// the only one of level 1) and headings called Components, Tasks or Acceptance
// Criteria are not, and the heading around them takes their place. An item in an
// item is a subtask.
//
// IDs come from the text alone: the slugs of component and items down to the
// task, joined by '/', as in auth-controller/add-jwt-validation. A component's ID is
// its slug, however deep its heading is. A slug over 64 bytes is cut, between two
// words unless that loses half of it. Equal siblings get -2, -3 in file order; a
// number that another sibling has by its name is passed over. So an ID survives
// whatever happens to other tasks, equal siblings excepted.
//
// # Life
//
// A Plan does not change. SetBoxes returns the one that the file holds
// afterwards; the next Load may find another, as people edit the file whenever
// they like.
//
// # Concurrency
//
// A Plan is immutable and may be shared; functions may be called from any
// goroutine. Two SetBoxes on one file at a time are the caller's to prevent: the
// loser's boxes could be lost (see SetBoxes).
//
// # Crash safety
//
// A plan is replaced by one atomic rename that is durable when SetBoxes returns;
// a crash leaves the old file or the new one. A new plan is there completely or
// not at all.
package plan
