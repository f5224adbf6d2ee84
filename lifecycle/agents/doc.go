// Package agents reads the histories that coding agents leave: the transcripts of Claude Code and
// of Codex, and the database of opencode. It turns them into messages and events of a session, and
// knows no store. It never writes where it reads.
//
// Open finds the histories of one agent. A [History] is one session of the agent, with the files
// of its subagents. [History.Head] says whose it is from its first lines. [History.Open] returns a
// [Reader] that goes on at a [Position]:
//
//	r, err := h.Open(from)
//	for {
//		items, err := r.Next(ctx) // of one record of the source
//		...
//		at := r.Position()        // after that record
//	}
//
// Reading is lenient. What is no message is an event, which is the record as it stands; unknown
// types of records are counted. Several records in one line are all read. What cannot be read is an event
// that says where it stands and why, and the [Report] has the place.
//
// # Positions
//
// A pass reads up to the ends that the files have when it begins, and takes whole lines only. Its
// ends are in its Position. So a pass that is interrupted and opened again yields the same items,
// whatever the agent has written meanwhile; the next pass reads the rest. A file that shrank or has
// other bytes than before is read from its beginning, with all files of its history, and so it is in
// each later pass that has something to read: what was cut off may come back. These items are marked
// [Item.Again].
//
// # Bounds
//
// A line has at most 8 MiB in memory. A longer one is skipped and reported. A [Report] names at
// most 100 places. A Reader of Claude Code remembers at most 131,072 requests.
//
// # Concurrency
//
// A Library may be used from any goroutine, a Reader from one.
package agents
