package session

import (
	"time"
)

// A Rewinding is a rewind to a checkpoint, as in the records of its begin and its end. The
// checkpoints are named by their IDs.
type Rewinding struct {
	To     string `json:"to"`
	Before string `json:"before"`          // the checkpoint before the rewind, to which undo returns
	After  string `json:"after,omitempty"` // at the end: the checkpoint after the rewind
	Files  bool   `json:"files,omitempty"` // the files are rewound
	State  bool   `json:"state,omitempty"` // the State is rewound
	// Task is the failed task whose files are set back, or "" for a rewind that a person
	// asked for. Setting back does not change the checkpoint that undo returns to.
	Task string `json:"task,omitempty"`
	// Force, Contested and Paths are the options of the rewind. Paths need not be UTF-8.
	Force     bool     `json:"force,omitempty"`
	Contested bool     `json:"contested,omitempty"`
	Paths     [][]byte `json:"paths,omitempty"`
	// Back says that the rewind met an error and is taken back: whoever continues it makes the
	// files what they were before it.
	Back bool `json:"back,omitempty"`
}

// RewindTo returns the State with the tasks of an earlier State of the same session, and its
// phase, step, component, resources, check and data. It retains the iterations with their
// cost, and each task's log of attempts. The number of attempts that count against the
// threshold is that of the earlier State.
func (s *State) RewindTo(earlier *State, now time.Time) (*State, error) {
	e := earlier.Edit()
	h := e.Header()
	was := *h
	*h = *s.Edit().Header()
	h.Phase, h.Step, h.Component, h.ActiveTask = was.Phase, was.Step, was.Component, ""
	h.Resources, h.Check, h.Data = was.Resources, was.Check, was.Data
	h.UpdatedAt = utc(now)
	if was.Status == StatusComplete || h.Status == StatusComplete {
		h.Status, h.CompletedAt, h.ExitReason = StatusPaused, was.CompletedAt, ExitPaused
		if was.Status == StatusComplete {
			h.Status, h.ExitReason = StatusComplete, ExitComplete
		}
	}
	e.metrics = s.metrics
	Diff(s, earlier, func(_ string, is, then *Task) bool {
		if is != nil && then != nil {
			t := *then
			t.Log = is.Log
			if t.State == TaskInProgress {
				t.State = TaskPending
			}
			e.Put(t)
		}
		return true
	})
	return e.State()
}

// Derive returns the first State of another session with this ID and the lineage l, with the
// content of s, but for its transaction, its holder and what its commits remember. An active
// session becomes paused. The error is an [*InvalidError].
func (s *State) Derive(id ID, now time.Time, l Lineage) (*State, error) {
	own, err := s.As(id)
	if err != nil {
		return nil, err
	}
	e := own.Edit()
	h := e.Header()
	h.CreatedAt, h.UpdatedAt, h.Lineage, h.TransactionID = utc(now), utc(now), &l, ""
	h.Commits, h.Holder = nil, nil
	if h.Status == StatusActive {
		h.Status, h.ExitReason = StatusPaused, ExitPaused
	}
	return e.State()
}

// WithBoxes returns the State with the boxes of a newer one of the same module. Without them
// the boxes that lopen ticked since an earlier State would look like edits of a person.
func (s *State) WithBoxes(newer *State) (*State, error) {
	e := s.Edit()
	for t := range s.All() {
		if n, ok := newer.Task(t.ID); ok && n.Box != t.Box {
			t.Box = n.Box
			e.Put(t)
		}
	}
	return e.State()
}
