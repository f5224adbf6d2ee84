// Package checkpoint stores the files of a work tree at certain moments, and brings them back.
// It knows nothing of sessions' journals or terminals.
//
// A [Store] is one chain of checkpoints: a file of [Entry] lines, each of which names the root
// of a [Tree]. Trees and contents are objects of package blob, named by their hashes: equal
// folders are one object, and a comparison of two trees reads only folders whose hashes
// differ. [Store.Create] makes an entry. [Store.Plan] plans a rewind and [Store.Apply] executes
// it. [Store.Thin] removes entries beyond a limit, and [Roots] returns the objects that are
// still needed.
//
//	checkpoints/main.jsonl     the chain of the main work tree
//	checkpoints/{name}.jsonl   the chain of a linked work tree, or one that was imported
//	checkpoints/{name}.files   what the file tracker remembers; derived, and believed if Options.Memory has its hash
//	checkpoints/.lock          held while an entry is appended
//
// # Whose change it is
//
// The interval between two entries belongs to the one task that was active in it. An interval
// without a task belongs to nobody. An interval with several tasks, or with a task that ended
// without an entry, is contested. A rewind examines the intervals since its target: it brings
// back the paths that only the session's own tasks changed, and retains and reports all
// others. A path that a rewind brings back gets the history that it had at the target.
//
// # Ignore rules
//
// The rules in force are those that a person made: the rules at the first entry of the chain,
// and changes of rules while no task is active. A rule that a task removes stays in force. A rule
// that a task adds hides nothing: what it alone ignores is stored as any file, of each task up to
// 1,000 files and 16 MiB. Of the rest, each topmost path is hidden: an entry has its number of files
// and bytes and the hash of a listing, and not the contents. It stays hidden until it is gone or a
// rule in force ignores it. A rewind moves it into .lopen/moved by one rename, and undo moves it back.
//
// # Concurrency
//
// All functions may be called from any goroutine and any process. Create, Apply, Pin and
// Thin of one Store run one at a time. The lock of a chain orders the entries of several
// Stores.
//
// # Crash safety
//
// An entry counts when its line is durable; its objects are durable before that. The line of a
// removal is durable before any object is swept.
//
// Apply writes every new content to a temporary file, verified and synced, before it changes a
// name or a content, so that a full disk or a damaged blob leaves the tree unchanged. Then it
// renames, removes, sets the modes, and syncs each folder. It compares what it replaces or
// removes with the plan right before that, and retains what differs, and what somebody renamed
// since the plan was made: no path at which the plan saw a file is made anew. A file whose content
// the plan makes at one path and removes at another is moved by one rename. If neither path has it,
// both are retained; a power cut leaves no such state, because the new name is durable before the
// removal of the old one. Apply opens a folder whose
// mode forbids the change. All such folders are in the plan, so that the Apply that finishes
// a rewind after a crash restores their modes. Temporary names are derived from the rewind's
// entry and the path, and the next Apply of the plan removes only these.
//
// What somebody has open for writing is not replaced or removed, unless [Plan.InUse] is set: Apply
// asks directly before each change, and for a database before the first of all. The files of a database stay or go
// together, and those that go are removed before the database is replaced. A hidden folder with such a
// file in it is not moved.
//
// Where the file system folds names, a path at which only another spelling is found counts as
// missing: Apply finds that by listing the folder. For a rename that changes only the case it
// removes the old name and then moves the content in. If the plan does not remove the old
// name, both stay as they are.
//
// After a failed sync of a folder, which the error reports, a successful retry proves nothing:
// see package writer.
//
// # Caveats
//
// If a program writes into a file, or puts another one in its place, between the comparison and the
// rename or removal that follows at once, that is lost, as with every tool that replaces files by name. A program that opens a file after
// Apply asked, and before the rename that follows at once, writes into one without a name.
//
// Only the permission bits of a mode are recorded. A rewind never sets setuid, setgid or
// sticky; files that are not written again keep theirs. A file that is written again belongs
// to the user of the process, has the time of the rewind, and has no extended attributes and
// no other hard links: the other names keep their content and mode. A file that is moved keeps all
// of these. A file or folder of which
// only the mode changes keeps its owner, attributes and times, but a file with several hard
// links is written again. Holes of a sparse file stay holes.
package checkpoint
