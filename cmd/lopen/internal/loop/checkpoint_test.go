package loop

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
)

// held is a session whose first checkpoint fails because another process holds the blobs.
type held struct {
	Session
	made, looked int
}

func (s *held) Paused() error { return nil }

func (s *held) CheckpointsOver() int64 { return 4711 }

func (s *held) Checkpoint(context.Context, checkpoint.Reason, string) (*checkpoint.Entry, []files.Change, error) {
	if s.made++; s.made == 1 {
		return nil, nil, &lifecycle.BusyError{Path: "blobs/.lock", Owner: writer.Owner{PID: 77}}
	}
	return nil, nil, nil
}

func (s *held) Look(context.Context) ([]files.Change, error) {
	s.looked++
	return []files.Change{{Path: "a"}}, nil
}

type warnings struct {
	UI
	lines []string
}

func (w *warnings) Warn(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// A process that holds the blobs for too long costs the run one checkpoint. The run makes
// the checkpoints after it.
func TestABusyStoreCostsOneCheckpoint(t *testing.T) {
	t.Parallel()
	sess, ui := &held{}, &warnings{}
	r := &runner{cfg: Config{Checkpoint: true, UI: ui}, sess: sess, warned: map[string]bool{}}
	changes, err := r.checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	require.Equal(t, []files.Change{{Path: "a"}}, changes, "what changed is known all the same")
	require.Equal(t, []string{"no checkpoint before-task t: held by pid 77: blobs/.lock"}, ui.lines)
	_, err = r.checkpoint(t.Context(), checkpoint.AfterTask, "t")
	require.NoError(t, err)
	require.Equal(t, 2, sess.made)
	require.Equal(t, 1, sess.looked)
	require.Len(t, ui.lines, 2)
	require.Contains(t, ui.lines[1], "4711 bytes more than checkpoint_bytes")
	_, err = r.checkpoint(t.Context(), checkpoint.AfterTask, "t")
	require.NoError(t, err)
	require.Len(t, ui.lines, 2, "one warning")
}
