package session

// A Mark is a place in the journal: the record that a State or a file shows, and what the
// session has up to that record.
type Mark struct {
	Epoch uint64 // of the writer of the record
	Seq   uint64 // number of the record
	// Incarnation identifies the folder of the records. When a session is made again from
	// memory, after its folder was removed, it gets a new incarnation under its old ID.
	Incarnation string `json:"incarnation,omitzero"`
	// Iterations is the last record up to this one that changed the iterations. A
	// metrics.json of that record or a later one up to Seq has the iterations of this State.
	Iterations uint64 `json:"iterationsSeq,omitzero"`
	// Messages and Transcript are the numbers of messages and of events of the transcript,
	// including inherited ones.
	Messages   uint64 `json:"messages,omitzero"`
	Transcript uint64 `json:"transcript,omitzero"`
	// Inherits are the records up to which a fork has the messages and events of the logs
	// that it continues, the oldest log first.
	Inherits []uint64 `json:"inherits,omitzero"`
	// OpenCalls are the IDs of the tool calls among the messages that have no
	// answer yet.
	OpenCalls []string `json:"openCalls,omitzero"`
	// Checkpoint is the session's newest checkpoint. Undo is the checkpoint that undo
	// returns to. Rewinding is a rewind that has begun and not ended.
	Checkpoint string     `json:"checkpoint,omitzero"`
	Undo       string     `json:"undo,omitzero"`
	Rewinding  *Rewinding `json:"rewinding,omitzero"`
}
