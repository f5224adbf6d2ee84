// Package writer makes bytes durable: it replaces and creates files
// atomically, classifies storage errors, and provides the locks that exclude
// other writers. It knows nothing of sessions and logs nothing.
//
// Everything goes through an [FS]: a folder whose names never lead outside it.
//
// # Concurrency
//
// Functions may be called from any goroutine. Only the change of one file is
// atomic: the caller of [ReplaceFile] holds a [Lock] or is otherwise the only
// writer of the name.
//
// # Crash safety
//
// ReplaceFile writes a temporary file in the same folder, syncs it, renames it and
// syncs the folder, in this order. It returns nil only after the last step. A crash
// before the rename leaves the old file and a temporary one, which [RemoveTemps]
// removes. A crash after the rename leaves the old or the new file, whole. fsync and
// close are never retried: after a failed fsync Linux marks the pages clean, so that
// the next one reports success for data that never reached the disk (found by the
// PostgreSQL developers in 2018).
//
// google/renameio and natefinch/atomic were rejected because they do not sync the
// folder after the rename.
//
// # Caveats
//
// Windows cannot sync a folder, so a new name is only as durable there as the file
// system makes it. Locks are flock locks: on a network file system they are as good
// as the server's.
package writer
