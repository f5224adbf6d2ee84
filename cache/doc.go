// Package cache finds the parts of specifications that a task needs. It knows
// nothing of sessions.
//
// An [Outline] is a Markdown file divided into [Section] values by its headings,
// each from its heading to the next one of the same or a higher level, byte for
// byte as in the file. [ForTask] chooses among the sections of one or more files
// those that belong to a task, within [MaxGiven] bytes.
//
// What is a heading is plan/markdown's to decide. cache/sections keeps outlines in
// memory and on the disk, cache/assess results that count while files stay the same.
//
// # Concurrency
//
// An Outline is immutable and may be shared. ForTask calls docs from the calling
// goroutine, one call at a time.
//
// # Crash safety
//
// Nothing here is written anywhere: all of it follows from the files' bytes.
package cache
