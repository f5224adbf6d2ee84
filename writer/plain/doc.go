// Package plain writes texts that somebody else made up, names, paths, commands, an agent's
// words, for the place that they go to: [Line] for a line of a terminal, of a log, of an error,
// [Quote] and [Shell] for a command that a person may paste.
//
// What is not visible is shown as an escape sequence of the Go syntax; see [Visible].
package plain
