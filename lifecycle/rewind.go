package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/actors"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/commit"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer"
)

// Rewind brings the project's files, the State, or both back to a checkpoint. It first makes
// a checkpoint, to which Undo returns. It brings back only files that this session's own
// tasks changed since, and reports the others, which stay. The begin of the rewind is
// recorded before the first file is changed, and its end together with the State after the
// last, so that the next Open finishes a rewind that was interrupted. The boxes of the plan
// follow the State.
func (s *Session) Rewind(ctx context.Context, to checkpoint.ID, opts rewind.Options) (rewind.Result, error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	done, err := s.rewind(ctx, to, opts)
	if err != nil {
		return done, rewind.Failed(s.id, to, err)
	}
	return done, nil
}

// Undo takes back the last rewind: files and State become what they were before it, except
// for what was changed since. An Undo can be undone as well. The error wraps ErrNotFound if
// there was no rewind.
func (s *Session) Undo(ctx context.Context, opts rewind.Options) (rewind.Result, error) {
	id, err := rewind.Undo(s.id, s.mark.Load().Mark)
	if err != nil {
		return rewind.Result{}, err
	}
	return s.Rewind(ctx, id, opts)
}

func (s *Session) rewind(ctx context.Context, to checkpoint.ID, opts rewind.Options) (rewind.Result, error) {
	if err := s.openCheckpoints(); err != nil {
		return rewind.Result{}, err
	}
	p := s.planner()
	r, would, err := p.Preview(ctx, to, opts)
	if err != nil || opts.DryRun || would.Nothing() {
		return would, err // an empty rewind must not replace the checkpoint that Undo returns to
	}
	return s.runRewind(ctx, p, r, would)
}

// PlanRewind returns what [Session.Rewind] would do or, if to is zero, [Session.Undo]. It
// takes no lock and changes nothing, and the session may be held.
func (s *Store) PlanRewind(ctx context.Context, id session.ID, to checkpoint.ID, opts rewind.Options) (rewind.Result, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return rewind.Result{}, err
	}
	defer ld.Dir.Close()
	if to.IsZero() {
		if to, err = rewind.Undo(id, ld.At); err != nil {
			return rewind.Result{}, err
		}
	}
	cps, err := s.Checkpoints(ld.State.Header().Worktree)
	if err != nil {
		return rewind.Result{}, err
	}
	defer cps.Close()
	if cps.Gone != nil {
		return rewind.Result{}, cps.Gone
	}
	var last *checkpoint.Entry
	if name := ld.At.Checkpoint; name != "" {
		if last, err = cps.Lookup(name); err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			return rewind.Result{}, err
		}
	}
	p := s.planner(id, func() *session.State { return ld.State }, ld.At, cps, last)
	_, would, err := p.Preview(ctx, to, opts)
	if err != nil {
		return would, rewind.Failed(id, to, err)
	}
	return would, nil
}

// SetBack brings the files that a failed task changed back to what they were before its first
// attempt; see [rewind.Planner.SetBack]. It is a [Session.Rewind] of the files with three
// differences. Undo still returns to the checkpoint that it returned to before. The tree as
// the task left it stays until the session is pruned (see [Store.FailedTrees]). And there may
// be a reason to leave all files as they are: then why is not "". If the task changed nothing,
// Result.Before is not set.
//
// After an error that wraps [checkpoint.ErrUnchanged] the files are unchanged. After any other
// error the rewind has begun: the next Open finishes it, and a second SetBack is refused.
func (s *Session) SetBack(ctx context.Context, task string) (done rewind.Result, why string, err error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	done, why, err = s.setBack(ctx, task)
	if err != nil && s.mark.Load().Rewinding == nil && !errors.Is(err, checkpoint.ErrUnchanged) {
		err = fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, err)
	}
	if err != nil {
		err = fmt.Errorf("set back the files of %s: %w", task, err)
	}
	return done, why, err
}

func (s *Session) setBack(ctx context.Context, task string) (rewind.Result, string, error) {
	if r := s.mark.Load().Rewinding; r != nil {
		return rewind.Result{}, "", errors.New(rewind.HowToFinish(s.id, r))
	}
	if err := s.openCheckpoints(); err != nil {
		return rewind.Result{}, "", err
	}
	p := s.planner()
	r, would, why, err := p.SetBack(ctx, task)
	if err != nil || why != "" || len(would.Changes) == 0 {
		return would, why, err
	}
	done, err := s.runRewind(ctx, p, r, would)
	return done, "", err
}

// Patch returns what a task has changed so far: see [rewind.Planner.Patch]. It does not
// affect what the next Look or Checkpoint returns.
func (s *Session) Patch(ctx context.Context, task string, limit int) ([]byte, error) {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	err := s.recall()
	var text []byte
	if err == nil {
		text, err = s.planner().Patch(ctx, task, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("patch of %s: %w", task, err)
	}
	return text, nil
}

// maxReason bounds a recorded reason, in bytes.
const maxReason = 1 << 10

// NotSetBack records why the files of a failed task were not set back. The text is redacted
// and cut at 1 KiB.
func (s *Session) NotSetBack(task, why string) error {
	why = s.Redact(why)
	why = strings.ToValidUTF8(why[:min(len(why), maxReason)], "")
	return s.append(actors.Entry{Ops: []record.Op{{Name: record.OpNotSetBack, Task: task, To: why}}})
}

// FailedTrees returns the numbers of the entries that have the tree of a failed task whose
// files were set back. They stay, regardless of the limit, until their session is pruned or
// deleted: as long as its folder is in sessions/.
func (s *Store) FailedTrees(all []*checkpoint.Entry) (map[uint64]bool, error) {
	folders, err := s.folders(sessionsDir)
	if err != nil {
		return nil, err
	}
	return rewind.FailedTrees(all, func(session string) bool {
		return slices.ContainsFunc(folders, func(f sessionFolder) bool { return f.name == session })
	}), nil
}

// planner returns the planner of rewinds of a session with this newest State, mark of the
// last record, and last checkpoint.
func (s *Store) planner(id session.ID, newest func() *session.State, at session.Mark, cps *Checkpoints, last *checkpoint.Entry) *rewind.Planner {
	p := &rewind.Planner{ID: id, State: newest, Mark: at, Last: last,
		Meta:      func(ctx context.Context) checkpoint.Meta { return s.meta(ctx, id, newest(), at, last) },
		Permitted: s.opts.Policy.RewindPermitted, Now: s.opts.Now, Sessions: otherSessions{s}, Plans: s}
	if cps != nil {
		p.Chain = cps.Store
	}
	return p
}

// planner returns the planner of rewinds of the session. It has no chain unless
// openCheckpoints has opened one. The caller holds mu.
func (s *Session) planner() *rewind.Planner {
	return s.store.planner(s.id, s.State, s.mark.Load().Mark, s.files.store, s.files.last)
}

// otherSessions reads sessions for a [rewind.Planner].
type otherSessions struct{ *Store }

func (s otherSessions) WholeIncarnation(id session.ID) (string, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return "", err
	}
	_ = ld.Dir.Close() // nothing was written through it
	return ld.At.Incarnation, nil
}

// runRewind executes a planned rewind. The caller holds mu.
func (s *Session) runRewind(ctx context.Context, p *rewind.Planner, r *session.Rewinding, would rewind.Result) (rewind.Result, error) {
	run := &rewindRun{Session: s}
	done, err := p.Run(ctx, run, r, would)
	switch {
	case run.begun.IsZero(): // it did not begin: the caller gets the error, nothing is logged
	case err != nil:
		actors.Cause(s.log.Warn(), err).Str("checkpoint", r.To).Dur("duration_ms", time.Since(run.begun)).Msg("rewind failed")
	default:
		s.log.Info().Str("checkpoint", r.To).Int("changed", len(done.Changes)).Int("kept", len(done.Retained)).Int("tasks", len(done.Tasks)).
			Dur("duration_ms", time.Since(run.begun)).Msg("rewind ends")
		s.thin(ctx)
	}
	return done, err
}

// finishRewind finishes the rewind that the last holder had begun, or takes it back. It gives up
// a rewind whose checkpoints are damaged or gone.
func (s *Session) finishRewind(r *session.Rewinding) error {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if err := s.openCheckpoints(); err != nil {
		return err
	}
	log := s.log.With().Str("checkpoint", r.To).Logger()
	done, err := s.planner().Finish(context.Background(), &rewindRun{Session: s}, r)
	var taken *rewind.TakenBackError
	switch {
	case errors.As(err, &taken):
		actors.Cause(log.Warn(), err).Msg("rewind taken back: it was cut off and could not be finished")
		return nil
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrNotFound), errors.Is(err, checkpoint.ErrNotFound):
		actors.Cause(log.Warn(), err).Msg("rewind given up: it was cut off and cannot be finished; some files may be as they were before it")
		return s.append(commit.RewindGivenUp(r, r.Before, nil))
	case err != nil:
		return fmt.Errorf("finish the rewind to checkpoint %s that was begun: %w; %s", shortID(r.To), err, rewind.HowToFinish(s.id, s.mark.Load().Rewinding))
	}
	for _, k := range done.Retained {
		switch k.Why {
		case checkpoint.Denied:
			log.Warn().Str("path", k.Path).Msg("the rewind left a path as it is: the system does not allow the change")
		case checkpoint.Mounted:
			log.Warn().Str("path", k.Path).Msg("the rewind left a path as it is: " + string(k.Why))
		case checkpoint.InUse, checkpoint.Together:
			log.Warn().Str("path", k.Path).Str("by", s.Redact(k.By)).Msg("the rewind left a path as it is: " + string(k.Why))
		}
	}
	log.Info().Int("changed", len(done.Changes)).Int("kept", len(done.Retained)).Int("tasks", len(done.Tasks)).Msg("rewind ends: it was cut off and is finished")
	s.finished = &done
	return nil
}

// Finished returns what the rewind did that was cut off and that Open has finished, nil if there was
// none. Whoever asks for that rewind again has it: what was changed by somebody else meanwhile stays.
func (s *Session) Finished() *rewind.Result { return s.finished }

// GiveUpRewind ends a rewind that was begun and not finished, and changes no file. It works as
// long as the session's log can be written, whatever became of files and checkpoints. Undo then
// returns to what the files were before the rewind, if it has changed any. The error wraps
// ErrNotFound if there is no such rewind.
func (s *Store) GiveUpRewind(ctx context.Context, id session.ID) (up rewind.GivenUp, err error) {
	if ctx == nil {
		return up, absent("give a rewind up", id.String(), "context")
	}
	sess, err := s.open(id, func(sess *Session) error {
		r := sess.mark.Load().Rewinding
		if r == nil {
			return fmt.Errorf("no rewind is unfinished: %w", ErrNotFound)
		}
		sess.files.mu.Lock()
		defer sess.files.mu.Unlock()
		if err := sess.openCheckpoints(); err != nil {
			actors.Cause(sess.log.Warn(), err).Msg("which files the rewind has changed is not known")
		}
		if up, err = sess.planner().GiveUp(ctx, &rewindRun{Session: sess}, r); err != nil {
			return err
		}
		sess.log.Warn().Str("checkpoint", r.To).Int("changed", len(up.Changed)).Int("unchanged", len(up.Left)).Msg("rewind given up")
		return nil
	})
	if err != nil {
		return up, err
	}
	return up, sess.Close(ctx)
}

// UnfinishedRewinds returns the rewinds that were begun and not finished, of sessions that nobody holds.
// It reads the logs of those sessions only whose newest checkpoint is one of a rewind.
func (s *Store) UnfinishedRewinds() (map[session.ID]*session.Rewinding, error) {
	newest, err := s.newestReasons()
	if err != nil {
		return nil, err
	}
	unfinished := map[session.ID]*session.Rewinding{}
	for name, reason := range newest {
		id, err := session.ParseID(name)
		if err != nil || reason != checkpoint.BeforeRewind && reason != checkpoint.AfterRewind {
			continue
		}
		if ld, _ := s.read(id); ld != nil {
			if r := ld.At.Rewinding; r != nil {
				if owner, _ := s.Holder(id); owner == nil {
					unfinished[id] = r
				}
			}
			_ = ld.Dir.Close()
		}
	}
	return unfinished, nil
}

// newestReasons returns why each session's newest checkpoint was made. It needs no content.
func (s *Store) newestReasons() (map[string]checkpoint.Reason, error) {
	dir, err := writer.OpenDir(s.root(), checkpointsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := checkpoint.Chains(dir)
	if err != nil {
		return nil, err
	}
	newest := map[string]checkpoint.Reason{}
	for _, name := range names {
		chain := checkpoint.New(dir, name, nil, s.project, checkpoint.Options{})
		if chain.Imported() {
			continue
		}
		all, _, err := chain.List()
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			newest[e.Session] = e.Reason
		}
	}
	return newest, nil
}

// shortID returns the ID of a checkpoint as messages show it.
func shortID(id string) string { return id[:min(len(id), 8)] }

// rewindRun is the [rewind.Session] of one rewind. Its caller holds mu.
type rewindRun struct {
	*Session
	begun time.Time // when the begin was recorded; zero before that
}

func (s *rewindRun) Before(ctx context.Context, r *session.Rewinding, target *checkpoint.Entry) (*checkpoint.Entry, error) {
	return s.checkpoint(ctx, checkpoint.Meta{Reason: checkpoint.BeforeRewind, Task: r.Task, Target: target.Number})
}

func (s *rewindRun) Begin(ctx context.Context, r *session.Rewinding) error {
	begun, undo := time.Now(), s.mark.Load().Undo
	if err := s.note(ctx, actors.Entry{Rewind: r}); err != nil {
		return err
	}
	s.begun = begun
	s.log.Info().Str("checkpoint", r.To).Str("before", r.Before).Str("task", r.Task).Bool("undo", undo == r.To).
		Bool("files", r.Files).Bool("state", r.State).Bool("force", r.Force).Bool("contested", r.Contested).Int("paths", len(r.Paths)).Msg("rewind begins")
	return nil
}

func (s *rewindRun) Back(ctx context.Context, r *session.Rewinding) error {
	s.log.Warn().Str("checkpoint", r.To).Str("before", r.Before).Str("task", r.Task).Msg("rewind met an error and is taken back")
	return s.note(ctx, actors.Entry{Rewind: r})
}

func (s *rewindRun) After(ctx context.Context, r *session.Rewinding, target, before *checkpoint.Entry) (*checkpoint.Entry, error) {
	k := &s.files
	k.last = before // so that it becomes the parent of the next checkpoint
	after, err := s.checkpoint(ctx, checkpoint.Meta{Reason: checkpoint.AfterRewind, Task: r.Task, Target: target.Number})
	if err != nil {
		return nil, err
	}
	k.last = after
	k.tree, k.seen, k.saved = k.store.Tree(after.Root), k.store.Seen(), k.store.Seen()
	return after, nil
}

func (s *rewindRun) End(ctx context.Context, r *session.Rewinding, st *session.State, changes []checkpoint.Change, kept []checkpoint.Retained) error {
	if st != nil { // Update only accepts it; the commit of the end makes it durable
		if err := s.Update(func(*session.State) (*session.State, error) { return st, nil }); err != nil {
			return err
		}
	}
	if err := s.append(commit.RewindEnded(r, changes, s.redacted(kept))); err != nil {
		return err
	}
	return s.Flush(ctx)
}

func (s *rewindRun) GiveUp(ctx context.Context, r *session.Rewinding, undo string, kept []checkpoint.Retained) error {
	return s.note(ctx, commit.RewindGivenUp(r, undo, s.redacted(kept)))
}

// redacted returns paths that were kept, with those who hold them redacted.
func (s *Session) redacted(kept []checkpoint.Retained) []checkpoint.Retained {
	kept = slices.Clone(kept)
	for i := range kept {
		kept[i].By = s.Redact(kept[i].By)
	}
	return kept
}

// note makes an entry durable.
func (s *Session) note(ctx context.Context, e actors.Entry) error {
	if err := s.append(e); err != nil {
		return err
	}
	return s.Sync(ctx)
}

// CheckpointLine returns the checkpoints on a session's line: its own, and those of the session
// that it was forked or recovered from, up to that point. They may be in another chain, of
// another work tree or imported.
func (s *Store) CheckpointLine(cps *Checkpoints, id session.ID) (map[checkpoint.ID]bool, error) {
	ld, err := s.readWhole(id)
	if err != nil {
		return nil, err
	}
	if err := ld.Dir.Close(); err != nil {
		return nil, err
	}
	line := map[checkpoint.ID]bool{}
	if err := addLine(line, cps.Store, func(e *checkpoint.Entry) bool { return e.ID.String() == ld.At.Checkpoint }); err != nil {
		return nil, err
	}
	others, err := cps.Others()
	if err != nil {
		return nil, err
	}
	for _, c := range others {
		if err := addLine(line, c, func(e *checkpoint.Entry) bool { return ofSession(e, ld.At) }); err != nil {
			return nil, err
		}
	}
	return line, nil
}

// ofSession reports whether a checkpoint in another chain is one of a session with this Mark. The
// session may have another ID here than where it made the checkpoint.
func ofSession(e *checkpoint.Entry, at session.Mark) bool {
	return e.Incarnation != "" && e.Incarnation == at.Incarnation || e.ID.String() == at.Checkpoint
}

// addLine adds the line that ends with the newest entry of a chain for which ends is true.
func addLine(line map[checkpoint.ID]bool, chain *checkpoint.Store, ends func(*checkpoint.Entry) bool) error {
	all, _, err := chain.List()
	if err != nil {
		return err
	}
	var numbers map[uint64]bool
	for _, e := range slices.Backward(all) {
		if numbers == nil && ends(e) {
			if numbers, err = chain.Line(e.Number); err != nil {
				return err
			}
		}
		if numbers[e.Number] {
			line[e.ID] = true
		}
	}
	return nil
}
