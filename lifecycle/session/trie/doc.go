// Package trie is a persistent hash trie: a map from strings whose versions share what they
// have in common. A change copies the path from the root to one entry. A comparison of two
// versions walks only the parts that differ.
//
// It is the hash array mapped trie of Bagwell (Ideal Hash Trees, 2001), 32-way, in
// the layout of Steindorfer and Vinju (Optimizing Hash-Array Mapped Tries, 2015),
// which keeps entries and branches of a node apart, with the transient edits of
// Clojure: an [Edit] owns the nodes that it made and changes them in place until it
// is sealed.
//
// The hash has a new seed in every process, so that nobody can prepare keys that collide.
// The order of [Map.All] therefore differs between processes.
//
// # Concurrency
//
// A [Map] is immutable and may be read from any goroutine. An [Edit] and a [Builder] belong
// to one goroutine.
package trie
