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
// it, and returns why, with where it is now. What only was edited outside, was
// written by a newer version or could not be read stays. The lease is held: it is looked
// at once more before the move. When moving fails the session stays as it is and is still
// not opened.
func (c *committer) setAside(cause error) error {
	if !errors.Is(cause, ErrCorrupt) || errors.Is(cause, session.ErrChecksum) {
		return cause
	}
	err := c.lock.Check(c.store.project, Dir+"/"+c.lease)
	var to string
	if err == nil {
		to, err = c.store.moveAside(c.id, cause)
	}
	if err != nil {
		return fmt.Errorf("%w; it could not be moved aside and stays where it is: %w", cause, err)
	}
	c.store.opts.Logger.Warn().Stringer("session", c.id).AnErr("reason", cause).Str("path", to).Msg("damaged session moved aside")
	return fmt.Errorf("%w; the session was moved to %s/%s", cause, Dir, to)
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
