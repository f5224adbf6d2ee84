package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// newPrefix begins the name of a session's folder until it is complete.
const newPrefix = ".new-"

// Create makes a new session of a module and holds it. When it returns, the
// session and its ID are durable. Any number of processes may create at once:
// each gets an ID of its own. ctx bounds the wait for the store lock.
func (s *Store) Create(ctx context.Context, module string) (*Session, error) {
	if err := session.ValidateModule(module); err != nil {
		return nil, &Error{Op: "create session", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	return s.create(ctx, module, session.EventCreated, session.New, nil)
}

// create makes a session of what first returns. share, unless it is nil, puts into
// the folder, which has a temporary name, what the session has in common with another one, and says how far its
// streams go.
func (s *Store) create(ctx context.Context, module string, why session.Event, first func(session.ID, time.Time) (*session.State, error), share func(folder string) (session.Mark, error)) (*Session, error) {
	lock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()

	if err := s.layout(); err != nil {
		return nil, err
	}
	if err := s.clearUnfinished(); err != nil {
		return nil, err
	}
	now := s.opts.Now()
	id, err := s.nextID(module, now)
	if err != nil {
		return nil, err
	}
	st, err := first(id, now)
	if err != nil {
		return nil, err
	}
	c := &committer{store: s, id: id, event: why}
	if err := c.build(st, share); err != nil {
		return nil, errors.Join(fmt.Errorf("create session %s: %w", id, err), c.Close())
	}
	sess, err := s.start(st, c)
	if err != nil {
		return nil, err
	}
	s.setLatest(id)
	s.keepBallast()
	s.opts.Logger.Info().Stringer("session", id).Msg("session created")
	return sess, nil
}

// build makes the session's folder under a temporary name, takes the lease in
// it, writes the first record and the readable files, and renames it into place.
// The caller holds the store lock.
func (c *committer) build(st *session.State, share func(folder string) (session.Mark, error)) (err error) {
	root := c.store.root()
	temp, final := sessionsDir+"/"+newPrefix+c.id.String(), sessionsDir+"/"+c.id.String()
	if err := root.Mkdir(temp, 0o700); err != nil {
		return writer.NewError("make folder", filepath.Join(root.Name(), temp), writer.NotCommitted, err)
	}
	defer func() {
		if err != nil {
			_ = root.RemoveAll(temp)
		}
	}()
	dir, err := openDir(root, temp)
	if err != nil {
		return err
	}
	c.dir, c.lease = named{dir, filepath.Join(root.Name(), final)}, temp+"/"+leaseFile
	if c.lock, err = writer.TryLock(c.dir, leaseFile, writer.Self(c.store.opts.Command)); err != nil {
		return err
	}
	if c.journal, err = journal.Create(c.dir, c.id.String()); err != nil {
		return err
	}
	c.base, c.at, c.pub = nil, session.Mark{}, publisher{}
	if share != nil {
		if c.at, err = share(temp); err != nil {
			return err
		}
	}
	c.openStreams()
	if _, err = c.append(actors.Batch{State: st}); err != nil {
		return err
	}
	c.at.Iterations = c.at.Seq // so that metrics.json is written without any, too
	err = c.pub.job(c.dir, c.base, c.at, true)()
	if c.pub.ended(err); err != nil {
		return err
	}
	if err = root.Rename(temp, final); err != nil {
		return writer.NewError("create session", filepath.Join(root.Name(), final), writer.NotCommitted, err)
	}
	temp, c.lease = final, final+"/"+leaseFile
	if err = root.SyncDir(sessionsDir); err != nil {
		return writer.NewError("create session", filepath.Join(root.Name(), final), writer.NotDurable, err)
	}
	return nil
}

// named is a folder that will have another name by the time its name is shown.
type named struct {
	writer.FS
	name string
}

func (n named) Name() string { return n.name }

// clearUnfinished removes what a creation that was cut off left behind. The
// caller holds the store lock, so nobody is creating now.
func (s *Store) clearUnfinished() error {
	entries, err := s.root().ReadDir(sessionsDir)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			if err := s.root().RemoveAll(sessionsDir + "/" + e.Name()); err != nil {
				return fmt.Errorf("clear unfinished session: %w", err)
			}
		}
	}
	return nil
}

// setLatest points the hint at id. It is a hint only, so a failure is logged
// and costs nothing: readers fall back on the newest session.
func (s *Store) setLatest(id session.ID) {
	err := writer.ReplaceSymlink(s.root(), id.String(), sessionsDir+"/"+latestLink)
	if errors.Is(err, writer.ErrNoSymlinks) {
		err = writer.ReplaceFile(s.root(), sessionsDir+"/"+latestText, []byte(id.String()+"\n"), filePerm)
	}
	if err != nil {
		s.opts.Logger.Warn().Err(err).Msg("the hint to the latest session could not be written")
	}
}
