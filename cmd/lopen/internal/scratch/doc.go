// Package scratch keeps the temporary folder of a run: the files by which lopen and the
// command talk to each other, such as the prompt.
//
// The command may write in the folder, or put another one in its place. So lopen holds the
// folder open and reaches its files through that alone; each file that it writes is a new
// one of a name that nobody knew; and what it reads is a regular file of a bounded size,
// opened without waiting. Nothing that lies in the folder leads out of it, and a FIFO in
// it holds nobody.
//
// # Life
//
// [New] makes a folder, 0700, in that of the system for temporary files. It holds a flock
// on the folder itself, which the command inherits, and which the kernel drops with the
// last of the two. A folder of that name which belongs to the same user and of which
// nobody has the lock is one that a kill left: New removes it. [Dir.Close] removes the
// run's own.
//
// # Concurrency
//
// A Dir belongs to one goroutine. Any number of processes may call New at a time.
//
// # Caveats
//
// Where folders cannot be locked (Windows, some network file systems), what a kill left
// stays until somebody removes it.
package scratch
