package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
// caller holds the session's lease. When moving fails the session stays as it is and
// is still not opened.
func (s *Store) setAside(id session.ID, cause error) error {
	place := sessionsDir + "/" + id.String()
	if !errors.Is(cause, ErrCorrupt) || errors.Is(cause, ErrEdited) {
		return damagedIn(id, place, cause)
	}
	now := s.opts.Now().UTC()
	reason, err := json.Marshal(movedAside{1, id.String(), now, cause.Error()})
	if err != nil {
		return errors.Join(cause, err)
	}
	label := id.String() + "-" + now.Format(asideTime)
	to, err := writer.Quarantine(s.root(), place, corruptedDir, label, append(reason, '\n'))
	if err != nil {
		return damagedIn(id, place, fmt.Errorf("%w; it could not be moved aside and stays where it is: %w", cause, err))
	}
	s.Logger(id).Warn().AnErr("reason", cause).Str("path", to).Msg("damaged session moved aside")
	return damagedIn(id, to, cause)
}

// errGone says that a session's folder is not there any more.
var errGone = errors.New("the session's folder was removed")

// check says whether this process still holds the session: the held lease must
// be the file of that name, looked up from the store's root. It costs one stat.
func (c *committer) check() error { return c.holds(c.journal.Segment()) }

// holds is check for a goroutine beside the commits, which knows a segment.
func (c *committer) holds(segment string) error {
	err := c.lock.Check(c.store.root(), c.lease)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Whoever removes a folder may leave it behind, with what was written to it
	// meanwhile: without lock and journal it is no session any more.
	name := Dir + "/" + sessionsDir + "/" + c.id.String() + "/" + segment
	if _, gone := c.store.project.Lstat(name); errors.Is(gone, fs.ErrNotExist) {
		return &Error{Op: "save session", Path: c.dir.Name(), Class: writer.ClassRemoved, Err: errGone}
	}
	return err
}

// orLost is err, or that the folder was removed or the session was lost if that is
// what is behind it: a successor removes the temporary files that it finds.
func (c *committer) orLost(err error, segment string) error {
	if errors.Is(err, fs.ErrNotExist) {
		if lost := c.holds(segment); lost != nil {
			return lost
		}
	}
	return err
}

// makeAgain makes a removed session again, under the same ID and with the State of
// the last commit, which is in memory. What else lay in the folder is lost.
func (c *committer) makeAgain() error {
	s := c.store
	if err := s.layout(); err != nil {
		return err
	}
	lock, err := s.lock(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if err := s.clearUnfinished(); err != nil {
		return err
	}
	if err := s.remains(c.id); err != nil {
		return err
	}
	again := &committer{store: s, id: c.id, mark: c.mark, event: session.EventRecovered}
	if err := again.build(c.base); err != nil {
		return errors.Join(fmt.Errorf("make session %s again: %w", c.id, err), again.Close())
	}
	_ = c.Close() // of files that nobody can find any more
	*c = *again
	s.setLatest(c.id)
	s.Logger(c.id).Warn().Str("path", c.dir.Name()).
		Msg("the session's folder was removed; it was made again from memory: its earlier history is lost, and what else lay in " + Dir)
	return nil
}

// remains moves aside what is left of a removed session.
func (s *Store) remains(id session.ID) error {
	name := sessionsDir + "/" + id.String()
	if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	now := s.opts.Now().UTC()
	reason, err := json.Marshal(movedAside{1, id.String(), now, "what was left when the session's folder was removed while it ran"})
	if err != nil {
		return err
	}
	_, err = writer.Quarantine(s.root(), name, corruptedDir, id.String()+"-"+now.Format(asideTime), append(reason, '\n'))
	return err
}
