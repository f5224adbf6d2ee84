package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/process"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// A Session is a session that this process holds for writing. Save, Update, State,
// Critical, Paused and Change never wait for the disk. All methods may be called from any
// goroutine.
//
// The actor is not exported, because it neither redacts nor checks entries; Append,
// AppendEvent and Record do.
type Session struct {
	actor     *actors.Actor
	store     *Store
	id        session.ID
	log       zerolog.Logger
	redact    *redact.Redactor
	mark      *atomic.Pointer[commit.Durable]
	files     projectFiles
	continues bool           // it was opened in the middle of the turn for which it is held
	recorded  atomic.Bool    // a checkpoint has recorded the last changes that were found
	opened    time.Time      // UpdatedAt of the State that it began with; Immutable.
	noted     atomic.Bool    // Close has pointed the hint to the latest session at it
	finished  *rewind.Result // of the rewind that was cut off and that Open has finished; Immutable.
}

// Open resumes a session: it takes the lease, loads the State, and continues the journal in
// a new epoch. When it returns nil, everything that it read is durable. The error wraps
// ErrNotFound, a [*BusyError] that names the holder, ErrCorrupt, ErrEdited or
// ErrFutureVersion. Open moves a damaged session to corrupted/ with the reason; a session
// that was only edited outside stays. In both cases a [*DamagedError] says where it is.
//
// If a session is active in its files, its last holder died, and the State gets the exit
// reason "crashed". A session that is held for a process that lives is busy, unless this is it;
// see [Options]. A loop that resumes a session sets the status to active again, so that
// its own death is detected as well.
func (s *Store) Open(id session.ID) (*Session, error) { return s.open(id, (*Session).resume) }

// open is Open with what is done about what the last holder had begun.
func (s *Store) open(id session.ID, resume func(*Session) error) (*Session, error) {
	c, err := s.committer(id, record.EventResumed)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	st, epoch := c.State(), c.Epoch()
	if st.Status() == session.StatusActive && !s.opts.holds(st) {
		if st, err = crashed(st); err != nil {
			return nil, errors.Join(fmt.Errorf("open session %s: %w", id, err), c.Close())
		}
	}
	sess, err := s.run(st, c, c.Durable())
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	sess.continues = st.Status() == session.StatusActive && s.opts.holds(st)
	sess.log.Info().Str("event", string(record.EventResumed)).Uint64("seq", sess.mark.Load().Seq).Uint64("epoch", epoch).
		Str("last_exit", string(st.Header().ExitReason)).Msg("session opened")
	if err := resume(sess); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %s: %w", id, err), sess.Close(context.Background()))
	}
	return sess, nil
}

// run starts the writer goroutine of a session. After an error the committer is closed.
func (s *Store) run(st *session.State, c actors.Committer, mark *atomic.Pointer[commit.Durable]) (*Session, error) {
	opts := s.opts.ofActor(st)
	opts.Quiet, opts.Every = s.pace, s.pace
	s.fences.Delete(st.ID())
	a, err := s.sup.Start(st, c, opts)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	sess := &Session{actor: a, store: s, id: st.ID(), log: actors.SessionLog(s.opts.Logger, st.ID()), redact: s.opts.Policy.redactor(), mark: mark, opened: st.Header().UpdatedAt}
	s.unclosed.Store(sess, nil)
	return sess, nil
}

// resume finishes the rewind that the last holder had begun, and answers its open tool calls.
func (s *Session) resume() error {
	at := s.mark.Load()
	if at.Rewinding != nil {
		if err := s.finishRewind(at.Rewinding); err != nil {
			return err
		}
	}
	if s.State().Header().Origin != session.OriginRun {
		return nil // its calls are answered by the agent, in a message that is taken over later
	}
	return s.closeCalls(at.OpenCalls)
}

// Incarnation returns 16 hex digits that identify this incarnation of the session. They
// change when its folder was removed and Unpause makes the session again.
func (s *Session) Incarnation() string { return s.mark.Load().Incarnation }

// ID returns the session's ID.
func (s *Session) ID() session.ID { return s.id }

// Logger returns the session's log, whose lines have the session's ID. A caller that wants
// more fields derives a logger from it.
func (s *Session) Logger() *zerolog.Logger { return &s.log }

// State returns the newest accepted State, without a lock. It may not be durable yet.
func (s *Session) State() *session.State { return s.actor.State() }

// Save accepts st, or the newest State if st is nil, to be committed. It never waits. A nil
// error means accepted, not durable: this State or a newer one will be committed. A paused
// session accepts the State too, and Save returns a [*PausedError]. After Close has begun
// Save returns ErrClosed, and the State may or may not be part of the last commit.
func (s *Session) Save(st *session.State, t session.Trigger) error { return s.actor.Save(st, t) }

// Update changes the newest State by compare and swap, in memory. fn is called again when
// another goroutine changed the State meanwhile. The next Save, Sync, Flush or Close commits
// the change, or the autosave. When fn fails, nothing changes and Update returns that error
// unwrapped.
func (s *Session) Update(fn func(*session.State) (*session.State, error)) error {
	return s.actor.Update(fn)
}

// Sync returns nil when everything that was accepted before the call is durable. It
// returns the [*PausedError] while the session is paused, ErrClosed after Close, and the
// cause of ctx when ctx ends first; the commit continues.
func (s *Session) Sync(ctx context.Context) error { return s.actor.Sync(ctx) }

// Flush is Sync, and on nil the session's readable files show the State, durably.
func (s *Session) Flush(ctx context.Context) error { return s.actor.Flush(ctx) }

// Critical delivers one error per pause. The channel is never closed.
func (s *Session) Critical() <-chan error { return s.actor.Critical() }

// Paused returns the error of the present pause, or nil.
func (s *Session) Paused() error { return s.actor.Paused() }

// Unpause tries again after the cause of a pause is gone. When it returns nil, everything
// that was accepted is durable and the readable files show it. On an error the pause stays,
// with the newer cause. On a session that is not paused Unpause does what Flush does.
func (s *Session) Unpause(ctx context.Context) error { return s.actor.Unpause(ctx) }

// Done is closed when the writer goroutine has ended and the lease is free.
func (s *Session) Done() <-chan struct{} { return s.actor.Done() }

// RedactJSON returns a JSON value as Append and AppendEvent would store it, with credentials
// hidden.
func (s *Session) RedactJSON(value strictjson.Value) (strictjson.Value, error) {
	return s.redactJSON(value)
}

// Durable returns the last durable record, with its State. When More is closed there is a later
// one. It is for those who follow the log while the session writes it: what is read beyond this
// record may not survive a power cut. It never waits.
func (s *Session) Durable() *commit.Durable { return s.mark.Load() }

// Fence makes the session pause before its next commit, with class fenced and this cause, because
// somebody elsewhere continues it. Nothing more is written to its log, and Unpause fails, until
// the session is opened again.
func (s *Session) Fence(cause error) { s.store.fences.Store(s.id, cause) }

// Appended returns the numbers of the durable messages and events, with those that the session
// inherited.
func (s *Session) Appended() (messages, events uint64) {
	at := s.mark.Load()
	return at.Messages, at.Transcript
}

func (s *Session) redactJSON(object []byte) ([]byte, error) {
	out, _, err := s.redact.JSON(object)
	return out, err
}

// Redact returns text as the session would store it, with credentials hidden.
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
// ends first, the error says what is not durable. The writer then continues, and holds the
// session's lease until the stuck call has returned.
//
// Close pauses a session that is still active, with the reason "paused", unless it is held for
// another process. So only a session whose process died is found active and counts as crashed. A session that was found crashed
// stays crashed if nothing was saved since. Close also sweeps the contents of removed
// checkpoints, waits until outputs are compressed, and makes a session of hooks that was changed
// the latest one.
func (s *Session) Close(ctx context.Context) error {
	if ctx == nil {
		return absent("close session", s.id.String(), "context")
	}
	return errors.Join(s.actor.Close(ctx), s.leave(ctx))
}

// leave does what is left to do once the session was told to end. It is what [Store.Close] and
// Session.Close share.
func (s *Session) leave(ctx context.Context) error {
	if s.actor.Close(ctx) == nil {
		s.noteLatest(ctx)
	}
	s.store.awaitOutputs(ctx)
	s.store.unclosed.Delete(s)
	return s.closeCheckpoints(ctx)
}

// noteLatest points the hint at a session of hooks that was changed since it was opened. Such a
// session has no begin of a run: an agent may return to it after others were made.
func (s *Session) noteLatest(ctx context.Context) {
	h := s.State().Header()
	if h.Origin != session.OriginHook || h.UpdatedAt.Equal(s.opened) || s.noted.Swap(true) {
		return
	}
	if hint, err := s.store.root().Readlink(sessionsDir + "/" + latestLink); err == nil && hint == s.id.String() {
		return
	}
	lock, err := s.store.lock(ctx)
	if err != nil {
		s.log.Warn().Err(err).Msg("the hint to the latest session could not be written")
		return
	}
	s.store.setLatest(s.id)
	_ = lock.Unlock()
}

// ofActor returns the options of the actor of a session that begins with initial. A session
// that was found crashed stays crashed if nothing was saved since, because opening it for a
// moment does not resume it.
func (o *Options) ofActor(initial *session.State) actors.Options {
	return actors.Options{Logger: o.Logger, Autosave: o.Policy.Autosave, AtClose: func(st *session.State) *session.State {
		if st.Status() != session.StatusActive || st == initial && st.Header().ExitReason != "" || o.holds(st) {
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

// HolderOf returns the record of a process of this machine, for which sessions are held: see
// [Options]. Command is its name.
func HolderOf(pid int, command string) *session.Holder {
	h := session.Holder(writer.OwnerOf(pid, command))
	return &h
}

// holds reports whether a session is held for the process that this one works for.
func (o *Options) holds(st *session.State) bool {
	h := st.Header().Holder
	return h != nil && o.For != nil && h.PID == o.For.PID && h.Start == o.For.Start && h.Boot == o.For.Boot && h.Host == o.For.Host
}

// crashed returns the State with the exit reason "crashed". UpdatedAt stays the time of the
// last holder.
func crashed(st *session.State) (*session.State, error) {
	e := st.Edit()
	e.Header().ExitReason = session.ExitCrashed
	return e.State()
}

// path returns the path of a file in the session's folder, below .lopen.
func (s *Session) path(file string) string { return sessionsDir + "/" + s.id.String() + "/" + file }

// Change edits the newest State and saves the result with a trigger, without waiting. It is
// Update and Save in one. fn may be called more than once when another goroutine changes the
// State meanwhile.
func (s *Session) Change(t session.Trigger, fn func(*session.Edit) error) error {
	if fn == nil {
		return absent("change session", s.id.String(), "function")
	}
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
	if ctx == nil {
		return absent("change session", s.id.String(), "context")
	}
	if err := s.Change(t, func(e *session.Edit) error {
		set(e.Header())
		return nil
	}); err != nil {
		return err
	}
	return s.Flush(ctx)
}

// PauseRequested reports whether another process asked this session to pause.
func (s *Session) PauseRequested() bool {
	_, err := s.store.root().Lstat(s.path(pauseFile))
	return err == nil
}

// RequestPause pauses a session. If the session is not held, it is paused at once and asked
// is false. If it is held, its holder is asked; a loop looks for the request between two
// tasks.
func (s *Store) RequestPause(ctx context.Context, id session.ID) (asked bool, err error) {
	sess, err := s.openIn(ctx, id)
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

// request creates a file that the holder of a session looks for, and returns its path below
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
	// wakePatience is how long RequestWake waits for the holder's answer.
	wakePatience = 3 * time.Second
	wakePoll     = 20 * time.Millisecond
)

// WakeRequested reports whether another process asked this session to end its wait. The call
// itself answers the request, so it is true once for each request, and must be called only
// while waiting.
func (s *Session) WakeRequested() bool { return s.store.root().Remove(s.path(wakeFile)) == nil }

// RequestWake asks the holder of a session to end its wait. woken is true if the holder does.
// It is false if the session is not held or its holder does not wait. Unless a task is in
// progress, that takes three seconds to find out.
func (s *Store) RequestWake(ctx context.Context, id session.ID) (woken bool, err error) {
	if ctx == nil {
		return false, absent("end the wait of session", id.String(), "context")
	}
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
		case <-ctx.Done(): // if the request is gone by now, the holder answered at the last moment
			return errors.Is(s.root().Remove(name), fs.ErrNotExist), nil
		}
	}
}

// HoldChild takes the lock that the next command inherits. It returns nil in an unsaved
// store, where no later holder looks for the command.
func (s *Session) HoldChild() (*process.Lock, error) {
	if !s.store.saves() {
		return nil, nil
	}
	return process.Hold(s.store.root(), s.path(childFile))
}

// ChildHeld reports whether the lock that the last command inherited is still held: by the
// command, or by a process that it left behind. The caller must not start a command meanwhile.
func (s *Session) ChildHeld() (bool, error) {
	o, err := process.FindOrphan(s.store.root(), s.path(childFile))
	return o != nil || err != nil, err
}

// CommandEnded returns how the command of the last attempt ended, or nil if that is not known
// or the State already has the outcome of that attempt. The caller holds the session, and the
// command's lock is free.
func (s *Session) CommandEnded() (*process.Ended, error) {
	e, err := process.ReadEnded(s.store.root(), s.path(childFile))
	if err != nil || e == nil || e.Iteration != s.State().NumIterations()+1 {
		return nil, err
	}
	return e, nil
}

// Inside returns the path of the store, and the ID of the session, whose run started this process, as
// a part of its command; "" if none did. It looks for the command's lock in this process and above it,
// whatever the environment says. See [process.Above] for what is not found.
func Inside() (store, session string) {
	for _, held := range process.Above(childFile) {
		dir := filepath.Dir(held.Path) // {store}/sessions/{id}
		if !runs(dir, held.PID) {
			return filepath.Dir(filepath.Dir(dir)), filepath.Base(dir)
		}
	}
	return "", ""
}

// runs reports whether a process is the run of the session in a folder: what it starts besides its command
// is the person's.
func runs(dir string, pid int) bool {
	root, err := writer.OpenFS(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	owner, held, err := writer.Holder(root, leaseFile)
	return err == nil && held && owner.PID == pid
}

// leaveSessions does for every open session what its own Close would do beyond its writer's end.
func (s *Store) leaveSessions(ctx context.Context) error {
	var sessions []*Session
	s.unclosed.Range(func(sess, _ any) bool {
		sessions = append(sessions, sess.(*Session)) //nolint:forcetypeassert // nothing else is there
		return true
	})
	errs := make([]error, len(sessions))
	var group sync.WaitGroup
	for i, sess := range sessions {
		group.Go(func() { errs[i] = sess.leave(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}
