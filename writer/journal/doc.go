// Package journal is an append-only log in segments: JSON Lines files that one
// [Writer] appends to and that anybody may read with [Read], without a lock.
//
// A segment is named journal-{epoch}-{n}.jsonl and begins with a header line. Every
// Writer that opens the journal increases the epoch, and every segment that it opens
// increases n. Each line ends with a CRC-32C of the bytes before it. A record has a
// number, one more than that of the record before, the epoch of its writer, and the
// offset in its segment that was known to be durable when the record was encoded.
//
// # Concurrency
//
// A Writer belongs to one goroutine of the process that holds the lease. A reader
// may see records that are not durable yet, and an unfinished last line.
//
// # Crash safety
//
// [Writer.Append] acknowledges after fdatasync. A failed write or sync gives the
// segment up: it is neither written to again nor truncated. The next segment's header
// names the last durable record; later records in earlier segments are void.
// [Open] copies every record that no later line proves durable into the first segment of
// the new epoch, and syncs that segment before it names it: after the failed fsync of
// another process, the page cache may hold bytes that are not on the disk. A hard link
// makes the name, so that one of two processes that open the journal at once fails.
//
// Invalid bytes are damage if a later record proves that they were durable, or if a
// later segment or a note continues from a record behind them. Zeros at the end of a
// segment are no damage: segments are preallocated. All other invalid bytes, and any
// valid lines behind them, are a torn tail, which is not applied and stays in its file.
// Damage in the last batch looks the same as a torn tail. The list is a file with a
// copy of each segment's first line. It shows which segment is missing, and replaces a
// damaged first line.
//
// The design, numbered records in segments and a list of the segments, follows
// hashicorp/raft-wal and etcd's wal.
package journal
