package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// How the command ended is that of the attempt whose outcome the State does not have.
func TestCommandEnded(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	defer sess.Close(t.Context())
	knows := func() *lifecycle.Ended {
		e, err := sess.CommandEnded()
		require.NoError(t, err)
		return e
	}
	require.Nil(t, knows(), "no command has begun")
	child, err := sess.HoldChild()
	require.NoError(t, err)
	defer child.Release()
	require.NoError(t, child.Forget())
	require.NoError(t, lifecycle.NoteEnded(child.File(), lifecycle.Ended{Iteration: 1, Exit: 3}))
	require.Equal(t, &lifecycle.Ended{Iteration: 1, Exit: 3}, knows())
	require.NoError(t, child.Ended(lifecycle.Ended{Iteration: 1, Success: true}))
	require.Equal(t, &lifecycle.Ended{Iteration: 1, Exit: 3, Success: true}, knows())
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		e.AppendIteration(session.Iteration{Task: "a"})
		return nil
	}))
	require.Nil(t, knows(), "its outcome is known")
	require.NoError(t, lifecycle.NoteEnded(child.File(), lifecycle.Ended{Iteration: 2, Success: true}))
	require.Equal(t, &lifecycle.Ended{Iteration: 2, Success: true}, knows())
}
