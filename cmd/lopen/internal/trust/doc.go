// Package trust remembers which commands a user approved for which project, so that a
// command that came with a project (in its config.json, a session, a bundle) does not
// run by surprise.
//
// The approvals lie in the user's state folder and never in the project: one file
// a project, mode 0600, named by the SHA-256 of what the project is known by and
// replaced atomically. They hold commands as they were typed, credentials included: what
// is kept in the project has none, and a resume finds the command here.
//
// # Concurrency
//
// Any number of processes may approve at once; each reads the file again and
// replaces it whole. Of two that approve in the very same moment one may be
// forgotten, which costs a question.
package trust
