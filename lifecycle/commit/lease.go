package commit

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
)

// errGone means that the session's folder was removed.
var errGone = errors.New("the session's folder was removed")

// Check returns nil if this process still holds the session and, if it took it, the lock of
// the module: the held file must be the one that the name leads to from the project's folder.
// It costs one stat for each lock.
func (c *Committer) Check() error { return c.holds(c.journal.Segment()) }

// holds is Check with the name of a segment that must exist. A publication, which runs
// concurrently with commits, gives the segment that was current when it began.
func (c *Committer) holds(segment string) error {
	err := c.leased(segment)
	if err != nil {
		return err
	}
	taken, err := c.opts.Place.KeepModule()
	if taken || errors.Is(err, fs.ErrNotExist) {
		if gone := c.leased(segment); gone != nil { // the folder was removed in between
			return gone
		}
	}
	return err
}

func (c *Committer) leased(segment string) error {
	project, path := c.opts.Place.Project(), folder.Store+"/"+c.path
	err := c.lock.Check(project, path+"/"+folder.LeaseFile)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A folder that is being removed may remain, with files that were written meanwhile. Without
	// lock and journal it is no session any more.
	if _, gone := project.Lstat(path + "/" + segment); errors.Is(gone, fs.ErrNotExist) {
		return &writer.Error{Op: "save session", Path: c.dir.Name(), Class: writer.ClassRemoved, Err: errGone}
	}
	return err
}

// orLost returns err, or the cause of a missing file: the folder was removed, or another
// process has taken over the session and removed the temporary files.
func (c *Committer) orLost(err error, segment string) error {
	if errors.Is(err, fs.ErrNotExist) {
		if lost := c.holds(segment); lost != nil {
			return lost
		}
	}
	return err
}

// recreate makes a removed session again, with the same ID, the State of the last commit,
// which is in memory, and a new incarnation. Everything else in the folder is lost. If another
// process took the module or made a session of that ID, the error has class fenced.
func (c *Committer) recreate() error {
	last := c.at.Checkpoint // the project's checkpoints may still be there
	first := First{State: c.base, Event: record.EventRecreated, Share: func(string) (session.Mark, error) {
		return session.Mark{Checkpoint: last}, nil
	}}
	err := c.opts.Place.Recreate(c.another, func() error {
		again := &Committer{opts: c.opts, id: c.id, mark: c.mark}
		if err := again.build(first); err != nil {
			return errors.Join(fmt.Errorf("make session %s again: %w", c.id, err), again.Close())
		}
		_ = c.Close() // its files have no names any more
		*c = *again
		return nil
	})
	if err != nil {
		return err
	}
	c.opts.Logger.Warn().Str("incarnation", c.at.Incarnation).Str("path", c.dir.Name()).
		Msg("the session's folder was removed; it was made again from memory: its earlier history is lost, and what else lay in " + folder.Store)
	return nil
}

// retake takes the lease again after the lock file was removed or replaced, alone or with the
// whole folder, for example by a tool that moves the folder away and back. It opens the session
// as any process would, and continues only if the files end with the last acknowledged record.
// If they do not, another process resumed the session, or the files are an older copy. lost is
// why the lease was lost.
func (c *Committer) retake(lost error) error {
	held, err := c.opts.Place.Retake(lost, c.same)
	if err != nil {
		return err
	}
	if err := c.same(held.Contents.At); err != nil {
		return errors.Join(err, held.Close())
	}
	again, err := open(held, c.event, c.opts, c.mark)
	if err != nil {
		return err
	}
	again.since, again.base = c.since, c.base
	again.pub.state, again.pub.metrics = shown{}, shown{} // the files may have been copied back without a sync
	_ = c.Close()                                         // its files have no names any more
	*c = *again
	c.opts.Logger.Warn().Str("path", filepath.Join(c.fullPath(), folder.LeaseFile)).AnErr("reason", lost).Msg("the session's lock was lost and is taken again; nobody had gone on with the session")
	return nil
}

// same returns an error unless the files end with the record that this process wrote last.
func (c *Committer) same(at session.Mark) error {
	if err := c.another(at); err != nil {
		return err
	}
	if at.Epoch != c.at.Epoch || at.Seq != c.at.Seq {
		return c.fenced(fmt.Errorf("its files are at record %d and this process is at %d: another process went on with them, or they are an older copy", at.Seq, c.at.Seq))
	}
	return nil
}

// another returns an error if the files are of another session with this ID.
func (c *Committer) another(at session.Mark) error {
	if at.Incarnation != c.at.Incarnation {
		return c.fenced(fmt.Errorf("another session has its ID now: %s", at.Incarnation))
	}
	return nil
}

func (c *Committer) fenced(err error) error {
	return &writer.Error{Op: "take lease again", Path: c.fullPath(), Class: writer.ClassFenced, Err: err}
}

func (c *Committer) fullPath() string { return filepath.Join(c.opts.Place.Root().Name(), c.path) }
