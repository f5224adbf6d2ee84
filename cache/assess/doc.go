// Package assess remembers what was found out about files for as long as those
// files stay as they are: the result of a test run, of a linter, of a review.
//
// An assessment has a name, a scope and a time to live. [Cache.GetOrCompute]
// returns the remembered [Result] if nothing in the scope was added, removed or
// changed and it is not older than the time to live, and computes it otherwise.
// A result is stored only if the computation succeeded and the scope was the same
// before and after it.
//
// # Scope
//
// A [Look] looks at the scope: it returns a snapshot and says whether the snapshot
// before it was the same. [Files] is the Look at the tracked files that patterns
// name: cache/files says what is tracked and what changed, so a hit costs a stat a
// file, what is ignored counts only where a pattern names it, and a file that was
// written anew with the same content is the same. Where the tracker cannot tell, as
// of a file that may not be read, nothing is stored, and a line of the log says so.
//
// # Concurrency
//
// A Cache may be used from any number of goroutines: who asks for what is being
// computed waits for it and gets the result, unless the scope changed since that
// began. Of two processes both may compute, and the later result stays.
//
// # Crash safety
//
// Entries lie in cache/assessments below the store's folder; nothing is synced.
// One that is not whole is none.
package assess
