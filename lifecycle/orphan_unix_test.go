//go:build unix

package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
)

// A command that outlived its loop is named, where no run of the module may have it
// started just now.
func TestRecoverNamesTheOldCommand(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	child, err := sess.HoldChild()
	require.NoError(t, err)
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Close(t.Context()))
	found := func() string {
		r, err := store.Recover(t.Context(), sess.ID().String(), "", true)
		require.NoError(t, err)
		return strings.Join(append(r.Leftovers, r.Advice...), "\n")
	}
	require.Contains(t, found(), "the command of the session lives: an unknown command")
	require.Contains(t, found(), "end what is left of the old command")
	lock, err := store.LockModule("auth")
	require.NoError(t, err)
	require.Contains(t, found(), "module auth is being run")
	require.NoError(t, lock.Unlock())
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
