// Package bundle is the file that sessions are carried in: a tar, compressed with zstd, and
// if asked for encrypted with age. It knows no sessions and no store. docs/FORMATS.md has the
// bytes.
//
// A [Writer] takes files and objects one after another; a [Reader] gives the same back, in
// the same order. Both work in one pass over a stream and in constant memory, but for some
// bytes for each name.
//
// # Trust
//
// A Reader takes nothing on trust. It believes what a Writer can have written, byte by byte,
// and refuses everything else with an error of class corrupt; [Reader.Next] returns io.EOF
// only when the last byte of the file has agreed. What it gave before that may be part of a
// bundle that is refused: who reads keeps it invisible until then. What the names and contents
// mean is for the reader's caller to check.
//
// # Concurrency
//
// A Writer and a Reader belong to one goroutine.
package bundle
