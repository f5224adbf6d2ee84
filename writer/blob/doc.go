// Package blob keeps contents under the SHA-256 of their bytes, durably. The
// same content is kept once, whoever stores it, and is never changed: a blob is
// there whole or damaged, and reading it tells which.
//
// A [Store] is one folder of blobs: ab/cdef... holds the content whose hash begins
// with abcdef. A [Hold] keeps a sweep away while somebody stores, a [Hash] names
// what was stored. What is still needed is not known here: the caller has manifests
// that name hashes, and tells [Store.Sweep] which those are. Every error but
// io.EOF is a [*writer.Error].
//
// # Concurrency
//
// All functions may be called from any goroutine and any process, as often at once
// as they like; only the reader that [Store.Open] returns is for one goroutine at a
// time. Who stores holds .lock shared, from the first look at a blob until the
// manifest that names it is durable: a blob that no manifest names yet looks like
// garbage. A sweep holds it alone, and steps aside when it cannot. Reading takes no
// lock: what a durable manifest names is not swept.
//
// # Crash safety
//
// [Hold.Put] writes a temporary file, syncs and closes it, renames it to its hash
// and syncs the folder, in this order; it acknowledges after the last step. A crash
// before that leaves no blob, the whole one or, where a file system kept the name
// and not the data, a husk, which the next Put of the same content replaces.
// A [Batch] takes the same steps for many contents at once, all of one kind before
// the first of the next, and acknowledges with [Batch.Commit].
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
// it; another process does not learn of it.
package blob
