package lifecycle_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// The manifests of snapshots and of checkpoints say what there was without the State being read: tasks, what the active
// one waits for, messages and changes of files.
func TestManifests(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	store := storeWith(t, project, lifecycle.Policy{Interval: 1, Retention: 100})
	s := create(t, store, "m")
	ids := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	require.NoError(t, s.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		for _, id := range ids {
			e.Put(session.Task{ID: id, Kind: session.KindTask, Name: id, State: session.TaskComplete})
		}
		e.Put(session.Task{ID: "z", Kind: session.KindTask, Name: "z", State: session.TaskPending, DependsOn: ids})
		e.SetRoots(append(ids, "z"))
		e.Header().ActiveTask = "z"
		return nil
	}))
	require.NoError(t, s.Append(&session.Message{ID: "1", Role: session.RoleUser, Content: session.Text("hello"), Time: time.Now()}))
	require.NoError(t, s.Flush(t.Context()))
	_, _, err := s.Checkpoint(t.Context(), checkpoint.BeforeTask, "z")
	require.NoError(t, err)
	for _, name := range []string{"one", "two"} {
		require.NoError(t, os.WriteFile(filepath.Join(project, name), []byte(name), 0o600))
	}
	made, _, err := s.Checkpoint(t.Context(), checkpoint.AfterTask, "z")
	require.NoError(t, err)
	require.Equal(t, checkpoint.Tasks{Total: 10, Completed: 9, Dependencies: ids[:8]}, made.Tasks)
	require.Equal(t, 2, made.Changed)
	require.Equal(t, 1, made.Messages)
	require.NoError(t, s.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().TurnCount++
		return nil
	}))
	require.NoError(t, s.Flush(t.Context()))
	all, err := store.Snapshots(s.ID())
	require.NoError(t, err)
	require.NotEmpty(t, all)
	changed := 0
	for _, m := range all {
		changed += m.Changed
	}
	require.Equal(t, 2, changed, "each change counts once")
	last := all[len(all)-1]
	require.Equal(t, history.Tasks{Total: 10, Completed: 9, Active: []string{"z"}, Dependencies: ids[:8]}, last.Tasks)
	require.EqualValues(t, 1, last.Messages)
	require.NotZero(t, last.Bytes)
	require.NoError(t, s.Close(t.Context()))
}
