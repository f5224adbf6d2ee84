// Package search finds words in documents, with an index or without one. It knows nothing of sessions:
// a [Source] has documents, which are added and never changed, and says how far it reaches.
//
// [Scan] reads all sources. [Index.Search] brings the index up to date with the sources and looks
// the words up. Both give every text that may match to one matcher, so that they find the same, in
// the same order.
//
// # What is found
//
// [Parse] has the language of a query. A word is a run of letters and digits, in small letters and
// without diacritics. The newest matches, [Ranked] of them, are ranked by how often they have the words
// for their length. Newest are those of the newest source, and of a source the last ones.
//
// # The index
//
// It is an SQLite database with the texts, and in FTS5 tables the different words of each text. FTS5 keeps
// no positions and ranks nothing: how often a word occurs, phrases and snippets come from the text of what is
// found. That makes it four times as fast to build as one with positions, and a query costs as
// much as its rarest words.
//
// Entries are numbered as they are added; a run of numbers is of one source. When a source is
// gone or has changed, its texts are deleted, and the words that lead to them lead nowhere.
//
// # Concurrency
//
// An [Index] belongs to one goroutine. Any number of processes may search; while one adds to the index others
// see what it had before, and who has to add as well waits, or scans.
//
// # Crash safety
//
// The index can be derived again. What was not committed is read again; an index that is damaged, of another
// version, or that SQLite cannot use is dropped and made anew under another name. When it cannot be
// written, a scan finds the same. An index that finds no room on its disk is removed.
package search
