package session

import "time"

// Derive returns the State as the first one of another session, which comes from
// this one as l says. What was active is paused in it.
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
