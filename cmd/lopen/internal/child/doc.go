// Package child runs one command as a process group that can be ended whole,
// within time limits, and passes its output on as it comes.
//
// # The keeper
//
// A command with Keep is started by a small process of the same executable, its keeper,
// which outlives this process. An executable that has this package is a keeper before its main
// is called, when it is asked to. The command leads a group of its own in the keeper's session.
// When this process is killed, the keeper reads the command's output until the command ends;
// when it panics, the keeper kills the command's group. It notes in the command's lock how the
// command ended. On systems without process groups there is no keeper, and Keep changes nothing.
//
// # Concurrency
//
// Run may be called from any goroutine. The writers that it is given are called
// from one goroutine each.
//
// # Caveats
//
// What leaves the command's process group is ended with it only when Run ends the command,
// and only if it holds the command's lock, where the system says who does. What a command leaves
// that ended by itself is the caller's: see [process.Lock.EndLeft]. When such a process keeps the
// output open, Run stops reading a moment after the command is gone and says so. A command that kills its keeper in its first moment counts as one that could not
// be started, and is not ended: its lock shows that it works.
package child
