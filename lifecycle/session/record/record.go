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
	Triggers   [session.NumTriggers]uint64 // number of coalesced saves, by trigger
	// Commit is the duration of the commit before this one; that of this commit is not known
	// when the record is written.
	Commit time.Duration
	Ops    []Op
	// Messages and Transcript are the numbers of messages and of events of the transcript up
	// to and with this record, including inherited ones.
	Messages   uint64 `json:"messages,omitzero"`
	Transcript uint64 `json:"transcript,omitzero"`
	// Message and TranscriptEvent are an appended message or event, as a JSON object. A
	// record with one of them has no change of the State.
	Message, TranscriptEvent strictjson.Value
	// Inherits is set in the first record of a fork, see [session.Mark]. OpenCalls are the
	// open tool calls of the inherited messages.
	Inherits    []uint64           `json:"inherits,omitzero"`
	OpenCalls   []string           `json:"openCalls,omitzero"`
	Attempts    []Attempt          `json:"attempts,omitzero"`
	Incarnation string             `json:"incarnation,omitzero"` // set in the first record of a session
	Checkpoint  string             `json:"checkpoint,omitzero"`  // ID of a new checkpoint
	Rewind      *session.Rewinding `json:"rewind,omitzero"`      // set with EventRewindBegin and EventRewindEnd
	// Snapshot is set instead of operations if the change is too large for a record. Then
	// the whole State is in the snapshot with this record's number.
	Snapshot *SnapshotRef
}

// Saves returns the number of calls of Save that were coalesced into the record.
func (r *Record) Saves() (n uint64) {
	for _, c := range r.Triggers {
		n += c
	}
	return n
}

// A SnapshotRef names the snapshot of a record.
type SnapshotRef struct {
	SHA256 string            `json:"sha256"`           // of the file's content before compression, in hex
	Counts map[string]uint64 `json:"counts,omitempty"` // number of operations by name that it replaces
}

// An Op is one operation of a record, in the form that a reader of the log needs.
type Op struct {
	Name     string // one of the Op constants
	Task     string // ID, for operations on a task
	From, To string // for operations that change one value
	Count    int    // number of iterations, added or removed children, messages, events or files
	Paths    []string
}

// Event is why a record was written other than for a save; "" for a save.
type Event string

// The events.
const (
	EventCreated   Event = "created"
	EventResumed   Event = "resumed" // the first record of a later holder
	EventForked    Event = "forked"
	EventRecovered Event = "recovered"
	EventRecreated Event = "made-again" // made again from memory after its folder was removed
	// A rewind changes the project's files between these two. The record of the second one
	// has the State that belongs to the files.
	EventRewindBegin Event = "rewind-begin"
	EventRewindEnd   Event = "rewind-end"
)

// Known reports whether this version knows the event.
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
	OpChildrenChanged   = "children-changed" // of Task, or the roots if Task is ""
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

// The names of operations that do not change the State. They say what else a record made
// durable; other members of the record have the details.
const (
	OpMessagesAppended = "messages-appended" // Count messages
	OpEventsAppended   = "events-appended"   // Count events of the transcript
	OpAttemptRecorded  = "attempt-recorded"  // an attempt at Task; To is what followed
	OpCheckpointMade   = "checkpoint-made"   // To is its ID; Task is the task before or after which it was made
	OpNotSetBack       = "not-set-back"      // the files of the failed Task were not set back; To is why
	OpFilesKept        = "files-kept"        // a rewind left Count files as they are, Paths are the first ones; To is why
	OpFilesChanged     = "files-changed"     // Count project files; To is the kind of change, Paths are the first ones
)

// ChangesState reports whether an operation of this name changes the State.
func ChangesState(name string) bool {
	switch name {
	case OpMessagesAppended, OpEventsAppended, OpAttemptRecorded, OpCheckpointMade, OpNotSetBack, OpFilesKept, OpFilesChanged:
		return false
	}
	return true
}
