// Package blob stores contents durably under the hash of their bytes. Each content is
// stored once and never changed: a blob is whole or damaged, and a reader detects which.
//
// A [Store] is one folder of blobs, and a [Hash] names one: its SHA-256, by
// [Store.NewHash]. A content of up to [PackMax] bytes is in a pack, packs/*.pack, with the
// others of its [Batch]; pack.go has the format. A larger one has a file of its own:
// ab/cdef... holds the content whose hash begins with abcdef. A [Hold] keeps a sweep away
// while blobs are stored. The package does not know which blobs are needed: the caller has
// manifests that name hashes, and passes these to [Store.Sweep]. Every error but
// io.EOF is a [*writer.Error].
//
// The Store reads the index of a pack on demand, the newest pack first, checks it and caches
// it: 40 bytes a content. No file stays open between two calls. When an object is not found,
// or a sweep has removed a pack, the Store looks for new packs.
//
// # Concurrency
//
// All functions may be called from any goroutine and any process, as often at once
// as they like; only the reader that [Store.Open] returns is for one goroutine at a
// time. A process that stores blobs holds .lock shared, from the first look at a blob until
// the manifest that names it is durable: a blob that no manifest names yet looks like
// garbage. A sweep holds the lock exclusively, and fails as busy if it is taken. Reading
// takes no lock, because no sweep removes what a durable manifest names.
//
// # Crash safety
//
// A Batch writes temporary files, syncs and closes them, renames them to their names and
// syncs the folders: all of one kind before the first of the next. [Batch.Commit]
// acknowledges after the last step. A crash before that leaves no file, the whole one or,
// where a file system kept the name and not the data, a husk. A damaged file costs what it
// holds: the next Batch that is given such a content stores it anew, in the place of a file
// of its own, or in another pack, and a reader takes whichever copy is whole.
//
// A sweep that writes a pack anew makes the new one durable before it removes the old one.
// Temporary files that a crash left are removed by the next sweep. fsync and close
// are never tried again, for the reason that package writer gives.
//
// The names of removed blobs are not synced: one that a power cut brings back is
// garbage as it was before. The caller, in turn, removes a manifest durably before
// a sweep that does not count it, or a power cut brings back a manifest whose blobs
// are gone.
//
// # Caveats
//
// Locks are those of package writer, and so are their limits on network file
// systems. A folder whose sync failed is not trusted any more by the Store that saw
// it; another process does not learn of it. Nor does a Store that has read the index of a
// pack notice that it is damaged since, while the contents are whole.
package blob
