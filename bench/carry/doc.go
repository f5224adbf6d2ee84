// Carry measures an export and an import of one large session beside tar and zstd on the same
// files: time, size and peak memory. It makes a project with a session of so many messages and
// checkpoints of so many bytes of contents, and prints a table.
//
//	go run ./bench/carry -messages 100000 -mib 1024
package main
