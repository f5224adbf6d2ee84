package lifecycle_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// attempted makes a session with a task that changed a and b, and a second one that
// changed b and made c when it was killed. cut says at which of three moments: while it
// ran, after the checkpoint behind it, or when the attempt was on record as interrupted.
func attempted(t *testing.T, store *lifecycle.Store, keeps bool, cut string) session.ID {
	t.Helper()
	dir := store.Project()
	sess, err := store.Create(t.Context(), "auth")
	require.NoError(t, err)
	look := func(why checkpoint.Reason, task string) (all []record.FileChange) {
		var changes []files.Change
		if keeps {
			_, changes, err = sess.Checkpoint(t.Context(), why, task)
		} else {
			changes, err = sess.Look(t.Context())
		}
		require.NoError(t, err)
		for _, c := range changes {
			all = append(all, record.FileChange{Path: c.Path, Change: string(c.Kind), Before: c.Old.Content(), After: c.New.Content()})
		}
		return all
	}
	state := func(id string, st session.TaskState, active string) {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
			e.SetRoots([]string{"one", "two"})
			for _, name := range []string{"one", "two"} {
				if _, ok := e.Task(name); !ok {
					e.Put(session.Task{ID: name, Kind: session.KindTask, State: session.TaskPending})
				}
			}
			task, _ := e.Task(id)
			task.State = st
			e.Put(task)
			e.Header().ActiveTask = active
			return nil
		}))
	}
	put(t, dir, "a", "0")
	put(t, dir, "b", "0")
	state("one", session.TaskInProgress, "one")
	look(checkpoint.BeforeTask, "one")
	put(t, dir, "a", "1")
	put(t, dir, "b", "1")
	changed := look(checkpoint.AfterTask, "one")
	require.Len(t, changed, 2)
	require.NoError(t, sess.Record(record.Attempt{Task: "one", Attempt: 1, Then: record.Done, Files: changed}))
	state("one", session.TaskComplete, "")
	put(t, dir, "a", "of a person")
	state("two", session.TaskInProgress, "two")
	look(checkpoint.BeforeTask, "two")
	put(t, dir, "b", "2")
	put(t, dir, "c", "2")
	if cut != "while it ran" {
		changed = look(checkpoint.AfterTask, "two")
	}
	if cut == "interrupted" {
		require.NoError(t, sess.Record(record.Attempt{Task: "two", Attempt: 1, Then: "interrupted", Files: changed}))
		state("two", session.TaskPending, "")
	}
	require.NoError(t, sess.Flush(t.Context()))
	return sess.ID()
}

// A resumed session tells what somebody else changed of a complete task's files from
// what the attempt may have changed that a kill cut off.
func TestPastTellsTheCutAttemptFromOthers(t *testing.T) {
	t.Parallel()
	paths := func(all []files.Change) (names []string) {
		for _, c := range all {
			names = append(names, c.Path)
		}
		return names
	}
	for _, keeps := range []bool{true, false} {
		for _, cut := range []string{"while it ran", "before it was on record", "interrupted"} {
			disk := crashfs.New(crashfs.Ext4)
			store, err := lifecycle.InitOn(disk.FS(), simOptions)
			require.NoError(t, err)
			id := attempted(t, store, keeps, cut)
			killed := disk.Snapshot()
			require.NoError(t, store.Close(t.Context()))
			store, err = lifecycle.OpenOn(killed.FS(), simOptions)
			require.NoError(t, err)
			sess, err := store.Open(id)
			require.NoError(t, err)
			past, err := sess.Past(t.Context())
			require.NoError(t, err)
			switch {
			case cut == "interrupted":
				require.Empty(t, past.Cut)
				require.Equal(t, []lifecycle.ChangedTask{{Task: "one", Paths: []string{"a"}}}, past.Changed, "b is another task's now, which is not complete")
			case keeps:
				require.Equal(t, []string{"b", "c"}, paths(past.Cut), cut)
				require.Equal(t, []lifecycle.ChangedTask{{Task: "one", Paths: []string{"a"}}}, past.Changed, cut)
			default: // nobody can tell
				names := paths(past.Cut)
				slices.Sort(names)
				require.Contains(t, names, "a", cut)
				require.Empty(t, past.Changed, cut)
			}
			put(t, store.Project(), "d", "new")
			var changes []files.Change
			if keeps {
				_, changes, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "two")
			} else {
				changes, err = sess.Look(t.Context())
			}
			require.NoError(t, err)
			require.Equal(t, []string{"d"}, paths(changes), "what Past told is not told again")
			require.NoError(t, store.Close(t.Context()))
		}
	}
}
