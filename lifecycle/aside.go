package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

const (
	corruptedDir = "corrupted"
	asideTime    = "20060102T150405Z" // in the names there
)

// movedAside is the content of corrupted/{id}-{time}.json.
type movedAside struct {
	SchemaVersion int       `json:"schemaVersion"`
	Session       string    `json:"session"`
	At            time.Time `json:"at"`
	Reason        string    `json:"reason"`
}

// setAside moves a damaged session to corrupted/, whole, with the reason beside
// it, and returns why, with where it is now, as a [*DamagedError]. What only was
// edited outside, was written by a newer version or could not be read stays. The
// caller holds the session's lease, which is looked at once more before the move. When
// moving fails the session stays as it is and is still not opened.
func (s *Store) setAside(id session.ID, lease *writer.Lock, cause error) error {
	place := sessionsDir + "/" + id.String()
	if !errors.Is(cause, ErrCorrupt) || errors.Is(cause, ErrEdited) {
		return damagedIn(id, place, cause)
	}
	err := lease.Check(s.project, Dir+"/"+place+"/"+leaseFile)
	var to string
	if err == nil {
		to, err = s.moveAside(id, cause)
	}
	if to == "" {
		return damagedIn(id, place, fmt.Errorf("%w; it could not be moved aside and stays where it is: %w", cause, err))
	}
	if err != nil {
		cause = fmt.Errorf("%w; a power cut may bring it back to its place: %w", cause, err)
	}
	s.Logger(id).Warn().AnErr("reason", cause).Str("path", to).Msg("damaged session moved aside")
	return damagedIn(id, to, cause)
}

// moveAside moves a session's folder to corrupted/ and returns its new name. The caller
// holds the lease in it.
func (s *Store) moveAside(id session.ID, why error) (to string, err error) {
	now := s.opts.Now().UTC()
	reason, err := json.Marshal(movedAside{1, id.String(), now, why.Error()})
	if err != nil {
		return "", err
	}
	return writer.Quarantine(s.root(), sessionsDir+"/"+id.String(), corruptedDir, id.String()+"-"+now.Format(asideTime), append(reason, '\n'))
}
