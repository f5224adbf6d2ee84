package lifecycle_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// treesIn returns a store whose sessions may work in the folders that stand beside the project's.
func treesIn(t *testing.T, project string, p lifecycle.Policy) *lifecycle.Store {
	t.Helper()
	store, _, err := lifecycle.Init(project, lifecycle.Options{Now: clock(), Policy: p, Worktree: func(folder string) error {
		_, err := os.Stat(folder)
		return err
	}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(context.Background()) })
	return store
}

func worktrees(t *testing.T, p lifecycle.Policy, names ...string) (store *lifecycle.Store, dirs []writer.FS) {
	t.Helper()
	top := t.TempDir()
	for _, name := range append([]string{"project"}, names...) {
		require.NoError(t, os.Mkdir(filepath.Join(top, name), 0o700))
	}
	store = treesIn(t, filepath.Join(top, "project"), p)
	for _, name := range names {
		dir, err := writer.OpenFS(filepath.Join(top, name))
		require.NoError(t, err)
		t.Cleanup(func() { _ = dir.Close() })
		dirs = append(dirs, dir)
	}
	return store, dirs
}

func createIn(t *testing.T, store *lifecycle.Store, module string, dir writer.FS) *lifecycle.Session {
	t.Helper()
	w := session.WorktreeAt(store.Project().Name(), dir.Name())
	sess, err := store.CreateWith(t.Context(), module, func(_ session.ID, h *session.Header) { h.Worktree = &w })
	require.NoError(t, err)
	return sess
}

func checkpointed(t *testing.T, sess *lifecycle.Session, why checkpoint.Reason, task string) *checkpoint.Entry {
	t.Helper()
	e, _, err := sess.Checkpoint(t.Context(), why, task)
	require.NoError(t, err)
	return e
}

// Two work trees and the project's folder change at once: no interval of one is contested by a task
// of another, and each session's rewind is of its own tree, whoever asks for it.
func TestEachWorkTreeHasAChain(t *testing.T) {
	t.Parallel()
	store, dirs := worktrees(t, lifecycle.Policy{}, "a", "b")
	dirs = append(dirs, store.Project())
	all := []*lifecycle.Session{createIn(t, store, "ma", dirs[0]), createIn(t, store, "mb", dirs[1]), create(t, store, "mc")}
	for i, dir := range dirs {
		put(t, dir, "f", "before "+all[i].ID().Module)
	}
	begin := make([]*checkpoint.Entry, len(all))
	for i, sess := range all {
		begin[i] = checkpointed(t, sess, checkpoint.BeforeTask, "one")
	}
	for i, dir := range dirs {
		put(t, dir, "f", "after "+all[i].ID().Module)
	}
	for _, sess := range all {
		e := checkpointed(t, sess, checkpoint.AfterTask, "one")
		require.EqualValues(t, 2, e.Number)
		require.False(t, e.Contested())
		require.Len(t, e.By, 1)
		require.Equal(t, 1, e.Changed)
	}
	for i, sess := range all {
		done, err := sess.Rewind(t.Context(), begin[i].ID, rewind.Options{Files: true})
		require.NoError(t, err)
		require.Len(t, done.Changes, 1)
		require.Empty(t, done.Retained)
		for k, dir := range dirs {
			want := "after "
			if k <= i {
				want = "before "
			}
			require.Equal(t, want+all[k].ID().Module, got(t, dir, "f"))
		}
		require.NoError(t, sess.Close(t.Context()))
		r, err := store.Verify(sess.ID())
		require.NoError(t, err)
		require.Equal(t, repair.Intact, r.Condition, "%v", r.Faults)
		require.NoError(t, store.VerifyData(t.Context(), &r))
		require.Positive(t, r.Blobs)
	}
	would, err := store.PlanRewind(t.Context(), all[0].ID(), checkpoint.ID{}, rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "f", would.Changes[0].Path)
}

// What a checkpoint of one work tree needs is not swept when the session of another is deleted,
// and goes with its own.
func TestASweepSparesOtherWorkTrees(t *testing.T) {
	t.Parallel()
	store, dirs := worktrees(t, lifecycle.Policy{}, "a", "b")
	large := func(c string) string { return strings.Repeat(c, 80<<10) }
	var all []*lifecycle.Session
	for i, dir := range dirs {
		sess := createIn(t, store, "m", dir)
		put(t, dir, "f", large(string(rune('x'+i))))
		checkpointed(t, sess, checkpoint.Manual, "")
		require.NoError(t, sess.Close(t.Context()))
		all = append(all, sess)
	}
	_, err := store.Delete(t.Context(), all[0].ID())
	require.NoError(t, err)
	r, err := store.Verify(all[1].ID())
	require.NoError(t, err)
	require.NoError(t, store.VerifyData(t.Context(), &r))
	require.Equal(t, repair.Intact, r.Condition, "%v", r.Faults)
	u, err := store.CheckpointUsage()
	require.NoError(t, err)
	require.Equal(t, 1, u.Checkpoints)
	require.Zero(t, u.Unneeded)
	chains, err := filepath.Glob(path(store, "checkpoints", "tree-*.jsonl"))
	require.NoError(t, err)
	require.Len(t, chains, 1, "the chain of the deleted session's work tree is empty and goes")
	_, err = store.Delete(t.Context(), all[1].ID())
	require.NoError(t, err)
	require.Empty(t, blobFiles(t, store))
	chains, err = filepath.Glob(path(store, "checkpoints", "tree-*"))
	require.NoError(t, err)
	require.Empty(t, chains)
}

// The log of a session is foreign text: a folder that is no work tree of the project is neither
// looked at nor changed, also where a rewind was begun.
func TestNoFolderButAWorkTree(t *testing.T) {
	t.Parallel()
	store, dirs := worktrees(t, lifecycle.Policy{}, "a")
	sess := createIn(t, store, "m", dirs[0])
	put(t, dirs[0], "f", "1")
	first := checkpointed(t, sess, checkpoint.BeforeTask, "one")
	put(t, dirs[0], "f", "2")
	checkpointed(t, sess, checkpoint.AfterTask, "one")
	require.NoError(t, sess.Close(t.Context()))
	none := errors.New("it is no work tree of this project")
	for name, opts := range map[string]lifecycle.Options{
		"no one who knows": {},
		"refused":          {Worktree: func(string) error { return none }},
	} {
		other, err := lifecycle.Open(store.Project().Name(), opts)
		require.NoError(t, err, name)
		again, err := other.Open(sess.ID())
		require.NoError(t, err, name)
		var refused *lifecycle.WorktreeError
		_, err = again.Rewind(t.Context(), first.ID, rewind.Options{Files: true})
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, dirs[0].Name(), refused.Folder)
		_, _, err = again.Checkpoint(t.Context(), checkpoint.Manual, "")
		require.ErrorAs(t, err, &refused, name)
		_, err = again.Look(t.Context())
		require.ErrorAs(t, err, &refused, name)
		_, err = other.PlanRewind(t.Context(), sess.ID(), first.ID, rewind.Options{Files: true})
		require.ErrorAs(t, err, &refused, name)
		cps, err := other.Checkpoints(again.State().Header().Worktree)
		require.NoError(t, err)
		require.ErrorAs(t, cps.Gone, &refused)
		f, known, err := cps.Tree(first.Root).Find("f")
		require.NoError(t, err)
		require.True(t, known)
		require.EqualValues(t, 1, f.Size, "its checkpoints can be read all the same")
		require.NoError(t, cps.Close())
		require.NoError(t, other.Close(t.Context()))
	}
	require.Equal(t, "2", got(t, dirs[0], "f"))
}

// A rewind that a kill cut off is finished in the session's work tree, by whichever command opens
// the session.
func TestARewindIsFinishedInItsWorkTree(t *testing.T) {
	t.Parallel()
	store, dirs := worktrees(t, lifecycle.Policy{}, "a")
	sess := createIn(t, store, "m", dirs[0])
	put(t, dirs[0], "f", "1")
	put(t, store.Project(), "f", "the project's")
	first := checkpointed(t, sess, checkpoint.BeforeTask, "one")
	put(t, dirs[0], "f", "2")
	checkpointed(t, sess, checkpoint.AfterTask, "one")
	_, err := sess.Rewind(t.Context(), first.ID, rewind.Options{Files: true})
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	segments, err := filepath.Glob(path(store, "sessions", sess.ID().String(), "*.jsonl"))
	require.NoError(t, err)
	cut := false
	for _, name := range segments { // as a kill before the end of the rewind leaves it
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		lines := strings.SplitAfter(string(data), "\n")
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"rewind-begin"`) }); i >= 0 && !cut {
			require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines[:i+1], "")), 0o600))
			cut = true
		}
	}
	require.True(t, cut, "%q", segments)
	for _, name := range []string{"state.json", "metrics.json"} {
		require.NoError(t, os.Remove(path(store, "sessions", sess.ID().String(), name)))
	}
	put(t, dirs[0], "f", "2")
	again, err := treesIn(t, store.Project().Name(), lifecycle.Policy{}).Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, "1", got(t, dirs[0], "f"))
	require.Equal(t, "the project's", got(t, store.Project(), "f"))
	require.NoError(t, again.Close(t.Context()))
}

// checkpoint_bytes is one bound for all work trees: a checkpoint of one removes the oldest of
// another.
func TestCheckpointsOfAllWorkTreesAreBounded(t *testing.T) {
	t.Parallel()
	const size = 100 << 10
	const limit = 6*size + 32<<10
	store, dirs := worktrees(t, lifecycle.Policy{CheckpointBytes: limit}, "a", "b")
	noise := rand.NewChaCha8([32]byte{})
	all := []*lifecycle.Session{createIn(t, store, "ma", dirs[0]), createIn(t, store, "mb", dirs[1])}
	for i, sess := range all {
		for range 5 {
			content := make([]byte, size)
			_, _ = noise.Read(content)
			put(t, dirs[i], "f", string(content))
			checkpointed(t, sess, checkpoint.Manual, "")
		}
	}
	taken := int64(0)
	for _, n := range blobFiles(t, store) {
		taken += n
	}
	require.LessOrEqual(t, taken, int64(limit))
	require.Zero(t, all[1].CheckpointsOver())
	numbers := func(w *session.Worktree) (left []uint64) {
		cps, err := store.Checkpoints(w)
		require.NoError(t, err)
		defer cps.Close()
		entries, _, err := cps.List()
		require.NoError(t, err)
		for _, e := range entries {
			if e.Removed == "" {
				left = append(left, e.Number)
				require.NoError(t, cps.Objects(e, func(blob.Hash, int64) bool { return true }))
			}
		}
		return left
	}
	a, b := numbers(all[0].State().Header().Worktree), numbers(all[1].State().Header().Worktree)
	require.Equal(t, []uint64{4, 5}, a[len(a)-2:], "the newest two stay")
	require.Contains(t, b, uint64(5))
	require.Less(t, len(a), 5)
	require.NoError(t, all[0].Close(t.Context()))
	r, err := store.Verify(all[0].ID())
	require.NoError(t, err)
	require.NoError(t, store.VerifyData(t.Context(), &r))
	require.Equal(t, repair.Intact, r.Condition, "%v", r.Faults)
}

// A session that comes from another project works in the project's folder: the other one's work
// tree is not here, and its folder may be somebody's.
func TestImportLeavesTheWorkTree(t *testing.T) {
	t.Parallel()
	store, dirs := worktrees(t, lifecycle.Policy{}, "a")
	sess := createIn(t, store, "m", dirs[0])
	require.NoError(t, store.CreatePlan("m", []byte("- [ ] one\n")))
	put(t, dirs[0], "f", "1")
	first := checkpointed(t, sess, checkpoint.BeforeTask, "one")
	put(t, dirs[0], "f", "2")
	checkpointed(t, sess, checkpoint.AfterTask, "one")
	require.NoError(t, sess.Close(t.Context()))
	there := initStore(t)
	report, err := there.Import(t.Context(), gather(t, store, sess.ID()))
	require.NoError(t, err)
	require.Len(t, report.Sessions, 1)
	require.Equal(t, sess.State().Header().Worktree.Path, report.Sessions[0].Worktree)
	id, err := session.ParseID(report.Sessions[0].ID)
	require.NoError(t, err)
	again, err := there.Open(id)
	require.NoError(t, err)
	require.Nil(t, again.State().Header().Worktree)
	_, err = again.Rewind(t.Context(), first.ID, rewind.Options{Files: true, Force: true})
	require.NoError(t, err)
	require.Equal(t, "1", got(t, there.Project(), "f"))
	require.Equal(t, "2", got(t, dirs[0], "f"))
	require.NoError(t, again.Close(t.Context()))
	r, err := there.Verify(id)
	require.NoError(t, err)
	require.Equal(t, repair.Intact, r.Condition, "%v", r.Faults)
	report, err = there.Import(t.Context(), gather(t, store, sess.ID()))
	require.NoError(t, err)
	require.True(t, report.Sessions[0].Known, "without its work tree it is the same session")
}

// Two runs in one linked work tree are as two in the project's folder: what changed while both
// worked stays, and is named.
func TestTwoRunsInOneWorkTree(t *testing.T) {
	t.Parallel()
	store, dirs := worktrees(t, lifecycle.Policy{}, "a")
	one, two := createIn(t, store, "m", dirs[0]), createIn(t, store, "n", dirs[0])
	put(t, dirs[0], "alone", "before")
	put(t, dirs[0], "both", "before")
	first := checkpointed(t, one, checkpoint.BeforeTask, "t")
	put(t, dirs[0], "alone", "after")
	checkpointed(t, two, checkpoint.BeforeTask, "u")
	put(t, dirs[0], "both", "after")
	require.True(t, checkpointed(t, one, checkpoint.AfterTask, "t").Contested())
	done, err := one.Rewind(t.Context(), first.ID, rewind.Options{Files: true})
	require.NoError(t, err)
	require.Equal(t, "before after", got(t, dirs[0], "alone")+" "+got(t, dirs[0], "both"))
	require.Len(t, done.Retained, 1)
	require.Equal(t, "both", done.Retained[0].Path)
}
