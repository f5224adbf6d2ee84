package turns

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/agents"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// ending returns how the turn in progress ended, as the agent's transcript says it, or nil.
func (k *Keeper) ending() *agents.Ending {
	h := k.Sess.State().Header()
	task, ok := k.Sess.State().Task(h.ActiveTask)
	path := Transcript(&h)
	if !ok || path == "" {
		return nil
	}
	e, err := agents.EndOfTurn(k.Agent, path, task.StartedAt)
	if err != nil {
		k.Sess.Logger().Info().Err(err).Msg("the transcript does not say how the turn ended")
		return nil
	}
	return e
}

// Settle ends the turn in progress if the agent's transcript says that it has ended: no hook tells of each
// end.
func (k *Keeper) Settle(ctx context.Context) error {
	if e := k.ending(); e != nil {
		return k.settle(ctx, e)
	}
	return nil
}

// Leave ends the turn in progress, if there is one, of an agent that has ended itself.
func (k *Keeper) Leave(ctx context.Context) error {
	if e := k.ending(); e != nil {
		return k.settle(ctx, e)
	}
	return k.End(ctx, record.Interrupted, "", nil)
}

// settle ends the turn in progress as e says. Where that is nil, or the files were changed after the end, nobody
// knows who changed what: there is no checkpoint after the turn, and its changes count as contested.
func (k *Keeper) settle(ctx context.Context, e *agents.Ending) error {
	changes, err := k.Sess.Look(ctx)
	if err != nil {
		return err
	}
	if e == nil {
		return k.finish(record.Interrupted, "", changes, nil)
	}
	then := record.Done
	switch {
	case e.Stopped:
		then = record.Interrupted
	case e.Failure != "":
		then = record.Failed
	}
	if !k.later(changes, e.At) {
		if _, err := k.keep(ctx, checkpoint.AfterTask, k.InProgress()); err != nil {
			return err
		}
	}
	return k.finish(then, e.Failure, changes, nil)
}

// slack is how much after the end of a turn what it did may still reach the disk.
const slack = time.Second

// later reports whether some of the changes were made after a time. When a file was removed its folder
// tells, or the one above if that is gone.
func (k *Keeper) later(changes []files.Change, than time.Time) bool {
	than = than.Add(slack)
	return slices.ContainsFunc(changes, func(c files.Change) bool {
		if c.New != nil {
			return max(c.New.ModTime, c.New.ChangeTime) > than.UnixNano()
		}
		for dir := filepath.Dir(filepath.Join(k.Root, filepath.FromSlash(c.Path))); ; dir = filepath.Dir(dir) {
			if info, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
				return err != nil || info.ModTime().After(than)
			}
		}
	})
}
