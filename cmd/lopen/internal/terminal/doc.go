// Package terminal writes to terminals, pipes and files what the command did not make up
// itself: names, paths, commands, messages of errors, an agent's output.
//
// A [Stream] stands around stdout and one around stderr, once, where they come from, so
// that no place that prints has to think of it. What it does to a text depends on what
// the text is:
//
//	               on a terminal           into a pipe or a file
//	Write          as text                 as text
//	JSON           \u in strings           \u in strings
//	Content        as text                 byte for byte
//	Output         as text, with colours   byte for byte
//	Colored        as text, with colours   as text, with colours
//	Control        as it is                as it is
//
// As text means that a rune which a terminal does not simply draw is shown as an escape
// sequence of the Go syntax: \x1b, \r, \u202e. Those are the control characters U+0000 to
// U+001F and U+007F to U+009F but for the line feed and the tab, the bidirectional marks
// and all else of Unicode that is invisible, and each byte that is not UTF-8. So nothing
// moves the cursor, overwrites a line, sets the title or the clipboard, switches to
// another screen, or reorders what is read.
//
// Colours are the SGR sequences (ESC [ parameters m) with parameters that are known; not
// among them is the one that hides text. They are not passed on but understood: each
// sequence that is written was composed here. They end with the line, are set again in
// the next one, and never reach what another writes on the same terminal. A carriage
// return in such output ends the line, as it would otherwise be overwritten.
//
// # Concurrency
//
// All methods may be called by several goroutines. Each Write is one piece. Two streams
// of [Streams] that lead to terminals share a lock and what colour is set.
package terminal
