package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
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
	if !s.saves() {
		return s.createUnsaved(module)
	}
	c := &committer{event: session.EventCreated}
	if err := s.make(ctx, module, c, session.New); err != nil {
		return nil, err
	}
	sess, err := s.startNew(c)
	if err == nil {
		sess.log.Info().Msg("session created")
	}
	return sess, err
}

// startNew holds a session that was just made.
func (s *Store) startNew(c *committer) (*Session, error) {
	sess, err := s.start(c.base, c)
	if err != nil {
		return nil, err
	}
	s.keepBallast()
	return sess, nil
}

// make makes a session of a module, durably, with the State that first returns for
// the ID that it is given. The committer holds it afterwards.
func (s *Store) make(ctx context.Context, module string, c *committer, first func(session.ID, time.Time) (*session.State, error)) error {
	if err := session.ValidateModule(module); err != nil {
		return &Error{Op: "create session", Path: module, Class: writer.ClassInvalid, Err: err}
	}
	if err := s.layout(); err != nil { // .lopen may have been removed since, with the lock
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Unlock() }()
	if err := s.clearUnfinished(); err != nil {
		return err
	}
	now := s.opts.Now()
	id, err := s.nextID(module, now)
	if err != nil {
		return err
	}
	st, err := first(id, now)
	if err != nil {
		return err
	}
	c.store, c.id, c.mark = s, id, &atomic.Pointer[session.Mark]{}
	if err := c.build(st); err != nil {
		return errors.Join(fmt.Errorf("create session %s: %w", id, err), c.Close())
	}
	s.setLatest(id)
	return nil
}

// build makes the session's folder under a temporary name, takes the lease in
// it, writes the first record and the readable files, and renames it into place.
// The caller holds the store lock.
func (c *committer) build(st *session.State) (err error) {
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
	c.base, c.at, c.pub = nil, session.Mark{}, publisher{copies: [2]copied{{known: true}, {known: true}}}
	if c.share != nil {
		if c.at, err = c.share(temp); err != nil {
			return err
		}
	}
	if _, err = c.append(actors.Batch{State: st}); err != nil {
		return err
	}
	c.at.Iterations = c.at.Seq // so that metrics.json is written without any, too
	if err = c.publish(); err != nil {
		return err
	}
	if c.beside != nil {
		if err = c.beside(c.dir); err != nil {
			return err
		}
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

// refreshLatest points the hint at the newest session, where the one that it names is
// gone. The caller holds the store's lock.
func (s *Store) refreshLatest() {
	id, err := s.latest()
	if err == nil {
		if hint, herr := s.root().Readlink(sessionsDir + "/" + latestLink); herr != nil || hint != id.String() {
			s.setLatest(id)
		}
		return
	}
	for _, name := range []string{latestLink, latestText} {
		if err := s.root().Remove(sessionsDir + "/" + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.opts.Logger.Warn().Err(err).Msg("the hint to the latest session could not be removed")
		}
	}
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
