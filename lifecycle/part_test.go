package lifecycle_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
)

func pathsOf(changes []files.Change) (paths []string) {
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths
}

// A checkpoint of a list has the listed paths as they are, and all others as the entry before has
// them. A rewind to it touches the list alone, and undo takes that back.
func TestListedCheckpoint(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, dir := create(t, store, "auth"), store.Project()
	put(t, dir, "a", "0")
	put(t, dir, "b", "0")
	require.NoError(t, dir.Mkdir("src", 0o755))
	put(t, dir, "src/x", "0")
	put(t, dir, "src/y", "0")
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)

	for _, name := range []string{"a", "b", "src/x", "src/y", "src/new"} {
		put(t, dir, name, "11")
	}
	require.NoError(t, dir.Mkdir("made", 0o755))
	put(t, dir, "made/in", "11")
	put(t, dir, "made/out", "11")
	e, changes, err := sess.CheckpointOf(t.Context(), []string{"src/x", "a", "./a", "later", "made/in", "src/x/.."})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "later", "made/in", "src"}, e.Only, "what is beneath another path goes with it")
	require.Equal(t, []string{"a", "made/in", "src/new", "src/x", "src/y"}, pathsOf(changes))

	e, changes, err = sess.CheckpointOf(t.Context(), []string{"src/x", "b", "later"})
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, pathsOf(changes))
	require.Equal(t, 1, e.Changed)
	require.Equal(t, 6, e.Files)
	require.EqualValues(t, 12, e.Bytes)
	require.Equal(t, checkpoint.Manual, e.Reason)
	require.Len(t, e.Active, 1, "the task is still at work")
	cps, err := store.Checkpoints(nil)
	require.NoError(t, err)
	has := func(path string) bool {
		f, _, err := cps.Tree(e.Root).Find(path)
		require.NoError(t, err)
		return f != nil
	}
	require.True(t, has("made/in"))
	require.False(t, has("made/out"), "it is as in the entry before")
	require.NoError(t, cps.Close())

	for _, name := range []string{"a", "b", "src/x", "src/y", "later", "made/out"} {
		put(t, dir, name, "222")
	}
	_, changes, err = sess.Checkpoint(t.Context(), checkpoint.AfterTask, "t")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "later", "made/in", "made/out", "src/new", "src/x", "src/y"}, pathsOf(changes),
		"since the last checkpoint of the whole tree")
	look := func() string {
		var all []string
		for _, name := range []string{"a", "b", "src/x", "src/y", "src/new", "later", "made/in", "made/out"} {
			all = append(all, got(t, dir, name))
		}
		return strings.Join(all, " ")
	}
	was := look()
	would, err := store.PlanRewind(t.Context(), sess.ID(), e.ID, rewind.Options{Files: true})
	require.NoError(t, err)
	require.Len(t, would.Changes, 3)
	_, err = sess.Rewind(t.Context(), e.ID, rewind.Options{Files: true, Paths: []string{"a"}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "is not in it")
	require.Equal(t, was, look())
	_, err = sess.Rewind(t.Context(), e.ID, rewind.Options{Files: true, Paths: []string{"src"}})
	require.NoError(t, err)
	require.Equal(t, "222 222 11 222 11 222 11 222", look())
	_, err = sess.Undo(t.Context(), both)
	require.NoError(t, err)
	require.Equal(t, was, look())
	_, err = sess.Rewind(t.Context(), e.ID, rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "222 11 11 222 11 (none) 11 222", look())
}

// The first checkpoint of all has the whole tree.
func TestCheckpointOfAListIsTheFirst(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, dir := create(t, store, "auth"), store.Project()
	put(t, dir, "a", "0")
	put(t, dir, "b", "0")
	e, changes, err := sess.CheckpointOf(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.Empty(t, changes)
	require.Equal(t, 2, e.Files)
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	put(t, dir, "a", "1")
	put(t, dir, "b", "1")
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.AfterTask, "t")
	require.NoError(t, err)
	_, err = sess.Rewind(t.Context(), e.ID, rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "0 1", got(t, dir, "a")+" "+got(t, dir, "b"))
}

// What a session that ended in its task changed outside of the list still has an owner that nobody
// knows for sure.
func TestCheckpointOfAListKeepsWhoWasAtWork(t *testing.T) {
	t.Parallel()
	store, _, err := lifecycle.Init(t.TempDir(), lifecycle.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	sess, dir := create(t, store, "auth"), store.Project()
	put(t, dir, "a", "0")
	put(t, dir, "b", "0")
	first, _, err := sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	put(t, dir, "b", "1")
	require.NoError(t, sess.Close(t.Context()))
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	_, _, err = sess.CheckpointOf(t.Context(), []string{"a"})
	require.NoError(t, err)
	done, err := sess.Rewind(t.Context(), first.ID, rewind.Options{Files: true, DryRun: true})
	require.NoError(t, err)
	require.Len(t, done.Retained, 1)
	require.Equal(t, checkpoint.Contested, done.Retained[0].Why)
	changes, err := sess.Look(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"b"}, pathsOf(changes), "the list does not hide what changed beside it")
	_, _, err = sess.CheckpointOf(t.Context(), []string{"a"})
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	sess, err = store.Open(sess.ID())
	require.NoError(t, err)
	changes, err = sess.Look(t.Context())
	require.NoError(t, err)
	require.Empty(t, changes, "nor does it show it again")
}

func TestCheckpointOfAListRefuses(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, dir := create(t, store, "auth"), store.Project()
	put(t, dir, ".gitignore", "*.log\n")
	put(t, dir, "a.log", "0")
	put(t, dir, "file", "0")
	require.NoError(t, dir.Symlink("file", "link"))
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, dir.Remove("file"))
	require.NoError(t, dir.Mkdir("file", 0o755))
	put(t, dir, "file/in", "0")
	for _, list := range [][]string{nil, {"."}, {"a", ""}, {"/a"}, {"../a"}, {".git/x"}, {".lopen"}, {"\xff"}, {"a.log"}, {"file/in"}, {strings.Repeat("a/", 20<<10)}} {
		_, _, err := sess.CheckpointOf(t.Context(), list)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "%.80q", list)
	}
	e, _, err := sess.CheckpointOf(t.Context(), []string{"link", "link/a", "file"})
	require.NoError(t, err)
	require.Equal(t, []string{"file", "link"}, e.Only)
	cps, err := store.Checkpoints(nil)
	require.NoError(t, err)
	_, err = cps.Create(t.Context(), checkpoint.Meta{Reason: checkpoint.BeforeTask, Task: "t", Only: []string{"a"}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid, "a task has the whole tree before it")
	require.NoError(t, cps.Close())
}

// A rewind that is to bring nothing back is a mistake of the caller.
func TestRewindOfNothingIsAnError(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess, ids := agentWorked(t, store, "auth")
	was := content(t, store)
	for _, opts := range []rewind.Options{{}, {DryRun: true}, {Paths: []string{"a"}, Force: true}} {
		_, err := sess.Rewind(t.Context(), ids[0], opts)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, "say what it brings back")
		_, err = store.PlanRewind(t.Context(), sess.ID(), ids[0], opts)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	require.Equal(t, was, content(t, store))
	_, err := sess.Rewind(t.Context(), ids[0], both)
	require.NoError(t, err)
	_, err = sess.Undo(t.Context(), rewind.Options{})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
}

// A chain that somebody wrote by hand has no list where a task begins.
func TestCheckpointOfAListIsRead(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	put(t, store.Project(), "a", "0")
	e, err := store.Checkpoint(t.Context(), []string{"a"}, false)
	require.NoError(t, err)
	cps, err := store.Checkpoints(nil)
	require.NoError(t, err)
	all, _, err := cps.List()
	require.NoError(t, err)
	require.NoError(t, cps.Close())
	require.Len(t, all, 1)
	require.Equal(t, e.Only, all[0].Only)
	data, err := writer.ReadFile(store.Project(), filepath.Join(".lopen", "checkpoints", "main.jsonl"), 1<<20)
	require.NoError(t, err)
	require.True(t, slices.Contains(strings.Split(string(data), ","), `"only":["a"]`))
}
