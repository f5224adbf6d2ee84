// Package files remembers what the files of a folder are, and says which of them
// changed since. It knows nothing of sessions.
//
// A [Fingerprint] is what is remembered of one file, symlink or folder, a
// [Snapshot] holds those of a tree. [Take] makes one, [Compare] tells two apart,
// [Snapshot.Encode] and [Decode] carry one through a file, as [Save] and [Load] do.
//
// Changed means that the content differs. Sizes, times and inodes only spare the
// reading: a file whose stat is that of the base snapshot is taken over without a
// look inside, unless it was modified so shortly before the base that a second
// change could have left the same stat (git calls such files racily clean). Only a
// file whose size and times were all put back by somebody, with a clock that was put
// back as well, passes unseen.
//
// What .gitignore and .lopenignore leave out is left out, with git's rules; .git
// and .lopen always are, and so are repositories within the tree. Who knows what was
// taken before, and which [Rules] hold beside those of the tree, says so in [Options]:
// then a change of the ignore files takes nothing out and uncovers nothing. What cannot
// be taken is never dropped silently: a [Skip] of the Snapshot names it, and Compare
// says nothing of such paths.
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
