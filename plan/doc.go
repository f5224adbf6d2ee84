// Package plan reads a module's plan.md and edits it byte by byte.
//
// A [Plan] is the content of a file at one moment: its tasks in file order, made by
// [Parse] or [Load]. The plan is the person's, so whatever is in the file stays as
// it is: no file is ever written from the task tree, except for a new one
// ([CreateFile], of what the package convert makes).
//
// # Edits
//
// A [Change] makes a plan of a plan: [Boxes], [Marks], [Add], [Remove], [Move],
// [Rename]. A changed box is one changed byte. Every other change is a few lines
// cut out or put in, and the result is parsed before it is used: it must have the
// tasks and headings that are expected, each with the same text, state, details and
// notes, or the edit is refused with [ErrTangled]. So the parser alone decides what an
// edit does; there is no second reading of Markdown.
//
// [Apply] makes a change to a file. It compares what was read with the file as it is. If
// somebody edited the file meanwhile, Apply makes the change to their version where it
// concerns tasks that they did not touch, and returns a [ConflictError] where it does.
//
// A [Mark] is what a box cannot say: ` <!-- lopen: failed, 3 attempts -->` behind
// the text of a task that is open. It goes when the task is ticked with [Boxes].
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
// What belongs to no item is prose: [Plan.Intro] and [Plan.Around] say what stands above
// the first task and around one. [Plan.Origin] is the file that a plan was made from, as a
// comment behind the title says: `<!-- lopen:from specs/001/tasks.md -->`.
//
// # Life
//
// A Plan does not change. Apply returns the one that the file holds afterwards;
// the next Load may find another, as people edit the file whenever they like.
// [Load] does not parse a file again whose content is the same as before.
//
// # Concurrency
//
// A Plan is immutable and may be shared; functions may be called from any
// goroutine. Two Apply on one file at a time are the caller's to prevent: the
// loser's edit could be lost (see Apply).
//
// # Crash safety
//
// A plan is replaced by one atomic rename that is durable when Apply returns;
// a crash leaves the old file or the new one. An editor that saves in the moment
// between the last look and the rename, some hundred microseconds, loses what it
// saved: no portable call replaces a file only if it is still the same, and editors
// take no lock. A new plan is there completely or not at all.
package plan
