// Package shelf stores derived values in files below cache/ in the store's folder: one
// entry for each key, replaced by rename, and verified by its checksum when it is read.
//
// No failure is an error for the caller: an entry that cannot be read or is damaged is
// removed and counts as missing; one that cannot be written is missing the next time. After a failed write a [Shelf] writes no more. When all entries together
// take more than the bound, the oldest go. CACHEDIR.TAG tells backup programs to
// leave the folder out.
//
// # Concurrency
//
// A Shelf may be used from any number of goroutines, its folder by any number of
// processes.
//
// # Crash safety
//
// Nothing is synced: what a power cut leaves of an entry is refused by its
// checksum.
package shelf
