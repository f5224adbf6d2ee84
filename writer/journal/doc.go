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
// segment up: nothing is tried again on that file and nothing is cut off. The next
// segment's header says which record was the last durable one; what earlier
// segments hold beyond it is void. [Open] copies every record that no later line knows
// to be durable into the new epoch's first segment and syncs it before that gets its
// name, as what a process finds in the page cache after another one's failed fsync need
// not be on the disk. The name is made by a hard link, so that of two that open the
// journal at once one fails.
//
// Invalid bytes are damage when a later record knows them to have been durable, when
// a later segment goes on from beyond them, or when a note does. Zeros at the end of a
// segment are none: it is filled ahead. Everything else is a torn tail, valid lines
// behind a hole included: not applied, left in its file. Damage in the very last batch
// cannot be told from that. A file with the first line of each segment tells of one that
// is missing, and what stood in a first line that is damaged.
//
// The shape, segments with a sequence of records and a list beside them, follows
// hashicorp/raft-wal and etcd's wal.
package journal
