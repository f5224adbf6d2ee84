// Package guard edits a file that people and other programs edit too.
//
// What is read is compared with the file again right before the rename, so that an
// edit by somebody else in between is seen and the change is made anew to what they
// wrote. An editor that saves in the moment of the rename itself loses what it saved.
//
// # Concurrency
//
// Functions may be called from any goroutine; of two edits of one file at once one
// begins again.
//
// # Crash safety
//
// A file is replaced by one atomic rename that is durable when Edit returns.
package guard
