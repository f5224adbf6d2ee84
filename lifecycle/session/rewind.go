package session

import "time"

// A Rewinding is a rewind to a checkpoint, as the records at its begin and its end
// have it. The checkpoints are named by their IDs.
type Rewinding struct {
	To     string `json:"to"`
	Before string `json:"before"`          // what undo goes back to
	After  string `json:"after,omitempty"` // of the end: what the files are known by from then on
	Files  bool   `json:"files,omitempty"`
	State  bool   `json:"state,omitempty"`
	// Task is the failed task whose files are set back, "" of a rewind that a person asked
	// for. Undo goes where it went before.
	Task string `json:"task,omitempty"`
	// Force, Contested and Paths are what the rewind was asked for with. Paths need not be
	// text.
	Force     bool     `json:"force,omitempty"`
	Contested bool     `json:"contested,omitempty"`
	Paths     [][]byte `json:"paths,omitempty"`
}

// RewindTo returns the State with the tasks of an earlier one of the same session,
// and with what belongs to them: phase, step, component, resources, check, data.
// What happened meanwhile stays: the iterations, what they cost, and each task's log
// of attempts; how many of them count against the threshold is as it was then.
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
