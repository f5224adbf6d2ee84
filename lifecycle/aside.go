package lifecycle

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	RecoveredAs   string    `json:"recoveredAs,omitempty"` // the session that was made from it last
	Remains       bool      `json:"remains,omitempty"`     // of a session that was made again: there is nothing to recover
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
		to, err = s.moveAside(id, movedAside{Reason: cause.Error()})
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

// moveAside moves a session's folder to corrupted/, with a note beside it, and returns
// its new name. The caller holds the lease in it.
func (s *Store) moveAside(id session.ID, note movedAside) (to string, err error) {
	note.SchemaVersion, note.Session, note.At = 1, id.String(), s.opts.Now().UTC()
	data, err := json.Marshal(note)
	if err != nil {
		return "", err
	}
	return writer.Quarantine(s.root(), sessionsDir+"/"+id.String(), corruptedDir, id.String()+"-"+note.At.Format(asideTime), append(data, '\n'))
}

// noteRecovered says beside a folder in corrupted/ which session was made from it, so
// that nobody is asked about it again, whatever becomes of that session.
func (s *Store) noteRecovered(where string, as session.ID) {
	if !strings.HasPrefix(where, corruptedDir+"/") {
		return
	}
	note := s.moved(where)
	note.SchemaVersion, note.RecoveredAs = 1, as.String()
	data, err := json.Marshal(note)
	if err == nil {
		err = writer.ReplaceFile(s.root(), where+".json", append(data, '\n'), filePerm)
	}
	if err != nil {
		s.Logger(as).Warn().Err(err).Str("path", where).Msg("that the session was recovered could not be noted beside the damaged one")
	}
}
