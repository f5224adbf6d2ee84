//go:build unix

package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A command that outlived its loop is named. The look makes no file and needs no lock.
func TestTheOldCommandIsNamed(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	child, err := sess.HoldChild()
	require.NoError(t, err)
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	orphan, err := store.Abandoned(sess.ID())
	require.NoError(t, err)
	require.Nil(t, orphan, "its loop lives")
	require.NoError(t, sess.Close(t.Context()))
	before := tree(t, store.Path())
	found := func() string {
		r, err := store.Recover(t.Context(), sess.ID().String(), "", true)
		require.NoError(t, err)
		return strings.Join(append(r.Leftovers, r.Advice...), "\n")
	}
	require.Contains(t, found(), "it was left behind: an unknown command")
	require.Contains(t, found(), "end what is left of the old command")
	orphan, err = store.Abandoned(sess.ID())
	require.NoError(t, err)
	require.True(t, orphan.Alive)
	report, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, orphan, report.Orphan)
	require.Contains(t, strings.Join(report.Leftovers, "\n"), "an unknown command")
	require.Equal(t, before, tree(t, store.Path()), "a look makes no file")

	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	orphan, err = store.Abandoned(sess.ID())
	require.NoError(t, err)
	require.Nil(t, orphan, "its new holder deals with it")
	orphan, err = store.Orphan(sess.ID())
	require.NoError(t, err)
	require.True(t, orphan.Alive)
	require.NoError(t, again.Close(t.Context()))
	require.NoError(t, child.Release())
	require.NotContains(t, found(), "command")
}

// A session that another process deletes while a run looks through those of its module
// is none of the run's business.
func TestOrphanOfADeletedSession(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Close(t.Context()))
	_, err := store.Delete(t.Context(), sess.ID())
	require.NoError(t, err)
	orphan, err := store.Orphan(sess.ID())
	require.NoError(t, err)
	require.Nil(t, orphan)
}

// A change that happens while a command that outlived its loop runs may be the command's.
func TestOrphanIsAtWork(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	killed := create(t, store, "auth")
	child, err := killed.HoldChild()
	require.NoError(t, err)
	_, _, err = killed.Checkpoint(t.Context(), checkpoint.BeforeTask, "t")
	require.NoError(t, err)
	require.NoError(t, killed.Close(t.Context()))
	other := create(t, store, "other")
	task := func() *checkpoint.Entry {
		_, _, err := other.Checkpoint(t.Context(), checkpoint.BeforeTask, "u")
		require.NoError(t, err)
		put(t, store.Project(), "a", child.File().Name())
		e, _, err := other.Checkpoint(t.Context(), checkpoint.AfterTask, "u")
		require.NoError(t, err)
		return e
	}
	require.True(t, task().Contested())
	require.NoError(t, child.Release())
	_ = task()
	require.False(t, task().Contested(), "it has ended")
	require.NoError(t, other.Close(t.Context()))
}
