// Package process tracks commands that outlive the process that started them.
//
// A command inherits a [Lock], an flock on an open file: as long as the command, or anything
// that it started, has the descriptor, the lock is held, even after the process that took it
// has ended. What closed the descriptor is found by a variable, see [Lock.Environment]. [FindOrphan] reports to the next holder of the session which processes still
// run, and [ReadEnded] how a command ended.
//
// # Concurrency
//
// A Lock belongs to one goroutine; of its methods only [Lock.Strays] may be called from
// any goroutine. The functions may be called from any process at any time.
//
// # Crash safety
//
// The records are for the case that the holder is killed. They are not synced: a power cut ends
// the command as well, and a record names the boot that it is of.
//
// # Caveats
//
// Only Linux shows which process holds an flock. Elsewhere a process group counts as the recorded
// one while its number is in use. What closed the descriptor and removed the variable is not found. Where there is no flock on inherited descriptors (Windows)
// no orphan is seen.
package process
