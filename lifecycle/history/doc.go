// Package history keeps whole States beside a session's journal: a file for each,
// named by the epoch and the number of the record that it is of, compressed with zstd. It holds
// three lines: a [Manifest], and the contents of state.json and metrics.json.
//
// # Crash safety
//
// Write returns nil when the file is durable under its name; a crash before leaves
// none or the one that was there. Read compares the checksum and refuses any other
// content.
package history
