// Package blob stores contents durably under the hash of their bytes. A stored content is
// never changed: a blob is whole or damaged, and a reader detects which.
//
// A [Store] is one folder of blobs, and a [Hash] names one: its SHA-256, by
// [Store.NewHash]. A content of up to [PackMax] bytes is in a pack, packs/*.pack, with the
// others of its [Batch]; pack.go has the format. A larger one has a file of its own:
// ab/cdef... holds the content whose hash begins with abcdef. A [Hold] excludes sweeps
// while blobs are stored. The package does not know which blobs are needed: the caller has
// manifests that name hashes, and passes these hashes to [Store.Sweep]. Every error but
// io.EOF is a [*writer.Error].
//
// The Store reads the index of a pack on demand, the newest pack first, checks it and caches
// it: 40 bytes per content. No file stays open between two calls. When an object is not
// found, or a sweep has removed a pack, the Store lists the packs again.
//
// # Concurrency
//
// Any number of goroutines and processes may call all functions at once; only the reader
// that [Store.Open] returns is for one goroutine at a time. A process that stores blobs
// holds .lock shared, from its first look at a blob until the manifest that names it is
// durable: a blob that no manifest names yet looks like garbage. A sweep holds the lock
// exclusively, and fails with class busy if it is taken. Reading takes no lock, because no
// sweep removes what a durable manifest names.
//
// # Crash safety
//
// A Batch writes temporary files, syncs and closes them, renames them and syncs the
// folders; each step ends for all files before the next begins. [Batch.Commit] returns nil
// only after the last step. A crash before that leaves no file, the whole file or, where a
// file system kept the name and not the data, a damaged one. Damage costs only the contents
// of that file: the next Batch that gets such a content stores it again, in its own file or
// in another pack, and a reader uses whichever copy is whole.
//
// A sweep that rewrites a pack makes the new pack durable before it removes the old one.
// The next sweep removes temporary files that a crash left. fsync and close are never
// retried, for the reason that package writer gives.
//
// The removal of blobs is not synced: a blob that a power cut brings back is garbage as
// before. The caller has to remove a manifest durably before a sweep that leaves it out;
// else a power cut could bring back a manifest whose blobs are gone.
//
// # Caveats
//
// Locks are those of package writer, with the same limits on network file systems. A
// Store does not trust a folder after a failed sync, but another process does not learn of
// the failure. A Store that has cached the index of a pack does not notice later damage to
// the index while the contents are whole.
package blob
