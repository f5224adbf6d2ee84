// Package markdown says where the headings, list items and checkboxes of a
// Markdown file are, as byte offsets into the file as it is on disk. It is the
// only package that knows the parser (goldmark), and it is pure: bytes in, values
// out.
//
// A [Document] is made by [Parse] and holds [Heading] and [Item] values. What is
// a heading, a list or a checkbox is decided by the parser's block structure, as
// CommonMark and GitHub's extensions define it, never by a pattern on lines:
// a checkbox in a code block, in an HTML comment or in front matter is none.
//
// # Positions
//
// Every offset counts bytes of the input, byte order mark, carriage returns and
// front matter included. The parser is given a copy of the same length in which
// CR LF is space LF and a lone CR is LF (goldmark does not take a CR for a line
// ending), so offsets need no translation beyond the length of what is skipped at
// the front.
//
// [Item.Box] is the byte between the brackets. Changing that byte between ' ' and
// 'x' changes the item's state and nothing else: no position, no other item. That
// is what lets an edit of a plan be one byte; FuzzToggle holds it against
// arbitrary input.
//
// # Memory
//
// goldmark's tree takes 25 to 40 times its text, and 500 times a text made for that, so
// a large file is parsed in pieces of 64 KiB or more that begin with a block or list item
// at the top level, and one tree is in memory at a time. A file in pieces that has
// link definitions is parsed once before, for those alone.
//
// A plan of 64 MiB, the most that is read (970,000 tasks), takes 465 MB in pieces and 1.3 GB
// as a whole; one of 8 MiB (123,000 tasks) 90 MB and 177 MB, and half the time. Without pieces
// [MaxUnits], which bounds the memory of a text made for it, would be a bound of the file:
// a plan would have to end at 33,000 tasks.
//
// # Bounds
//
// Time and memory are linear in the input. What lies beyond a bound is text: inline markup
// and link definitions in a text of more than 8 KiB, after 256 marks of one text or 65,536
// of a piece; definitions in a paragraph of more than 1,000 lines, and after 10,000 of
// a file; links after 64 of an item or heading, or of more than 1 KiB. A table's cells are
// not parsed one by one. A file with a block or item of more than [MaxUnits] lines and
// blocks, or more than [MaxHeadings] headings, is read up to there; see [Document.Over].
//
// # Caveats
//
// GitHub wants a space behind the closing bracket of a checkbox; goldmark, and so
// this package, does not (`- [ ]* optional`, as Kiro writes it, is an item). What
// would be a link or a link definition, `[x](`, `[x][` and `[x]:`, is not taken for
// a checkbox, as its meaning would change with the byte.
//
// Blocks nest at most 100 levels deep in lists and quotes; what is deeper is
// text. That bounds recursion whatever the input.
//
// # Concurrency
//
// A Document is immutable and may be shared. Parse may be called from any number
// of goroutines.
package markdown
