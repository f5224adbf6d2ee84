package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

// errGone says that a session's folder is not there any more.
var errGone = errors.New("the session's folder was removed")

// Check says whether this process still holds the session.
func (c *committer) Check() error { return c.check() }

// check says whether this process still holds the session, and its module where it
// took that: the held lease must be the file of that name, looked up from the
// project's folder. It costs one stat for each lock.
func (c *committer) check() error { return c.holds(c.journal.Segment()) }

// holds is check for a goroutine beside the commits, which knows a segment.
func (c *committer) holds(segment string) error {
	err := c.leased(segment)
	if err != nil {
		return err
	}
	taken, err := c.store.keepModule(c.id.Module)
	if taken || errors.Is(err, fs.ErrNotExist) {
		if gone := c.leased(segment); gone != nil { // all of it was removed in between
			return gone
		}
	}
	return err
}

func (c *committer) leased(segment string) error {
	err := c.lock.Check(c.store.project, Dir+"/"+c.lease)
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
// the last commit, which is in memory, as a new incarnation. What else lay in the
// folder is lost. Where somebody else took the module or made a session of that ID,
// this one is fenced.
func (c *committer) makeAgain() error {
	s := c.store
	lock, err := s.lock(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if err := s.clearUnfinished(); err != nil {
		return err
	}
	if err := c.remains(); err != nil {
		return err
	}
	if err := s.reserve(c.id); err != nil { // the counters were removed as well
		return err
	}
	again := &committer{store: s, id: c.id, mark: c.mark, event: session.EventMadeAgain}
	last := c.at.Checkpoint // the project's checkpoints may still be there
	again.share = func(string) (session.Mark, error) { return session.Mark{Checkpoint: last}, nil }
	if err := again.build(c.base); err != nil {
		return errors.Join(fmt.Errorf("make session %s again: %w", c.id, err), again.Close())
	}
	_ = c.Close() // of files that nobody can find any more
	*c = *again
	s.refreshLatest()
	s.Logger(c.id).Warn().Str("incarnation", c.at.Incarnation).Str("path", c.dir.Name()).
		Msg("the session's folder was removed; it was made again from memory: its earlier history is lost, and what else lay in " + Dir)
	return nil
}

// retake takes the lease of a session again whose lock file was removed or replaced,
// also with the whole folder, as by a tool that carries it away and back. It opens the
// session as any process would, which keeps out whoever has it, and goes on only if the
// files end with the last acknowledged record: else somebody went on with them, or they
// are an older copy. The error is lost, or says who holds the session.
func (c *committer) retake(lost error) error {
	s := c.store
	full := filepath.Join(s.Path(), sessionsDir, c.id.String())
	dir, err := s.sessionDir(c.id)
	if err != nil {
		return errors.Join(lost, err)
	}
	again := &committer{store: s, id: c.id, mark: c.mark, dir: dir, lease: c.lease, event: c.event, since: c.since}
	if owner, err := s.Holder(c.id); err == nil && owner != nil {
		return errors.Join(heldByAnother("take lease again", full, &BusyError{Path: full, Owner: *owner}), again.Close())
	}
	if ld, err := join(dir, c.id); err == nil { // a look, which leaves no trace in what is another's
		err = c.same(full, ld.at)
		if err != nil {
			return errors.Join(err, again.Close())
		}
	}
	if _, err := again.acquire(); err != nil {
		return errors.Join(heldByAnother("take lease again", full, err), again.Close())
	}
	if err := c.same(full, again.at); err != nil {
		return errors.Join(err, again.Close())
	}
	again.base = c.base
	again.pub.state, again.pub.metrics = shown{}, shown{} // who carried the files back may not have synced them
	_ = c.Close()                                         // of files that nobody can find any more
	*c = *again
	s.Logger(c.id).Warn().Str("path", filepath.Join(full, leaseFile)).AnErr("reason", lost).Msg("the session's lock was lost and is taken again; nobody had gone on with the session")
	return nil
}

// same says whether files end with the record that this process wrote last.
func (c *committer) same(path string, at session.Mark) error {
	var err error
	switch {
	case at.Incarnation != c.at.Incarnation:
		err = fmt.Errorf("another session has its ID now: %s", at.Incarnation)
	case at.Epoch != c.at.Epoch || at.Seq != c.at.Seq:
		err = fmt.Errorf("its files are at record %d and this process is at %d: another process went on with them, or they are an older copy", at.Seq, c.at.Seq)
	default:
		return nil
	}
	return &Error{Op: "take lease again", Path: path, Class: writer.ClassFenced, Err: err}
}

// remains moves aside what is left of the removed session. A session of the same ID
// that somebody else made meanwhile, held or not, stays where it is.
func (c *committer) remains() error {
	s := c.store
	name := sessionsDir + "/" + c.id.String()
	full := filepath.Join(s.Path(), name)
	dir, err := openDir(s.root(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	lease, err := writer.TryLock(dir, leaseFile, writer.Self(s.opts.Command))
	if err != nil {
		return heldByAnother("make session again", full, err)
	}
	defer func() { _ = lease.Unlock() }()
	if ld, err := join(dir, c.id); err == nil && ld.at.Incarnation != c.at.Incarnation {
		return c.same(full, ld.at)
	}
	_, err = s.moveAside(c.id, movedAside{Reason: "what was left when the session's folder was removed while it ran", Remains: true})
	return err
}
