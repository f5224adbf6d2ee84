// Package journal is an append-only log in segments: JSON Lines files that one
// [Writer] appends to and anybody reads with [Read], without a lock.
//
// A segment is named journal-{epoch}-{n}.jsonl and begins with a header line. The
// epoch grows with every Writer that opens the journal, n with every segment of
// one. Each line ends with a CRC-32C of what stands before it. A record has the
// number after that of the record before, the epoch that it was written in, and the
// offset in its segment that was known to be durable when it was composed.
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
// segment are no damage: segments are preallocated. All other invalid bytes are a torn
// tail, with any valid lines behind them: it is not applied and stays in its file. Damage
// in the last batch looks the same as a torn tail. The list, a file with a copy of each
// segment's first line, shows which segment is missing and replaces a damaged first line.
//
// The design, numbered records in segments and a list of the segments, follows
// hashicorp/raft-wal and etcd's wal.
package journal
