// Package conversation renders the messages of a session as Markdown, one after another. A tool's
// call, its answer, a thought and what nobody said are one line each, unless everything is asked
// for. A heading says who speaks from there on, in which subagent, and where the conversation
// branches or was compacted.
//
// The text of a message stands as it is. One that could swallow what stands below it, or pass for another
// message, is a quotation.
package conversation
