package lifecycle_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
)

// A writer that lost the session replaced the readable files by those of a record
// that does not count: the journal decides what is read.
func TestReadableFilesOfAnotherPast(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(5)))
	require.NoError(t, sess.Close(t.Context()))
	_, last, err := store.Read(sess.ID())
	require.NoError(t, err)
	again, err := store.Open(sess.ID()) // begins epoch 2 behind that
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))

	e := sess.State().Edit()
	e.Header().TurnCount = 99
	void, err := e.State()
	require.NoError(t, err)
	mark := session.Mark{Epoch: 1, Seq: last + 1, Iterations: last + 1}
	write(t, path(store, "sessions", sess.ID().String(), "state.json"), string(wire.EncodeState(void, mark)))
	write(t, path(store, "sessions", sess.ID().String(), "metrics.json"), string(wire.EncodeMetrics(void, mark)))
	st, _, err := store.Read(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 5, st.Header().TurnCount)
}

// The records of another session are never applied.
func TestJournalOfAnotherSession(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	mine := made(t, store, "auth")
	other := create(t, store, "auth")
	require.NoError(t, other.Change(session.TriggerStepCompleted, turns(99)))
	require.NoError(t, other.Close(t.Context()))
	const journal = "journal-1-1.jsonl"
	data, err := os.ReadFile(path(store, "sessions", other.ID().String(), journal))
	require.NoError(t, err)
	write(t, path(store, "sessions", mine.String(), journal), string(data))
	_, _, err = store.Read(mine)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.ErrorContains(t, err, other.ID().String())
	_, err = store.Open(mine)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
}
