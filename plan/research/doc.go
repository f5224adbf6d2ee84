// Package research keeps the research documents of a module: what was found out
// before or while its plan was made.
//
// A [Document] is a file RESEARCH-{topic}.md in the folder of the module's
// specification. Those that [Create] writes have front matter, which names the
// sections of the specification that they are about with the SHA-256 that these had,
// so that a reader can say which have changed since. Documents that were written by
// hand need none of it: [List] finds them by their name.
//
// The index, RESEARCH.md, has one list item a document between two comments, which
// Create brings up to date, with the documents written by hand:
//
//	<!-- lopen:research -->
//	- [Token formats](RESEARCH-token-formats.md)
//	<!-- /lopen:research -->
//
// Everything outside the two stays byte for byte, and so does every line between
// them that is not exactly such an item: a remark behind an item makes it a
// person's own.
//
// # Concurrency
//
// All functions may be called from any goroutine and process. Two that add
// different documents at a time both end up in the index, as each lists what is
// there when it writes; an index edited in the meantime is read again.
//
// # Crash safety
//
// A document is there completely or not at all, and is never overwritten. A crash
// between it and the index leaves a document that the index lacks until the next
// one is made. The index is replaced by one atomic rename.
package research
