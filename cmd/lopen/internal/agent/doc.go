// Package agent knows the coding agents that people run: how each is started, how the
// prompt goes in, what its events say, and how its own session is resumed.
//
// A [Profile] is that knowledge. [Choose] binds it to a command line and gives an [Agent],
// which is immutable. [Agent.Launch] says how one attempt starts, and [Agent.Read] returns
// the [Reader] that its output passes through: text and tool calls come out as lines for
// people, and a [Report] sums up the events afterwards.
//
// # What an event may decide
//
// Words are read in error events only, never in what a model wrote: a task may be to build
// a rate limiter. Unknown events, torn lines and healthy notices of limits change nothing.
// A profile never adds a flag that skips permissions or a sandbox.
//
// # Concurrency
//
// An Agent may be used from any goroutine. A Reader has one writer; its Report is asked for
// after the last Write.
package agent
