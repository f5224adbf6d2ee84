// Package fusedisk mounts a file system in user space (FUSE) that passes everything on
// to a folder, counts what is written and synced, and answers fsync late when it is told
// to. It is the same for every program that writes there, and asks nothing of it.
// It is for benchmarks.
//
// The disk is a process of its own: a page fault on a file that this process serves could
// stop the very threads that would answer it.
//
// # Concurrency
//
// A Disk is used by one goroutine; what is below its folder by any.
package fusedisk
