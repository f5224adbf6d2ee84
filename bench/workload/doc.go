// Package workload makes the work that this project and everything it is compared
// with are measured on, always the same from [Seed]. It is for benchmarks.
//
// A plan has components of a hundred tasks. One [Step] of a loop changes one task of
// it, and an iteration where the loop counts tokens. [Text] is a message of a
// conversation and [Tree] a project's files, which [Git] runs git on.
//
// # Concurrency
//
// Everything here may be called from any goroutine.
package workload
