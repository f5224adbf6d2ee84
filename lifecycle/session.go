package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A Session is a session that this process holds for writing. Save, Update,
// State, Critical, Paused and Change never wait for the disk. All methods may be called
// from any goroutine.
//
// The actor is not part of what a caller sees: it takes entries as they are, and what
// has not passed Append, AppendEvent and Record is neither redacted nor checked.
type Session struct {
	actor  *actors.Actor
	store  *Store
	id     session.ID
	log    zerolog.Logger
	redact *redact.Redactor
	mark   *atomic.Pointer[session.Mark] // of the last durable record
	kept   kept
	told   atomic.Bool // what was last found of the files is on record, with a checkpoint
}

// Open takes the lease of a session, loads it, and goes on with its journal in a
// new epoch: what this process read is durable when Open returns. ErrNotFound, a
// [*BusyError] that names the holder, ErrCorrupt and ErrFutureVersion say why it
// cannot be. A damaged session is moved to corrupted/ with its reason; one that
// was only edited outside stays where it is: a [*DamagedError] says where each is now.
//
// A session that its files call active comes back with the exit reason "crashed": its
// last holder died. A loop that resumes a session sets the status to active again, so
// that its own death is seen as well.
func (s *Store) Open(id session.ID) (*Session, error) {
	c, err := s.committer(id, session.EventResumed)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	var st *session.State
	ld, err := c.acquire()
	if err == nil {
		if st = ld.state; st.Status() == session.StatusActive {
			st, err = crashed(st)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open session %s: %w", id, err), c.Close())
	}
	event, epoch := c.event, c.journal.Epoch() // the committer is the actor's from now on
	sess, err := s.start(st, c)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", id, err)
	}
	sess.log.Info().Str("event", string(event)).Uint64("seq", sess.mark.Load().Seq).Uint64("epoch", epoch).
		Str("last_exit", string(st.Header().ExitReason)).Msg("session opened")
	if err := sess.goOn(); err != nil {
		return nil, errors.Join(fmt.Errorf("open session %s: %w", id, err), sess.Close(context.Background()))
	}
	return sess, nil
}

// committer is that of a session which is there.
func (s *Store) committer(id session.ID, event session.Event) (*committer, error) {
	dir, err := s.sessionDir(id)
	return &committer{store: s, id: id, mark: &atomic.Pointer[session.Mark]{}, dir: dir, lease: sessionsDir + "/" + id.String() + "/" + leaseFile, event: event}, err
}

// acquire takes the lease and loads the session. A readable file that is damaged is set
// aside and made again.
func (c *committer) acquire() (*loaded, error) {
	var err error
	if c.lock, err = c.store.lease(sessionsDir, c.id); err != nil {
		return nil, err
	}
	ld, err := c.store.joinHeld(c.dir, c.id, c.lock, c.edited)
	if err != nil {
		return nil, err // what a newer version wrote, or somebody edited, stays as it is
	}
	for _, request := range []string{pauseFile, wakeFile} {
		if err := c.dir.Remove(request); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, writer.NewError("remove", filepath.Join(c.dir.Name(), request), writer.NotCommitted, err)
		}
	}
	for _, dir := range []string{".", history.Dir} {
		if err := writer.RemoveTemps(c.dir, dir, func(of string) bool { return of != metaFile }); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	c.tell(ld)
	if c.discard {
		ld.spoilt, ld.state = append(ld.spoilt, ld.edits...), ld.unedited
	}
	for _, x := range ld.spoilt {
		if err := c.asideFile(x.name, x.err); err != nil {
			return nil, err
		}
	}
	// The last holder may have died between a rename and its sync: what was read is
	// durable when Open has synced the folder.
	if c.journal, err = journal.Open(c.dir, c.id.String(), ld.log); err != nil {
		return nil, err
	}
	c.base, c.at = cmp.Or(ld.unedited, ld.state), ld.at
	c.whole = ld.base.at.Seq > 0 && ld.log.LostAbove(0) > 0 // the log leads to the State no more: it is to begin anew
	c.pub.state = shown{seq: ld.named[0].Seq, named: ld.named[0]}
	c.pub.metrics = shown{seq: ld.named[1].Seq, named: ld.named[1]}
	c.pub.looked(c.dir)
	c.store.keepBallast()
	if len(ld.spoilt) > 0 {
		_ = c.publish() // it is tried again
	}
	return ld, nil
}

// tell logs what is not as it should be and does not keep the session from being
// opened.
func (c *committer) tell(ld *loaded) {
	log := c.store.Logger(c.id)
	for _, f := range ld.log.Faults {
		switch {
		case f.Seq == 0:
			log.Warn().Stringer("fault", f).Msg("part of the journal is damaged, and nothing is lost by it")
		case f.Kind != journal.Settled:
			log.Warn().Stringer("fault", f).Msg("part of the journal is not applied; it stays in its file")
		}
	}
	for _, f := range ld.findings() {
		level := zerolog.WarnLevel
		if f.Rule.Severity == session.SeverityWarning { // of the plan, say, which is told where it is read
			level = zerolog.InfoLevel
		}
		log.WithLevel(level).Stringer("rule", f).Str("repair", f.Rule.Repair).Msg("a rule is broken")
	}
}

// start hands the files to an actor. On an error the files are closed.
func (s *Store) start(st *session.State, c *committer) (*Session, error) {
	at := c.at
	c.mark.Store(&at)
	return s.run(st, c, c.mark)
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

// goOn finishes what the last holder had begun: a rewind, and tool calls without an
// answer.
func (s *Session) goOn() error {
	at := s.mark.Load()
	if at.Rewinding != nil {
		s.kept.mu.Lock()
		defer s.kept.mu.Unlock()
		if err := s.openCheckpoints(); err != nil {
			return err
		}
		log := s.log.With().Str("checkpoint", at.Rewinding.To).Logger()
		done, err := s.finishRewind(context.Background(), at.Rewinding)
		switch {
		case errors.Is(err, ErrCorrupt), errors.Is(err, ErrNotFound), errors.Is(err, checkpoint.ErrNotFound):
			actors.Cause(log.Warn(), err).Msg("rewind given up: it was cut off and cannot be finished; some files may be as they were before it")
			if err := s.append(rewindGivenUp(at.Rewinding, at.Rewinding.Before)); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("finish the rewind to checkpoint %s that was begun: %w; %s", short(at.Rewinding.To), err, howToFinish(at.Rewinding))
		default:
			for _, k := range done.Kept {
				if k.Why == checkpoint.Denied {
					log.Warn().Str("path", k.Path).Msg("the rewind left a path as it is: the system does not allow the change")
				}
			}
			log.Info().Int("changed", len(done.Changes)).Int("kept", len(done.Kept)).Int("tasks", len(done.Tasks)).Msg("rewind ends: it was cut off and is finished")
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
// session; a caller that wants more fields derives one of its own.
func (s *Session) Logger() *zerolog.Logger { return &s.log }

// State returns the newest accepted State, without a lock. It may not be durable yet.
func (s *Session) State() *session.State { return s.actor.State() }

// Save accepts st, or with nil the newest State, to be committed. It never waits. nil
// means accepted, not durable: this State or a newer one is committed. While the
// session is paused the State is kept all the same and a [*PausedError] is returned.
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
// ctx's error when that ends first; the commit goes on then.
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

// Redact is text as the session would keep it: with its credentials hidden.
func (s *Session) Redact(text string) string {
	out, _ := s.redact.String(text)
	return out
}

// RedactArgs is argv as the session would keep it: see [redact.Redactor.Args].
func (s *Session) RedactArgs(argv []string) []string {
	out, _ := s.redact.Args(argv)
	return out
}

// Close commits what was accepted, publishes it and lets go of the session. It is
// idempotent: every call waits for the same end and returns the same error. When ctx
// ends first the error says what is not durable; the writer goes on and keeps the
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

// path is that of a file beside the state, below the store's root.
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
	var paused *PausedError
	if err != nil && !errors.As(err, &paused) {
		return err
	}
	return s.Save(nil, t) // a paused session keeps the State and counts the trigger
}

// Complete marks the session as done and waits until that is durable.
func (s *Session) Complete(ctx context.Context) error {
	err := s.Change(session.TriggerPhaseChanged, func(e *session.Edit) error {
		h := e.Header()
		h.Phase, h.Status, h.ExitReason = session.PhaseComplete, session.StatusComplete, session.ExitComplete
		h.ActiveTask, h.CompletedAt = "", s.store.opts.Now()
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	s.log.Info().Msg("session complete")
	return nil
}

// Pause marks the session as paused for a reason and waits until that is durable.
func (s *Session) Pause(ctx context.Context, t session.Trigger, why session.ExitReason) error {
	err := s.Change(t, func(e *session.Edit) error {
		h := e.Header()
		h.Status, h.ExitReason = session.StatusPaused, why
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.Flush(ctx); err != nil {
		return err
	}
	s.log.Info().Str("reason", string(why)).Msg("session paused")
	return nil
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
