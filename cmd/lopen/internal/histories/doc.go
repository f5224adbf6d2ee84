// Package histories takes the histories of agents over into sessions of a store. The session of a
// history is that of the module [agents.Module] whose header names the agent's session, whoever
// made it: an earlier import, or the hooks of the agent.
//
// # Crash safety
//
// How far a history was taken, and how many messages and events the session had then, is a part of
// the session's State. It is changed after the messages and before those of the next part, so the
// log has at least the messages that the State tells of. What it has beyond them was appended by
// an import that did not end; the next one skips what it finds there. So nothing is taken twice,
// and nothing is missing.
//
// Sessions of small histories are made in batches ([lifecycle.Batch]). None of a batch is in the
// store before all that it has is durable, and the next import takes those of a batch that was cut
// off from their beginning.
//
// # Concurrency
//
// [All] imports several batches at once, and one large history beside them at most. What it yields
// is in order. Each batch, and each [Import], belongs to one goroutine.
package histories
