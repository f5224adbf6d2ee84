package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// The counters were removed with .lopen. Even so, no other session gets the ID of the session
// that was made again.
func TestIDOfARecreatedSessionIsNotReused(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, os.RemoveAll(store.Path()))
	require.Error(t, sess.Sync(t.Context()))
	require.NoError(t, sess.Unpause(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	_, err := store.Delete(t.Context(), sess.ID())
	require.NoError(t, err)
	require.NotEqual(t, sess.ID(), made(t, store, "auth"))
}

// A store whose folder was removed makes it again with the next session.
func TestCreateAfterTheStoreWasRemoved(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	made(t, store, "auth")
	require.NoError(t, os.RemoveAll(store.Path()))
	id := made(t, store, "auth")
	_, _, err := store.Read(id)
	require.NoError(t, err)
}

// A command that takes the module's lock for a moment, after the file was removed, does
// not end the run: nobody holds the file that it leaves behind.
func TestModuleLockThatSomebodyTookForAMoment(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	lock, err := store.LockModule("auth")
	require.NoError(t, err)
	sess := create(t, store, "auth")
	require.NoError(t, os.Remove(path(store, "modules", "auth", ".lock")))
	other := storeIn(t, filepath.Dir(store.Path()))
	moment, err := other.LockModule("auth")
	require.NoError(t, err)
	require.NoError(t, moment.Unlock())
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Sync(t.Context()))
	_, err = other.LockModule("auth")
	require.ErrorIs(t, err, lifecycle.ErrBusy, "it is held again")
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, lock.Unlock())
}

// A person who was asked about a damaged session is not asked again, whatever happens to
// the session that was recovered from it.
func TestRecoveredIsDecidedForGood(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	ruin(t, path(store, "sessions", id.String()))
	_, err := store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	_, found, err := store.Unfinished("auth")
	require.NoError(t, err)
	require.True(t, found)
	r, err := store.Recover(t.Context(), id.String(), "", false)
	require.NoError(t, err)
	_, err = store.Delete(t.Context(), r.ID)
	require.NoError(t, err)
	_, found, err = store.Unfinished("auth")
	require.NoError(t, err)
	require.False(t, found)
	lost, err := store.Quarantined()
	require.NoError(t, err)
	require.Empty(t, lost)
	again, err := store.Recover(t.Context(), id.String(), "", true)
	require.NoError(t, err, "it can be recovered once more by name")
	require.Equal(t, id, again.From)
}

// A kill may come between the commit of a State and its publication: a run resumes the
// session all the same.
func TestUnfinishedGoesBeyondStateJSON(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	dir := path(store, "sessions", id.String())
	shown := tree(t, dir)["state.json"]
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Change(session.TriggerPhaseChanged, func(e *session.Edit) error {
		h := e.Header()
		h.Status, h.ExitReason, h.Phase = session.StatusActive, "", session.PhaseBuilding
		return nil
	}))
	require.NoError(t, sess.Flush(t.Context()))
	killed := tree(t, dir)
	require.NoError(t, sess.Close(t.Context()))
	for name, content := range killed {
		if strings.Contains(name, ".json") {
			write(t, filepath.Join(dir, name), content)
		}
	}
	write(t, filepath.Join(dir, "state.json"), shown)
	info, found, err := store.Unfinished("auth")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, id, info.ID)
	require.Equal(t, session.StatusInterrupted, info.Status)
}

// A journal whose first segments are gone is noticed, also once a later holder has gone
// on without them.
func TestVerifyMissesTheBegin(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Close(t.Context()))
	reopen := func(n int) {
		again, err := store.Open(sess.ID())
		require.NoError(t, err)
		require.NoError(t, again.Change(session.TriggerStepCompleted, turns(n)))
		require.NoError(t, again.Close(t.Context()))
	}
	verify := func() repair.Condition {
		r, err := store.Verify(sess.ID())
		require.NoError(t, err)
		return r.Condition
	}
	reopen(2)
	require.NoError(t, os.Remove(path(store, "sessions", sess.ID().String(), "journal-1-1.jsonl")))
	require.Equal(t, repair.HistoryDamaged, verify())
	reopen(3)
	require.Equal(t, repair.HistoryDamaged, verify())
	write(t, path(store, "sessions", sess.ID().String(), "state.json"), "{")
	st, _, err := store.Read(sess.ID())
	require.NoError(t, err, "who opened it had the log begin anew")
	require.Equal(t, 3, st.Header().TurnCount)
}

// The record names the open tool calls by the IDs that are stored.
func TestOpenCallsAreRedacted(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	key := "ghp_" + "abcdefghijKLMNOPQRST0123456789abcdEF"
	require.NoError(t, sess.Append(&session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{{ID: "call-" + key, Name: "n"}}}))
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, filepath.WalkDir(store.Path(), func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		require.False(t, strings.Contains(string(data), key), name)
		return err
	}))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
	require.Len(t, messageIDs(t, store, sess.ID()), 2, "the call has its answer")
}
