// Package find searches what a project's store and its documents say: messages, calls of tools and
// their output, attempts, plans, research and specifications. It gives the texts to cache/search,
// which knows nothing of sessions, and says where each hit is and how to open it.
//
// # Concurrency
//
// A Finder may be used from one goroutine at a time. Any number of processes may search.
//
// # Crash safety
//
// Nothing is written but the index, which can be derived again.
package find
