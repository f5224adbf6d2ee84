// Package carry takes sessions out of a store with all that they need, and brings them into
// another one. It knows neither how a bundle nor how a backup is stored.
//
// What is carried is a stream of entries, each with a name of names.go: the files of sessions,
// the lines of the chains of checkpoints, the objects that these need, documents, and what the
// project's files were.
package carry
