// Package owner says whose a file is: on a shared machine others can put a project, or a
// repository, where lopen looks for one.
//
// As git does it, files belong to this user when their owner is the effective user; for
// root, started with sudo, also when it is the user who called sudo. Where files have no
// numeric owner (Windows) nothing is foreign.
//
// # Concurrency
//
// All functions may be called from any goroutine.
package owner
