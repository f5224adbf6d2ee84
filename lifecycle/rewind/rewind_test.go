package rewind_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// chain returns the entries, numbered from 1 on.
func chain(all ...checkpoint.Entry) (entries []*checkpoint.Entry) {
	for i := range all {
		all[i].Number = uint64(i + 1)
		entries = append(entries, &all[i])
	}
	return entries
}

func entry(of string, why checkpoint.Reason, target, parent uint64, task string) (e checkpoint.Entry) {
	e.Session, e.Reason, e.Target, e.Parent, e.Task = of, why, target, parent, task
	return e
}

func anyone(string) bool { return true }

func numbers(set map[uint64]bool) []uint64 { return slices.Sorted(maps.Keys(set)) }

func TestNeeded(t *testing.T) {
	t.Parallel()
	task := entry("a", checkpoint.BeforeTask, 0, 0, "t")
	for name, c := range map[string]struct {
		all  []*checkpoint.Entry
		of   func(string) bool
		want []uint64
	}{
		"no rewind": {chain(task, task), anyone, nil},
		"one that ended needs its target, what undo goes back to, and itself": {
			chain(task, task, entry("a", checkpoint.BeforeRewind, 1, 2, ""), entry("a", checkpoint.AfterRewind, 1, 3, ""), task), anyone, []uint64{1, 3, 4}},
		"one that may have begun needs all since its target": {
			chain(task, task, task, entry("a", checkpoint.BeforeRewind, 2, 3, "")), anyone, []uint64{2, 3, 4}},
		"and what an earlier one since then brought back": {
			chain(task, task, entry("a", checkpoint.AfterRewind, 1, 2, ""), entry("a", checkpoint.BeforeRewind, 3, 3, "")), anyone, []uint64{1, 2, 3, 4}},
		"of a task that was set back undo is none": {
			chain(task, entry("a", checkpoint.BeforeRewind, 1, 1, "t"), entry("a", checkpoint.AfterRewind, 1, 2, "t"), task), anyone, []uint64{1, 2}},
		"another session's": {
			chain(task, entry("b", checkpoint.BeforeRewind, 1, 1, ""), entry("b", checkpoint.AfterRewind, 1, 2, "")), func(id string) bool { return id == "a" }, nil},
	} {
		require.Equal(t, c.want, numbers(rewind.Needed(c.all, c.of)), name)
	}
}

func TestNeededByFailed(t *testing.T) {
	t.Parallel()
	task := entry("a", checkpoint.BeforeTask, 0, 0, "t")
	all := chain(task, entry("a", checkpoint.BeforeRewind, 1, 1, "t"), entry("a", checkpoint.AfterRewind, 1, 2, "t"), task)
	failed := rewind.FailedTrees(all, anyone)
	require.Equal(t, []uint64{2}, numbers(failed))
	require.Equal(t, []uint64{1, 2, 3}, numbers(rewind.NeededByFailed(all, failed)))
	require.Empty(t, rewind.FailedTrees(all, func(string) bool { return false }), "its session is gone")
	all[1].Removed = "why"
	require.Empty(t, rewind.FailedTrees(all, anyone))
}

func TestUndo(t *testing.T) {
	t.Parallel()
	id, err := session.ParseID("auth-20260101-1")
	require.NoError(t, err)
	_, err = rewind.Undo(id, session.Mark{})
	require.ErrorIs(t, err, folder.ErrNotFound)
	to := checkpoint.ID{7}
	got, err := rewind.Undo(id, session.Mark{Undo: to.String()})
	require.NoError(t, err)
	require.Equal(t, to, got)

	require.ErrorIs(t, rewind.Failed(id, to, checkpoint.ErrNotFound), folder.ErrNotFound)
	other := errors.New("no")
	require.ErrorIs(t, rewind.Failed(id, to, other), other)
	require.NotErrorIs(t, rewind.Failed(id, to, other), folder.ErrNotFound)
}
