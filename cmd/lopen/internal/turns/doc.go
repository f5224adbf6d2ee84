// Package turns keeps the session of an agent that a person started: what the hooks of the agent
// tell of it. A prompt and all that the agent does about it is a turn, which is a task of the
// session: with a checkpoint before and one after, and an attempt that names the files that the
// turn changed.
//
// A turn is in progress from its prompt until the agent says that it ended or failed. Between two
// hooks no process of ours lives; the session then names the agent's process as its holder. A turn
// that the person stopped is not told of by any hook: the next prompt ends it, and so does the end
// of the agent's session.
//
// # Concurrency
//
// The functions are for the one process that holds the session.
package turns
