// Package assess caches what was found out about files, such as the result of a test
// run, a linter or a review, until one of those files changes.
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
// written anew with the same content is the same. If the tracker cannot compare a file,
// for example because it may not be read, nothing is stored and the log has a line.
//
// # Concurrency
//
// A Cache may be used from any number of goroutines: a caller that asks for a result
// that is being computed waits for it and gets it, unless the scope changed since that
// began. Two processes may both compute; the later result stays.
//
// # Crash safety
//
// Entries lie in cache/assessments below the store's folder; nothing is synced.
// A damaged entry counts as missing.
package assess
