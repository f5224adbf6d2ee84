// Package git reads what a git repository says of itself (commit, branch, whether
// something is changed, which repository it is, what it ignores) and executes nothing
// that the repository names.
//
// A repository is foreign text: its configuration can name programs (core.fsmonitor,
// filters, hooks, core.sshCommand), another work tree, or files to include. What is
// simple is read here, from files: .git, HEAD, refs, packed-refs. For the rest git
// is started on a directory of our own, in the folder of the user's own state, whose HEAD is the commit
// that was read and whose configuration holds a few keys of the repository's that say
// how its files are to be compared. Git is pointed to the real index, objects and work tree,
// and never looks for a repository itself. So a key that executes something need not be
// known to be harmless: the repository's configuration is not read but for a list of keys.
// The user's own configuration counts as always, core.fsmonitor and hooks excepted.
//
// What git starts for the user's own filters (Git LFS) runs as ever. Objects may come from
// elsewhere (objects/info/alternates): only one bit of what is read leaves this
// package. Submodules are not looked into. References kept as reftable are not read.
//
// # A .git that leads elsewhere
//
// A .git that is a symlink is not followed. One that is a file is believed only where
// the folder that it names points back, as a linked work tree's and a submodule's do.
// Otherwise an archive could pass for any repository on this machine by naming it.
// A git directory has to belong to this user, or to the owner of the folder that was
// asked about.
//
// # Ignore files
//
// What an ignore file says is copied into checkpoints. So core.excludesFile of the
// repository's configuration counts only within the work tree and the git directory; no
// repository can have another file of the user's copied by naming it.
//
// # Bounds
//
// Files are opened without waiting and have to be regular and of bounded size. Git gets
// ten seconds, five for a look, and no single allocation above 128 MiB. It is killed with
// this process on Linux.
//
// # Concurrency
//
// All functions may be called from any goroutine.
package git
