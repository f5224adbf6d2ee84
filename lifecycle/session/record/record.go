package record

import (
	"slices"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Record is one entry of a session's journal: the net change from the State of
// the record before it, and why it was written.
type Record struct {
	Seq, Epoch uint64
	At         time.Time                   `json:"at,omitzero"`
	Event      Event                       `json:"event,omitzero"`
	Triggers   [session.NumTriggers]uint64 // of the saves that were coalesced into it
	// Commit is how long the commit before this one took: its own is not known before
	// it is written.
	Commit time.Duration
	Ops    []Op
	// Messages and Transcript are how many messages and events of the transcript there
	// are with this record, inherited ones included.
	Messages   uint64 `json:"messages,omitzero"`
	Transcript uint64 `json:"transcript,omitzero"`
	// Message and TranscriptEvent are what was appended, a JSON object: a record that has
	// one of them is that alone.
	Message, TranscriptEvent strictjson.Value
	// Inherits is with the first record of a fork, see [session.Mark]; OpenCalls are those that
	// the inherited messages leave open.
	Inherits    []uint64           `json:"inherits,omitzero"`
	OpenCalls   []string           `json:"openCalls,omitzero"`
	Attempts    []Attempt          `json:"attempts,omitzero"`
	Incarnation string             `json:"incarnation,omitzero"` // of the session, with its first record
	Checkpoint  string             `json:"checkpoint,omitzero"`  // that was made
	Rewind      *session.Rewinding `json:"rewind,omitzero"`      // with EventRewindBegin and EventRewindEnd
	// Snapshot is set instead of operations where the change is too large for a
	// record: the whole State is in the snapshot of this record's number.
	Snapshot *SnapshotRef
}

// Saves is how many calls of Save were coalesced into the record.
func (r *Record) Saves() (n uint64) {
	for _, c := range r.Triggers {
		n += c
	}
	return n
}

// A SnapshotRef names the snapshot that a record stands for.
type SnapshotRef struct {
	SHA256 string            // of the file's content before compression, in hex
	Counts map[string]uint64 // how many operations of each name it stands for
}

// An Op is one operation of a record, as far as a reader of the log wants it.
type Op struct {
	Name     string // one of the Op constants
	Task     string // ID, for operations on a task
	From, To string // for those that change one value
	Count    int    // iterations, children taken in or out, messages, events or files
	Paths    []string
}

// Event is why a record was written that no save asked for; "" for a save.
type Event string

// The events.
const (
	EventCreated   Event = "created"
	EventResumed   Event = "resumed" // the first record of a later holder
	EventForked    Event = "forked"
	EventRecovered Event = "recovered"
	EventRecreated Event = "made-again" // from memory, after its folder was removed
	// The files of the project are changed between these two, and the second one has
	// the State that belongs to them.
	EventRewindBegin Event = "rewind-begin"
	EventRewindEnd   Event = "rewind-end"
)

// Known says whether this version has the event.
func (e Event) Known() bool { return slices.Contains(events, e) }

var events = []Event{"", EventCreated, EventResumed, EventForked, EventRecovered, EventRecreated, EventRewindBegin, EventRewindEnd}

// The names of operations.
const (
	OpTaskCreated       = "task-created"
	OpTaskStatusChanged = "task-status-changed"
	OpTaskModified      = "task-modified"
	OpTaskMoved         = "task-moved"
	OpTaskRemoved       = "task-removed"
	OpDependencyAdded   = "dependency-added"
	OpDependencyRemoved = "dependency-removed"
	OpChildrenChanged   = "children-changed" // of a task, or of the session where no task is named
	OpIterationsAdded   = "iterations-added"
	OpStatusChanged     = "status-changed"
	OpPhaseChanged      = "phase-changed"
	OpStepChanged       = "step-changed"
	OpComponentChanged  = "component-changed"
	OpActiveTaskChanged = "active-task-changed"
	OpExitReasonChanged = "exit-reason-changed"
	OpChecked           = "checked"
	OpResourcesChanged  = "resources-changed"
	OpModified          = "modified" // any other members of the session
)

// The names of operations that change nothing of the State: they say what else a
// record made durable. Other members of the record name it.
const (
	OpMessagesAppended = "messages-appended" // Count of them
	OpEventsAppended   = "events-appended"   // Count of them, to the transcript
	OpAttemptRecorded  = "attempt-recorded"  // of Task; To is what followed
	OpCheckpointMade   = "checkpoint-made"   // To is its ID, Task the one that it stands before or after
	OpNotSetBack       = "not-set-back"      // the files of Task, which failed, stay as it left them; To is why
	OpFilesChanged     = "files-changed"     // Count of the project's files; To is the kind of change, Paths are the first ones
)

// ChangesState says whether an operation of this name changes the State.
func ChangesState(name string) bool {
	switch name {
	case OpMessagesAppended, OpEventsAppended, OpAttemptRecorded, OpCheckpointMade, OpNotSetBack, OpFilesChanged:
		return false
	}
	return true
}
