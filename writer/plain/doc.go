// Package plain writes texts that somebody else made up, names, paths, commands, an agent's
// words, for the place that they go to:
//
//	[Line], [Text]   a terminal, a log, an error
//	[Quote], [Shell] a command that a person may paste into a shell
//	[Markdown]       a line of Markdown
//	[Code], [Fence]  a span and a block of code of Markdown
//	[Told]           a program that shows it to somebody, as Markdown or as it is
//	[Values]         the strings of JSON for such a program
//
// What is not visible is shown as an escape sequence of the Go syntax; see [Visible]. But for that
// and for marks around it no text is changed: it may have a command in it.
package plain
