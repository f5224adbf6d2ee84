// Package child runs one command as a process group that can be ended whole,
// within time limits, and passes its output on as it comes.
//
// # Concurrency
//
// Run may be called from any goroutine. The writers that it is given are called
// from one goroutine each.
//
// # Caveats
//
// What leaves the command's process group (a daemon) is not ended with it. When
// such a process keeps the output open, Run stops reading a moment after the
// command is gone and says so.
package child
