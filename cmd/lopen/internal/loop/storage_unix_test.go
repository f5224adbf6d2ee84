//go:build unix

package loop

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
)

// short is a session on which the first calls of one kind fail with a storage error.
type short struct {
	*lifecycle.Session
	call  string
	errno syscall.Errno
	left  int
}

func (s *short) fails(call string) error {
	if call != s.call || s.left == 0 {
		return nil
	}
	s.left--
	return &lifecycle.Error{Op: call, Path: "/x", Class: lifecycle.ClassOf(s.errno), Err: s.errno}
}

func (s *short) Sync(ctx context.Context) error {
	if err := s.fails("sync"); err != nil {
		return err
	}
	return s.Session.Sync(ctx)
}

func (s *short) Unpause(ctx context.Context) error {
	if err := s.fails("sync"); err != nil {
		return err
	}
	return s.Session.Unpause(ctx)
}

func (s *short) Checkpoint(ctx context.Context, why checkpoint.Reason, task string) (*checkpoint.Entry, []files.Change, error) {
	if err := s.fails("checkpoint"); err != nil {
		return nil, nil, err
	}
	return s.Session.Checkpoint(ctx, why, task)
}

func (s *short) SetBack(ctx context.Context, task string) (rewind.Result, string, error) {
	if err := s.fails("set back"); err != nil {
		return rewind.Result{}, "", fmt.Errorf("%w: %w", checkpoint.ErrUnchanged, err)
	}
	return s.Session.SetBack(ctx, task)
}

// A run waits for a storage that may work again, whichever call failed first, and then
// continues.
func TestStorageIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		for _, call := range []string{"sync", "checkpoint", "set back"} {
			t.Run(fmt.Sprintf("%s %d", call, errno), func(t *testing.T) {
				t.Parallel()
				cfg, sess, ui := bed(t, breaks, "test $LOPEN_TASK_ID = two || ! test -e bad")
				s := &short{Session: sess, call: call, errno: errno, left: 2}
				cfg.Session, cfg.PauseTimeout = s, time.Minute
				var exit *Exit
				require.ErrorAs(t, Run(t.Context(), cfg), &exit, "%s", ui.lines)
				require.Equal(t, ExitUser, exit.Code, "task one fails, that of the storage is over: %s", ui.lines)
				require.Zero(t, s.left)
				require.True(t, ui.has("paused, nothing can be saved"), "%s", ui.lines)
				require.True(t, ui.has(lifecycle.ClassOf(errno).Hint()+": the run goes on by itself then"), "%s", ui.lines)
				require.True(t, ui.has("saved again after"), "%s", ui.lines)
				require.False(t, exists(cfg, "bad"), "it was set back")
				require.Equal(t, 1, sess.State().Progress().Done, "two")
			})
		}
	}
}

// A run that may not wait longer says so with the exit code of a storage error.
func TestStorageEndsARunThatMayNotWait(t *testing.T) {
	t.Parallel()
	cfg, sess, ui := bed(t, "true", "")
	cfg.PauseTimeout = 1
	cfg.Session = &short{Session: sess, call: "sync", errno: syscall.EDQUOT, left: 1000}
	var exit *Exit
	require.ErrorAs(t, Run(t.Context(), cfg), &exit, "%s", ui.lines)
	require.Equal(t, ExitStorage, exit.Code)
	require.ErrorContains(t, exit, "the newest state is not on the disk")
}
