package session

import "time"

// Derive returns the State as the first one of another session, whose lineage is l. A
// session that was active is paused in it. The error is an [*InvalidError].
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

// WithBoxes returns the State with the boxes of a newer one of the same module. Without
// them an earlier State would take the boxes that lopen has ticked since for edits of
// a person.
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
