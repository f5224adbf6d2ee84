package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/output"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
)

func openUnsaved(t *testing.T) (*lifecycle.Store, string) {
	t.Helper()
	dir := t.TempDir()
	store, err := lifecycle.OpenUnsaved(dir, lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store, dir
}

// The store says that it has no sessions, even while one is open. It refuses what it
// cannot do, and no call leaves a file.
func TestUnsavedLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	store, dir := openUnsaved(t)
	sess := create(t, store, "auth")
	id := sess.ID()
	require.EqualValues(t, 1_000_000_001, id.Counter)
	require.EqualValues(t, 1_000_000_002, create(t, store, "auth").ID().Counter)

	require.NoError(t, sess.Append(&session.Message{Role: session.RoleUser, Content: session.Text("a")}))
	require.NoError(t, sess.AppendEvent([]byte(`{"a":1}`)))
	require.NoError(t, sess.Record(record.Attempt{Task: "t"}))
	require.NoError(t, sess.NotSetBack("t", "because"))
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(3)))
	require.NoError(t, sess.Flush(t.Context()))

	_, err := store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.Fork(t.Context(), id, lifecycle.ForkOptions{})
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.Delete(t.Context(), id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.ReadAt(id, 1)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.Latest("auth")
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	all, err := store.List()
	require.NoError(t, err)
	require.Empty(t, all)

	_, why, err := sess.SetBack(t.Context(), "t")
	require.NoError(t, err)
	require.Contains(t, why, "no checkpoint")
	_, err = sess.Patch(t.Context(), "t", 100)
	require.ErrorIs(t, err, checkpoint.ErrNotFound)
	_, err = store.LockModule("auth")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorIs(t, store.CreatePlan("auth", nil), errors.ErrUnsupported)
	_, err = store.Plan("auth")
	require.ErrorIs(t, err, fs.ErrNotExist)

	hold, err := sess.HoldChild()
	require.NoError(t, err)
	require.Nil(t, hold)
	held, err := sess.ChildHeld()
	require.NoError(t, err)
	require.False(t, held)
	ended, err := sess.CommandEnded()
	require.NoError(t, err)
	require.Nil(t, ended)
	require.False(t, sess.PauseRequested())
	require.False(t, sess.WakeRequested())
	require.Empty(t, sess.Incarnation())
	require.NoError(t, sess.Release())
	require.NoError(t, sess.Unpause(t.Context()))
	require.NoError(t, sess.Complete(t.Context()))
	require.Equal(t, session.StatusComplete, sess.State().Status())
	require.NoError(t, store.Close(t.Context()))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// What is dropped is empty afterwards, and no error.
func TestUnsavedIsEmpty(t *testing.T) {
	t.Parallel()
	store, dir := openUnsaved(t)
	sess := create(t, store, "auth")
	id := sess.ID()
	e, changes, err := sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	require.Empty(t, changes)
	require.True(t, e.ID.IsZero())
	require.Equal(t, "t", e.Task)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("1"), 0o600))
	_, changes, err = sess.Checkpoint(t.Context(), checkpoint.AfterTask, "t")
	require.NoError(t, err)
	require.Len(t, changes, 1)
	e, err = store.Checkpoint(t.Context(), nil, true)
	require.NoError(t, err)
	require.True(t, e.ID.IsZero())
	require.NoError(t, os.Remove(filepath.Join(dir, "a")))

	require.NoError(t, sess.Append(&session.Message{ID: "m", Role: session.RoleUser, Content: session.Text("a")}))
	require.NoError(t, sess.AppendEvent([]byte(`{"a":1}`)))
	require.NoError(t, sess.Record(record.Attempt{Task: "t"}))
	w, err := sess.Output(1, output.Attempt{Task: "t"})
	require.NoError(t, err)
	w.Note("a")
	w.Prompt([]byte("b"))
	_, err = w.Stream(output.Log, "").Write([]byte("c\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close("done", "", true))
	require.NoError(t, sess.Sync(t.Context()))

	for range sess.Messages() {
		require.Fail(t, "there is a message")
	}
	for _, err := range store.MessagesUpTo(id, "m") {
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
	}
	for range store.Transcript(id) {
		require.Fail(t, "there is an event")
	}
	require.NoError(t, store.Log(id, 0, func(record.Record) error { return errors.New("there is a record") }))
	gaps, err := store.Gaps(id)
	require.NoError(t, err)
	require.Empty(t, gaps)
	outputs, err := store.Outputs(id)
	require.NoError(t, err)
	require.Empty(t, outputs)
	usage, err := store.CheckpointUsage()
	require.NoError(t, err)
	require.Zero(t, usage)
	cps, err := store.Checkpoints(nil)
	require.NoError(t, err)
	all, faults, err := cps.List()
	require.NoError(t, errors.Join(append(faults, err)...))
	require.Empty(t, all)
	require.NoError(t, cps.Close())
	require.NoError(t, store.Close(t.Context()))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// An existing store is neither read nor written.
func TestUnsavedInAProjectWithAStore(t *testing.T) {
	t.Parallel()
	saved := initStore(t)
	id := create(t, saved, "auth").ID()
	require.NoError(t, saved.CreatePlan("auth", []byte("- [ ] a\n")))
	project := filepath.Dir(saved.Path())
	before := tree(t, project)
	store, err := lifecycle.OpenUnsaved(project, lifecycle.Options{})
	require.NoError(t, err)
	_, _, err = store.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = store.Plan("auth")
	require.ErrorIs(t, err, fs.ErrNotExist)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(3)))
	_, err = sess.Look(t.Context())
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
	require.Equal(t, before, tree(t, project))
}

func TestUnsavedLook(t *testing.T) {
	t.Parallel()
	store, dir := openUnsaved(t)
	sess := create(t, store, "auth")
	name := filepath.Join(dir, "a")
	look := func() (paths []string) {
		changes, err := sess.Look(t.Context())
		require.NoError(t, err)
		for _, c := range changes {
			paths = append(paths, c.Path)
		}
		return paths
	}
	require.NoError(t, os.WriteFile(name, []byte("1"), 0o600))
	require.Empty(t, look(), "the first time nothing was seen before")
	require.Empty(t, look())
	require.NoError(t, os.WriteFile(name, []byte("22"), 0o600))
	require.Equal(t, []string{"a"}, look())
	require.Empty(t, look())
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := sess.Look(gone)
	require.ErrorIs(t, err, context.Canceled)
}

func TestOpenUnsavedNowhere(t *testing.T) {
	t.Parallel()
	_, err := lifecycle.OpenUnsaved(filepath.Join(t.TempDir(), "gone"), lifecycle.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func ExampleOpenUnsaved() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "unsaved-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := lifecycle.OpenUnsaved(dir, lifecycle.Options{Now: clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	sess, err := store.Create(ctx, "auth")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error {
		e.Header().Phase = session.PhasePlanning
		return nil
	})
	fmt.Println(sess.ID(), sess.State().Phase(), err, sess.Sync(ctx))
	_, err = store.Latest("auth")
	fmt.Println(errors.Is(err, lifecycle.ErrNotFound), store.Close(ctx))
	// Output:
	// auth-20260214-1000000001 planning <nil> <nil>
	// true <nil>
}
