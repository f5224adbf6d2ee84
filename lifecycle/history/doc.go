// Package history stores snapshots: whole States of a session, by which an earlier one is
// found without replaying the log from its begin. A snapshot is a file, named by the epoch
// and the number of the record that it is of, and compressed as the suffix says. It holds three
// lines: a [Manifest], and the contents of state.json and metrics.json.
//
// # Concurrency
//
// Reading needs no lock, and a snapshot that is read is whole. Only the holder of the
// session's lease may call Write and Prune.
//
// # Crash safety
//
// Write returns nil when the file is durable under its name; a crash before leaves
// none or the one that was there. Read compares the checksum and refuses any other
// content.
package history
