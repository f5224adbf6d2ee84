package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/process"
)

// The recorded end of the command belongs to the attempt whose outcome the State lacks.
func TestCommandEnded(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	defer sess.Close(t.Context())
	knows := func() *process.Ended {
		e, err := sess.CommandEnded()
		require.NoError(t, err)
		return e
	}
	require.Nil(t, knows(), "no command has begun")
	child, err := sess.HoldChild()
	require.NoError(t, err)
	defer child.Release()
	require.NoError(t, child.Forget())
	require.NoError(t, process.NoteEnded(child.File(), process.Ended{Iteration: 1, Exit: 3}))
	require.Equal(t, &process.Ended{Iteration: 1, Exit: 3}, knows())
	require.NoError(t, child.Ended(process.Ended{Iteration: 1, Success: true}))
	require.Equal(t, &process.Ended{Iteration: 1, Exit: 3, Success: true}, knows())
	require.NoError(t, sess.Change(session.TriggerTaskCompleted, func(e *session.Edit) error {
		e.AppendIteration(session.Iteration{Task: "a"})
		return nil
	}))
	require.Nil(t, knows(), "its outcome is known")
	require.NoError(t, process.NoteEnded(child.File(), process.Ended{Iteration: 2, Success: true}))
	require.Equal(t, &process.Ended{Iteration: 2, Success: true}, knows())
}
