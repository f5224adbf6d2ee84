package session

// A Mark says which record of the journal a file shows.
type Mark struct {
	Epoch uint64 // of the writer that published the file
	Seq   uint64 // the record
	// Incarnation names the folder that the records are of: a session that was made
	// again from memory, after its folder was removed, has another one under its old ID.
	Incarnation string `json:"incarnation,omitzero"`
	// Iterations is the last record up to this one that changed the iterations:
	// a metrics.json of it or a later one has those of this State.
	Iterations uint64 `json:"iterationsSeq,omitzero"`
	// Messages and Transcript are how many messages and events of the transcript there
	// are, inherited ones included.
	Messages   uint64 `json:"messages,omitzero"`
	Transcript uint64 `json:"transcript,omitzero"`
	// Inherits are the records up to which a fork has the messages and events of the logs
	// that it continues, the oldest log first.
	Inherits []uint64 `json:"inherits,omitzero"`
	// OpenCalls are the IDs of the tool calls among the messages that have no
	// answer yet.
	OpenCalls []string `json:"openCalls,omitzero"`
	// Checkpoint is the one that the project's files were last known by: the newest
	// of the session. Undo is the one to which undo goes back, and
	// Rewinding a rewind that has begun and not ended.
	Checkpoint string     `json:"checkpoint,omitzero"`
	Undo       string     `json:"undo,omitzero"`
	Rewinding  *Rewinding `json:"rewinding,omitzero"`
}
