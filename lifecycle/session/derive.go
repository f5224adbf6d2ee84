package session

import "time"

// Derive returns the first State of another session with this ID and the lineage l, with the
// content of s. An active session becomes paused. The error is an [*InvalidError].
func (s *State) Derive(id ID, now time.Time, l Lineage) (*State, error) {
	own, err := s.As(id)
	if err != nil {
		return nil, err
	}
	e := own.Edit()
	h := e.Header()
	h.CreatedAt, h.UpdatedAt, h.Lineage = utc(now), utc(now), &l
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
