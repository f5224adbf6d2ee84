// Package repo starts git on the project's own repository, as the person would start it:
// with their configuration, hooks, filters and signing. It is used only where a person asked
// for that, because the hooks and the configuration of a repository are programs. Package
// git reads a repository and runs nothing of it; it is the one to use everywhere else.
//
// [Open] finds the repository, and [Repository.Git] starts git on it.
//
// A run lets an agent work that can write a hook or a filter. A Repository [Repository.From] a [Begin] is one
// on which git runs what it ran at that moment: where something is another one since, git gets a common
// directory of our own, with the configuration and the attributes of then and symlinks to the rest, and no hook.
//
// # What git gets
//
// Of the GIT_ variables of the environment, git gets those with which a person configures it,
// and none that says which repository, index or objects it uses: lopen may have been
// started by a hook, an alias or a rebase of another repository. There is no terminal: git has
// a session of its own, its stdin is the null device unless the caller has input, and what
// asks for a password, a passphrase or an editor fails or gets an empty answer at once.
//
// # Bounds
//
// Git and all that it starts in its process group are killed when the time limit is over,
// when the context ends, and, where there are process groups, when lopen is killed. A process
// that left the group is left alone. Of what git prints to stdout [MaxOutput] bytes are kept,
// and the end of everything for an error. What is printed is foreign text: the caller redacts
// it and passes it through package plain.
//
// # Concurrency
//
// A Repository is immutable. Its methods may be called from any goroutine.
//
// # Crash safety
//
// Git makes its own changes atomic. A git that was killed may leave a lock file, which the next
// one names.
package repo
