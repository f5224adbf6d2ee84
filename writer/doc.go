// Package writer makes bytes durable: it replaces and creates files
// atomically, tells the classes of storage errors apart, and holds the locks
// that keep writers from each other. It knows nothing of sessions and logs nothing.
//
// Everything goes through an [FS], a folder that nothing leads out of.
//
// # Concurrency
//
// Functions may be called from any goroutine. What is atomic is one file: who
// calls [ReplaceFile] holds a [Lock] or is otherwise the only writer of the name.
//
// # Crash safety
//
// ReplaceFile writes a temporary file in the same folder, syncs it, renames it and
// syncs the folder, in this order; it acknowledges after the last step. A crash
// before the rename leaves the old file and a temporary one, which [RemoveTemps]
// clears; one after it leaves the old or the new file, whole. fsync and close are
// never tried again: after a failed fsync Linux marks the pages clean, so that the
// next one reports success for data that never reached the disk (found by the
// PostgreSQL developers in 2018).
//
// google/renameio and natefinch/atomic do the same up to the rename and leave the
// folder unsynced, which is why this is our own.
//
// # Caveats
//
// Windows cannot sync a folder; a new name is as durable there as the file system
// makes it. Locks are flock locks: on network file systems they are as good as
// the server's.
package writer
