// Package trust remembers which commands a user approved for which project
// folder, so that a command that came with a project (in its config.json, a
// session, a bundle) does not run by surprise.
//
// The approvals lie in the user's state folder and never in the project: one file
// a project, named by the SHA-256 of the folder's real path, replaced atomically.
//
// # Concurrency
//
// Any number of processes may approve at once; each reads the file again and
// replaces it whole. Of two that approve in the very same moment one may be
// forgotten, which costs a question.
package trust
