// Package checkpoint keeps the files of a work tree at moments, and brings them
// back. It knows nothing of sessions' journals or terminals.
//
// A [Store] is one chain of checkpoints: a file of [Entry] lines, each of which names
// the root of a [Tree]. Trees and contents are objects of package blob, named by their
// hash: equal folders are one object, and two trees are compared by going down only
// where hashes differ. [Store.Create] makes an entry, [Store.Plan] says what a rewind
// would do and [Store.Apply] does it, [Store.Thin] removes what a limit does not keep,
// and [Roots] says which objects are still needed.
//
//	checkpoints/main.jsonl   the chain of the main work tree
//	checkpoints/main.files   what the file tracker remembers; derived
//	checkpoints/.lock        held while an entry is appended
//
// # Whose change it is
//
// The interval between two entries belongs to the one task that was active in it. An
// interval without one is nobody's, one with several, or whose task was cut off (it ended
// without an entry), is contested. A rewind goes through the intervals since the target: it brings back a path
// that the session's own tasks alone changed, and keeps and names every other. A rewind
// gives a path back the history that the value had at its target.
//
// # Ignore rules
//
// The rules in force are those that somebody other than a task made: what the first entry
// of the chain finds, and what changes while no task is at work. A rule that a task adds
// keeps new paths out and takes nothing out that was captured; a rule that a task removes
// stays in force.
//
// # Concurrency
//
// All functions may be called from any goroutine and any process. Create, Apply, Pin and
// Thin of one Store run one at a time; two Stores of one chain order their entries by
// its lock.
//
// # Crash safety
//
// An entry counts when its line is durable, which is after its objects are. A removal is
// a durable line before any object is swept.
//
// Apply writes every new content to a temporary file, verified and synced, before it
// changes a name or a content: a full disk or a damaged blob leaves the tree as it was.
// Then it renames, removes, gives the modes, and syncs each folder. What it replaces or
// removes is read right before, and stays if it is not what the plan saw. A folder whose
// mode forbids the change is opened for it. All such folders are in the plan, so that
// the Apply that finishes a rewind after a crash closes them. Temporary names are derived
// from the rewind's entry and the path, and the next Apply of the plan removes just those.
//
// Where names fold, a path at which only another spelling is found is as good as missing:
// Apply finds that by listing the folder. A rename of case removes the old name first and
// then moves the content in. If the plan does not remove the old name, both stay.
//
// After a failed sync of a folder, which the error reports, nothing that is done again
// proves more than the first time did: see package writer.
//
// # Caveats
//
// What a program writes into a file between the look and the rename that follows at
// once is lost to it, as it is with every tool that replaces files by name.
//
// Of a mode, the permission bits are recorded. Setuid, setgid and sticky are never made; what
// is not written anew keeps its own. A file that is written anew belongs to the user of
// the process, has the time of the rewind, no extended attributes and no second name: the
// other names of a hard link keep their content and mode. A file or folder of which only
// the mode changes keeps its owner, attributes and times, and a file with several names
// is written anew for it. Holes of a sparse file take no space again.
package checkpoint
