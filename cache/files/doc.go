// Package files records the files of a folder, and reports which of them
// changed since. It knows nothing of sessions.
//
// A [Fingerprint] is what is remembered of one file, symlink or folder, a
// [Snapshot] holds those of a tree. [Take] makes one, [Compare] lists the changes between
// two, [Snapshot.Encode] and [Decode] convert one to bytes and back, [Save] and [Load] use a file.
// [Recall] also says whether a file has what [Remember] saved, which a [Memory] outside of the
// tree knows.
//
// Changed means that the content differs. Sizes, times and inodes only spare the
// reading: a file with the same stat as in the base snapshot is not read again, unless it was modified so shortly before the base that a second
// change could have left the same stat (git calls such files racily clean). Only a
// file whose size and times were all put back by somebody, with a clock that was put
// back as well, passes unseen.
//
// What .gitignore and .lopenignore leave out is left out, with git's rules; .git
// and .lopen always are, and so are repositories within the tree. What git tracks, see
// [TrackedPath], is left out by .lopenignore alone. [Options] names what
// was recorded before, and [Rules] that hold in addition to those of the tree: then a
// change of an ignore file neither removes nor adds a path. A path that cannot be recorded
// is never dropped silently: a [Skip] of the Snapshot names it, and Compare reports
// no change of it.
//
// # Concurrency
//
// A Snapshot is immutable and may be shared. Take walks and hashes with as many
// goroutines as GOMAXPROCS says, all of which have ended when it returns, and calls
// [Options].Hash from several of them at once. Files may change meanwhile: each
// fingerprint is of a content that the file had between the begin and the end of
// Take, but those of two files need not be of the same moment.
//
// # Crash safety
//
// Save replaces the file atomically. What it holds can be made again from the tree
// at the price of reading it, so damage found by Load is answered by a new record.
//
// # Caveats
//
// Symlinks are recorded and never followed; contents are read through the FS that
// the caller gives, so that nothing outside of the tree is read through a link that
// was swapped in. The clocks of the machine and of a network file system may differ:
// a file that such a server dates back by more than two seconds is not seen as racy.
package files
