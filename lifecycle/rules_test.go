package lifecycle_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// Rules are run on every load: what is not critical is logged, reported by Verify, and
// does not prevent Open.
func TestBrokenRulesAreReported(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Put(session.Task{ID: "a", Kind: session.KindTask, State: session.TaskPending, DependsOn: []string{"gone"}})
		e.SetRoots([]string{"a"})
		return nil
	}))
	require.NoError(t, sess.Close(t.Context()))
	r, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Intact, r.Condition, "a warning is no problem")
	require.Len(t, r.Rules, 1)

	var log bytes.Buffer
	again, err := storeLogging(t, store, &log).Open(sess.ID())
	require.NoError(t, err)
	require.Contains(t, log.String(), `"level":"info","session":"auth-20260214-1","rule":"dependency-exists (warning): task \"a\" depends on \"gone\", which is not there","repair":"correct the plan`)
	require.NoError(t, again.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		a, _ := e.Task("a")
		a.DependsOn = []string{"a"}
		e.Put(a)
		return nil
	}))
	require.NoError(t, again.Close(t.Context()))
	r, err = store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.Flawed, r.Condition)
	require.Equal(t, "dependency-cycle", r.Rules[0].Rule)
	all := findings(store.Doctor(context.Background()))
	require.True(t, all[sess.ID().String()].Problem)
	require.Contains(t, all[sess.ID().String()].Mend, "lopen session verify")
}

// A folder under another session's name is neither opened nor listed as that one.
func TestFolderOfAnotherSession(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	one, two := made(t, store, "auth"), made(t, store, "auth")
	for _, name := range []string{"state.json", "metrics.json"} {
		data, err := os.ReadFile(path(store, "sessions", one.String(), name))
		require.NoError(t, err)
		write(t, path(store, "sessions", two.String(), name), string(data))
	}
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	r, err := store.Verify(two)
	require.NoError(t, err)
	require.Equal(t, repair.Torn, r.Condition)
	require.Equal(t, []string{"state.json", "metrics.json"}, []string{r.Faults[0].File, r.Faults[1].File})
	sess, err := store.Open(two)
	require.NoError(t, err, "its journal is its own")
	require.Equal(t, two, sess.State().ID())
	require.NoError(t, sess.Close(t.Context()))
	data, err := os.ReadFile(path(store, "sessions", one.String(), "journal-1-1.jsonl"))
	require.NoError(t, err)
	write(t, path(store, "sessions", two.String(), "journal-1-1.jsonl"), string(data))
	_, err = store.ReadAt(two, 1)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	sess, err = store.Open(one)
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
}

// A session that a newer version wrote is shown, cannot be opened for writing, and is not
// changed.
func TestNewerIsShownAndLeftAlone(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	dir := path(store, "sessions", id.String())
	for _, name := range []string{"state.json", "metrics.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		write(t, filepath.Join(dir, name), strings.Replace(string(data), `"schemaVersion":2`, `"schemaVersion":3,"later":{"a":1}`, 1))
	}
	write(t, filepath.Join(dir, "pause-request"), "by the newer version\n")
	before := tree(t, dir)
	st, seq, err := store.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	require.EqualValues(t, 2, seq)
	require.Equal(t, session.StatusPaused, st.Status())
	_, err = store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	r, err := store.Verify(id)
	require.NoError(t, err)
	require.Equal(t, repair.Unreadable, r.Condition)
	_, err = store.AcceptEdit(id, false)
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	_, err = store.Recover(t.Context(), id.String(), repair.JournalAlone, false)
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	require.Equal(t, before, tree(t, dir))
	require.NoDirExists(t, path(store, "corrupted"))
}
