package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/process"
)

// A Session is a session that this process holds for writing. Save, Update,
// State, Critical, Paused and Change never wait for the disk. All methods may be called
// from any goroutine.
//
// The actor is not part of what a caller sees: it takes entries as they are, and what
// has not passed Append, AppendEvent and Record is neither redacted nor checked.
type Session struct {
	actor    *actors.Actor
	store    *Store
	id       session.ID
	log      zerolog.Logger
	redact   *redact.Redactor
	mark     *atomic.Pointer[session.Mark] // of the last durable record
	files    projectFiles
	recorded atomic.Bool // what was last found of the files is on record, with a checkpoint
}

// Open resumes a session: it takes the lease, loads the State, and continues the journal in a
// new epoch. What Open read is durable when it returns. The error is ErrNotFound, a
// [*BusyError] that names the holder, ErrCorrupt or ErrFutureVersion. A damaged session is moved to corrupted/ with its reason; one that
// was only edited outside stays where it is: a [*DamagedError] says where each is now.
//
// A session that its files call active comes back with the exit reason "crashed": its
// last holder died. A loop that resumes a session sets the status to active again, so
// that its own death is seen as well.
func (s *Store) Open(id session.ID) (*Session, error) {
	c, err := s.committer(id, record.EventResumed)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	st, epoch := c.State(), c.Epoch()
	if st.Status() == session.StatusActive {
		if st, err = crashed(st); err != nil {
			return nil, errors.Join(fmt.Errorf("open session %s: %w", id, err), c.Close())
		}
	}
	sess, err := s.run(st, c, c.Mark())
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	sess.log.Info().Str("event", string(record.EventResumed)).Uint64("seq", sess.mark.Load().Seq).Uint64("epoch", epoch).
		Str("last_exit", string(st.Header().ExitReason)).Msg("session opened")
	if err := sess.resume(); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %s: %w", id, err), sess.Close(context.Background()))
	}
	return sess, nil
}

// run starts the writer goroutine of a session. On an error the committer is closed.
func (s *Store) run(st *session.State, c actors.Committer, mark *atomic.Pointer[session.Mark]) (*Session, error) {
	opts := s.opts.ofActor(st)
	opts.Quiet, opts.Every = s.pace, s.pace
	a, err := s.sup.Start(st, c, opts)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &Session{actor: a, store: s, id: st.ID(), log: actors.SessionLog(s.opts.Logger, st.ID()), redact: s.opts.Policy.redactor(), mark: mark}, nil
}

// resume finishes what the last holder had begun: a rewind, and tool calls without an
// answer.
func (s *Session) resume() error {
	at := s.mark.Load()
	if at.Rewinding != nil {
		if err := s.finishRewind(at.Rewinding); err != nil {
			return err
		}
	}
	return s.closeCalls(at.OpenCalls)
}

// Incarnation names the folder that the session's records are in, in 16 hex digits. It
// is another one after Unpause has made a session again whose folder was removed.
func (s *Session) Incarnation() string { return s.mark.Load().Incarnation }

// ID is the session's identity.
func (s *Session) ID() session.ID { return s.id }

// Logger is the session's log: each line has the session's ID. It belongs to the
// session; a caller that wants more fields derives another one.
func (s *Session) Logger() *zerolog.Logger { return &s.log }

// State returns the newest accepted State, without a lock. It may not be durable yet.
func (s *Session) State() *session.State { return s.actor.State() }

// Save accepts st, or with nil the newest State, to be committed. It never waits. nil
// means accepted, not durable: this State or a newer one is committed. While the
// session is paused the State is accepted all the same and a [*PausedError] is returned.
// After Close has begun it is ErrClosed, and the State may or may not be part of the
// last commit.
func (s *Session) Save(st *session.State, t session.Trigger) error { return s.actor.Save(st, t) }

// Update changes the newest State by compare and swap, in memory; fn is called again
// when another goroutine was faster. The next Save, Sync, Flush or Close commits the
// change, or the autosave. An error of fn changes nothing and is returned as it is.
func (s *Session) Update(fn func(*session.State) (*session.State, error)) error {
	return s.actor.Update(fn)
}

// Sync returns nil when everything that was accepted before the call is durable. It
// returns the [*PausedError] while the session is paused, ErrClosed after Close, and
// ctx's error when that ends first; the commit continues then.
func (s *Session) Sync(ctx context.Context) error { return s.actor.Sync(ctx) }

// Flush is Sync, and on nil the session's readable files show the State, durably.
func (s *Session) Flush(ctx context.Context) error { return s.actor.Flush(ctx) }

// Critical delivers one error per pause. The channel is never closed.
func (s *Session) Critical() <-chan error { return s.actor.Critical() }

// Paused returns the error of the pause that lasts, or nil.
func (s *Session) Paused() error { return s.actor.Paused() }

// Unpause tries again after the cause of a pause is gone. On nil everything that was
// accepted is durable and the readable files show it. On an error the pause stays,
// with the newer cause. On a session that is not paused it is Flush.
func (s *Session) Unpause(ctx context.Context) error { return s.actor.Unpause(ctx) }

// Done is closed when the writer goroutine has ended and the lease is free.
func (s *Session) Done() <-chan struct{} { return s.actor.Done() }

func (s *Session) redactJSON(object []byte) ([]byte, error) {
	out, _, err := s.redact.JSON(object)
	return out, err
}

// Redact returns text as the session would store it: with its credentials hidden.
func (s *Session) Redact(text string) string {
	out, _ := s.redact.String(text)
	return out
}

// RedactArgs returns argv as the session would store it: see [redact.Redactor.Args].
func (s *Session) RedactArgs(argv []string) []string {
	out, _ := s.redact.Args(argv)
	return out
}

// Close commits what was accepted, publishes it and releases the lease. It is
// idempotent: every call waits for the same end and returns the same error. When ctx
// ends first the error says what is not durable; the writer continues and holds the
// session's lease until the stuck call has returned.
//
// A session that is still active is paused by it, with the reason "paused": only one
// whose process died is found active and counts as crashed. One that was found crashed
// stays so if nothing was saved since. What removed checkpoints had is freed.
func (s *Session) Close(ctx context.Context) error {
	err := s.actor.Close(ctx)
	return errors.Join(err, s.closeCheckpoints())
}

// ofActor are the options of the actor of a session that begins with a State. A session
// that was found crashed stays so where nothing was saved since: who opens it for a
// moment has not resumed it.
func (o *Options) ofActor(initial *session.State) actors.Options {
	return actors.Options{Logger: o.Logger, Autosave: o.Policy.Autosave, AtClose: func(st *session.State) *session.State {
		if st.Status() != session.StatusActive || st == initial && st.Header().ExitReason != "" {
			return st
		}
		e := st.Edit()
		h := e.Header()
		h.Status, h.ExitReason, h.UpdatedAt = session.StatusPaused, session.ExitPaused, o.Now()
		if paused, err := e.State(); err == nil {
			return paused
		}
		return st
	}}
}

// crashed notes on a State that its last holder ended without saying so. When that
// holder worked last is left as it is.
func crashed(st *session.State) (*session.State, error) {
	e := st.Edit()
	e.Header().ExitReason = session.ExitCrashed
	return e.State()
}

// path names a file of the session's folder, below the store's root.
func (s *Session) path(file string) string { return sessionsDir + "/" + s.id.String() + "/" + file }

// Change edits the newest State and saves the result under a trigger, without
// waiting. It is Update and Save in one; fn may be called more than once when
// another goroutine changes the State at the same moment.
func (s *Session) Change(t session.Trigger, fn func(*session.Edit) error) error {
	now := s.store.opts.Now()
	err := s.Update(func(st *session.State) (*session.State, error) {
		e := st.Edit()
		e.Header().UpdatedAt = now
		if err := fn(e); err != nil {
			return nil, err
		}
		return e.State()
	})
	if _, paused := errors.AsType[*PausedError](err); err != nil && !paused {
		return err
	}
	return s.Save(nil, t) // a paused session keeps the State and counts the trigger
}

// Complete marks the session as done and waits until that is durable.
func (s *Session) Complete(ctx context.Context) error {
	err := s.changeHeader(ctx, session.TriggerPhaseChanged, func(h *session.Header) {
		h.Phase, h.Status, h.ExitReason = session.PhaseComplete, session.StatusComplete, session.ExitComplete
		h.ActiveTask, h.CompletedAt = "", s.store.opts.Now()
	})
	if err == nil {
		s.log.Info().Msg("session complete")
	}
	return err
}

// Pause marks the session as paused for a reason and waits until that is durable.
func (s *Session) Pause(ctx context.Context, t session.Trigger, why session.ExitReason) error {
	err := s.changeHeader(ctx, t, func(h *session.Header) { h.Status, h.ExitReason = session.StatusPaused, why })
	if err == nil {
		s.log.Info().Str("reason", string(why)).Msg("session paused")
	}
	return err
}

// changeHeader changes the header and waits until that is visible.
func (s *Session) changeHeader(ctx context.Context, t session.Trigger, set func(*session.Header)) error {
	err := s.Change(t, func(e *session.Edit) error {
		set(e.Header())
		return nil
	})
	if err != nil {
		return err
	}
	return s.Flush(ctx)
}

// PauseRequested says whether another process asked this session to pause.
func (s *Session) PauseRequested() bool {
	_, err := s.store.root().Lstat(s.path(pauseFile))
	return err == nil
}

// RequestPause pauses a session: one that nobody holds at once, one that is
// held as soon as its holder looks, which a running loop does between two
// tasks. The boolean says that a holder was asked.
func (s *Store) RequestPause(ctx context.Context, id session.ID) (asked bool, err error) {
	sess, err := s.Open(id)
	if err == nil {
		if sess.State().Status() != session.StatusComplete {
			err = sess.Pause(ctx, session.TriggerPaused, session.ExitPaused)
		}
		return false, errors.Join(err, sess.Close(ctx))
	}
	if !errors.Is(err, ErrBusy) {
		return false, err
	}
	if _, err = s.request(id, pauseFile); err != nil {
		return false, fmt.Errorf("ask session %s to pause: %w", id, err)
	}
	s.Logger(id).Info().Msg("pause requested")
	return true, nil
}

// request makes a file that the holder of a session looks for, and returns its name below
// .lopen.
func (s *Store) request(id session.ID, file string) (string, error) {
	name := sessionsDir + "/" + id.String() + "/" + file
	err := writer.CreateFile(s.root(), name, []byte(s.opts.Now().UTC().Format(time.RFC3339)+"\n"), filePerm)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return name, err
}

const (
	// wakePatience is how long RequestWake gives the holder to answer.
	wakePatience = 3 * time.Second
	wakePoll     = 20 * time.Millisecond
)

// WakeRequested says whether another process asked this session to end its wait. It is
// true once for each request, and asking is the answer to it: call it only while waiting.
func (s *Session) WakeRequested() bool { return s.store.root().Remove(s.path(wakeFile)) == nil }

// RequestWake asks the holder of a session to end its wait. The boolean says that it does;
// it is false where nobody holds the session, or its holder does not wait, which takes three
// seconds to find out unless a task is in progress.
func (s *Store) RequestWake(ctx context.Context, id session.ID) (woken bool, err error) {
	owner, err := s.Holder(id)
	if err != nil || owner == nil {
		return false, err
	}
	st, _, err := s.Read(id)
	if err != nil || st.ActiveTask() != "" {
		return false, err
	}
	name, err := s.request(id, wakeFile)
	if err != nil {
		return false, fmt.Errorf("ask session %s to end its wait: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, wakePatience)
	defer cancel()
	tick := time.NewTicker(wakePoll)
	defer tick.Stop()
	for {
		if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
			s.Logger(id).Info().Msg("wait ended on request")
			return true, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done(): // one that cannot be taken back was met at the last moment
			return errors.Is(s.root().Remove(name), fs.ErrNotExist), nil
		}
	}
}

// HoldChild takes the lock that the next command inherits. It is nil where nothing is
// saved: no later holder looks for the command.
func (s *Session) HoldChild() (*process.Lock, error) {
	if !s.store.saves() {
		return nil, nil
	}
	return process.Hold(s.store.root(), s.path(childFile))
}

// ChildHeld says whether something still holds the lock that the last command inherited: the
// command, or a process that it left behind. The caller is about to start none.
func (s *Session) ChildHeld() (bool, error) {
	o, err := process.FindOrphan(s.store.root(), s.path(childFile))
	return o != nil || err != nil, err
}

// CommandEnded is how the command of the last attempt ended, nil where nobody knows. The
// caller holds the session, and nothing holds the command's lock any more. What is written
// down of an attempt whose outcome the State has is not returned.
func (s *Session) CommandEnded() (*process.Ended, error) {
	e, err := process.ReadEnded(s.store.root(), s.path(childFile))
	if err != nil || e == nil || e.Iteration != s.State().NumIterations()+1 {
		return nil, err
	}
	return e, nil
}

// Orphan returns the command of a session that still holds its lock, or nil, also
// of one that was deleted since somebody listed it. The session may lie in corrupted/.
// The caller holds the session or its module, so that no run has it started; others ask
// [Store.Abandoned].
func (s *Store) Orphan(id session.ID) (*process.Orphan, error) {
	dir, err := writer.OpenDir(s.root(), s.folderOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for a command that outlived session %s: %w", id, err)
	}
	defer dir.Close()
	return process.FindOrphan(dir, childFile)
}

// Abandoned returns the command of a session that nobody holds, if it still works, or a
// process that it left behind, or nil. It makes no file and keeps no run from starting; anybody may call it.
func (s *Store) Abandoned(id session.ID) (*process.Orphan, error) {
	return repair.Abandoned(s.root(), s.folderOf(id)+"/")
}

// folderOf is where a session's files are: in sessions/, or in corrupted/ once it was
// moved there.
func (s *Store) folderOf(id session.ID) string {
	name := sessionsDir + "/" + id.String()
	if _, err := s.root().Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if moved, ok := s.inCorrupted(id.String()); ok {
			return moved.Where
		}
	}
	return name
}
