// Package record holds the values of a session's log: a [Record] for each entry, with its
// operations, its event and the attempts at tasks. A record says what changed from the
// State before it and why; package wire reads, writes and replays it.
//
// # Concurrency
//
// The values are plain: who changes one must be the only one who has it.
package record
