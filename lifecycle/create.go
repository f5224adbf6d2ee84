package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
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
	st, err := session.New(id, now)
	if err != nil {
		return nil, err
	}
	f, err := s.build(id, st)
	if err != nil {
		return nil, fmt.Errorf("create session %s: %w", id, err)
	}
	sess, err := s.start(id, st, f)
	if err != nil {
		return nil, err
	}
	s.setLatest(id)
	s.opts.Logger.Info().Stringer("session", id).Msg("session created")
	return sess, nil
}

// build makes the session's folder under a temporary name, takes the lease in
// it, writes the first commit and renames the folder into place.
func (s *Store) build(id session.ID, st *session.State) (_ *files, err error) {
	temp := sessionsDir + "/" + newPrefix + id.String()
	final := sessionsDir + "/" + id.String()
	if err := s.root.Mkdir(temp, 0o700); err != nil {
		return nil, err
	}
	f := &files{root: s.root, lease: temp + "/" + leaseFile}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = s.root.RemoveAll(temp)
		}
	}()
	if f.dir, err = openDir(s.root, temp); err != nil {
		return nil, err
	}
	if f.lock, err = writer.TryLock(s.root, f.lease, writer.Self(s.opts.Command)); err != nil {
		return nil, err
	}
	if _, err = f.Commit(actors.Batch{State: st}); err != nil {
		return nil, err
	}
	if err = s.root.Rename(temp, final); err != nil {
		return nil, err
	}
	temp, f.lease = final, final+"/"+leaseFile
	if err = s.root.SyncDir(sessionsDir); err != nil {
		return nil, err
	}
	if err = f.dir.Close(); err != nil {
		return nil, err
	}
	f.dir, err = openDir(s.root, final) // under its own name, which errors show
	return f, err
}

// clearUnfinished removes what a creation that was cut off left behind. The
// caller holds the store lock, so nobody is creating now.
func (s *Store) clearUnfinished() error {
	entries, err := s.root.ReadDir(sessionsDir)
	if err != nil {
		return fmt.Errorf("list sessions: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) {
			if err := s.root.RemoveAll(sessionsDir + "/" + e.Name()); err != nil {
				return fmt.Errorf("clear unfinished session: %w", err)
			}
		}
	}
	return nil
}

// setLatest points the hint at id. It is a hint only, so a failure is logged
// and costs nothing: readers fall back on the newest session.
func (s *Store) setLatest(id session.ID) {
	err := writer.ReplaceSymlink(s.root, id.String(), sessionsDir+"/"+latestLink)
	if errors.Is(err, writer.ErrNoSymlinks) {
		err = writer.ReplaceFile(s.root, sessionsDir+"/"+latestText, []byte(id.String()+"\n"), filePerm)
	}
	if err != nil {
		s.opts.Logger.Warn().Err(err).Msg("the hint to the latest session could not be written")
	}
}
