//go:build unix

package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

// breaks leaves a file that the check does not pass with, where task one is worked on.
const breaks = "test $LOPEN_TASK_ID != one || { test -e bad && touch again; echo $LOPEN_ATTEMPT >>bad; exit 1; }"

// refuses is a session on which a call of SetBack or Checkpoint fails.
type refuses struct {
	*lifecycle.Session
	setBack, checkpoint error
}

func (s *refuses) SetBack(ctx context.Context, task string) (rewind.Result, string, error) {
	if s.setBack != nil {
		return rewind.Result{}, "", s.setBack
	}
	return s.Session.SetBack(ctx, task)
}

func (s *refuses) Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error) {
	if s.checkpoint != nil && why == checkpoint.AfterTask && task == "one" {
		return nil, nil, s.checkpoint
	}
	return s.Session.Checkpoint(ctx, why, task)
}

func exists(cfg Config, name string) bool {
	_, err := os.Lstat(filepath.Join(cfg.Project, name))
	return err == nil
}

// A kill after the task was marked as failed and before its files were set back loses
// nothing: the next run tries again on the files as they are, and goes back to before all of
// its attempts.
func TestKilledBeforeTheFilesAreSetBack(t *testing.T) {
	t.Parallel()
	cfg, sess, ui := bed(t, breaks, "! test -e bad")
	killed := errors.New("killed")
	cfg.Session = &refuses{Session: sess, setBack: killed}
	require.ErrorIs(t, Run(t.Context(), cfg), killed)
	one, _ := sess.State().Task("one")
	require.Equal(t, session.TaskFailed, one.State)
	require.True(t, exists(cfg, "bad"))

	cfg.Session = sess
	var exit *Exit
	require.ErrorAs(t, Run(t.Context(), cfg), &exit)
	require.True(t, ui.has("failed last time, tries again: one"))
	require.True(t, ui.has("set back to before one: again, bad"), "%s", ui.lines)
	require.False(t, exists(cfg, "bad"))
	require.False(t, exists(cfg, "again"))
	require.Equal(t, 1, sess.State().Progress().Done, "two")
}

// The result of a check is void once the files that it judged are set back.
func TestSetBackForgetsTheCheck(t *testing.T) {
	t.Parallel()
	for _, check := range []string{"! test -e bad", "test -e bad && exit 1; test $LOPEN_TASK_ID = two"} { // green and red to begin with
		cfg, sess, ui := bed(t, "test $LOPEN_TASK_ID = two || touch bad", check)
		cfg.MaxIterations = 1
		var exit *Exit
		require.ErrorAs(t, Run(t.Context(), cfg), &exit)
		require.True(t, ui.has("set back to before one: bad"), "%s", ui.lines)
		c := sess.State().Header().Check
		require.True(t, c == nil || c.Exit == 0, "%v", c)
	}
}

// If the files cannot be set back, the run says why, records it and continues.
func TestNotSetBack(t *testing.T) {
	t.Parallel()
	busy := &lifecycle.BusyError{Path: "blobs/.lock"}
	for want, s := range map[string]refuses{
		"no file was changed: held":                         {setBack: fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, busy)},
		"a checkpoint before or after it could not be made": {checkpoint: busy},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			cfg, sess, ui := bed(t, breaks, "test $LOPEN_TASK_ID = two")
			s.Session = sess
			cfg.Session = &s
			var exit *Exit
			require.ErrorAs(t, Run(t.Context(), cfg), &exit)
			require.True(t, ui.has("the files stay as one left them: "+want), "%s", ui.lines)
			require.True(t, exists(cfg, "bad"))
			require.Equal(t, 1, sess.State().Progress().Done, "two")
			var recorded []string
			require.NoError(t, cfg.Store.(*lifecycle.Store).Log(sess.ID(), 0, func(r record.Record) error {
				for _, op := range r.Ops {
					if op.Name == record.OpNotSetBack {
						recorded = append(recorded, op.Task+": "+op.To)
					}
				}
				return nil
			}))
			require.Len(t, recorded, 1)
			require.Contains(t, recorded[0], "one: "+want)
		})
	}
}
