// Package sections caches outlines of Markdown files, in memory and on the disk, so that
// a file that has not changed is neither read nor parsed again.
//
// [Cache.Outline] and [Cache.Section] answer from memory after one stat of the
// file. An outline is of the whole file, so that one stat and one parse serve all
// its sections. What is not in memory is read, hashed, and looked up on the disk
// by path and content; what is not there either is parsed, once for all callers
// that ask at the same time, and written back.
//
// # When an outline is believed
//
// In memory by the file's identity: size, time of last modification in
// nanoseconds, and where the system tells them inode and time of last change. A
// file that was modified less than two seconds before it was read is racy, as git
// calls it: another change could leave the same times. Such a file is read and
// hashed each time until it has been left alone for that long. On the disk by the
// SHA-256 of the file's content: whoever has no outline in memory has to read the
// file anyway.
//
// # The disk
//
// Entries lie in cache/sections below the store's folder, one a file, which is
// marked by a CACHEDIR.TAG. A damaged entry, one of another file that has the same
// name by chance, one of another content or of other parsing rules is no error: it
// is derived again and replaced. A disk that cannot be written costs nothing but
// the entries. When the entries take more than the bound, the oldest go.
//
// # Concurrency
//
// A Cache may be used from any number of goroutines, and any number of
// processes may share a folder: entries are replaced by rename and believed by
// checksum only.
//
// # Crash safety
//
// Nothing is synced: what a power cut leaves of an entry is refused by its
// checksum.
package sections
