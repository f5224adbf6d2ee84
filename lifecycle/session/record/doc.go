// Package record has the values of a session's log: a [Record] for each line, with its
// operations, its event and the attempts at tasks. A record has the change from the State of
// the record before it and the reason. Package wire encodes, decodes and replays records.
//
// # Concurrency
//
// The values are plain structs: a value that one goroutine changes must not be used by
// another.
package record
