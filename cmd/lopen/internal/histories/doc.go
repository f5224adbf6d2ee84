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
package histories
