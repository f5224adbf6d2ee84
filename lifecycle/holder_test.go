package lifecycle_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/redact"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

// workFor begins a turn of a process in a new session, and closes the session as a hook does.
func workFor(t *testing.T, project string, pid int) (*lifecycle.Store, session.ID) {
	t.Helper()
	h := lifecycle.HolderOf(pid, "agent")
	store, _, err := lifecycle.Init(project, lifecycle.Options{Now: clock(), For: h})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close(t.Context()) })
	sess, err := store.CreateWith(t.Context(), "claude-0f8fad5b", func(_ session.ID, header *session.Header) {
		header.Origin, header.Holder = session.OriginHook, h
	})
	require.NoError(t, err)
	_, _, err = sess.Checkpoint(t.Context(), checkpoint.BeforeTask, "prompt-1")
	require.NoError(t, err)
	require.NoError(t, sess.Append(&session.Message{Role: session.RoleAssistant, ToolCalls: []session.ToolCall{{ID: "c1", Name: "Bash"}}}))
	require.NoError(t, sess.Close(t.Context()))
	return store, sess.ID()
}

// The session of an agent's turn is held for the agent between two processes of ours: it is active
// and nobody else gets it. The agent's next hook opens it as it is.
func TestASessionIsHeldForAnAgent(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	mine, id := workFor(t, project, os.Getpid())
	store := storeIn(t, project)
	owner, err := store.Holder(id)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), owner.PID)
	require.Equal(t, "agent", owner.Command)
	infos, err := store.List()
	require.NoError(t, err)
	require.Equal(t, session.StatusActive, infos[0].Status)
	for _, err := range []error{errOf(store.Open(id)), errOf(store.Delete(t.Context(), id)), errOf(store.DeleteCompleted(t.Context(), id))} {
		busy := &lifecycle.BusyError{}
		require.ErrorAs(t, err, &busy)
		require.Equal(t, os.Getpid(), busy.Owner.PID)
	}
	st, _, err := store.Read(id)
	require.NoError(t, err)
	require.Empty(t, st.Header().ExitReason)

	sess, err := mine.Open(id)
	require.NoError(t, err)
	require.Equal(t, session.StatusActive, sess.State().Status())
	require.Empty(t, sess.State().Header().ExitReason, "no turn crashed")
	put(t, store.Project(), "a", "new")
	e, _, err := sess.Checkpoint(t.Context(), checkpoint.AfterTask, "prompt-1")
	require.NoError(t, err)
	require.False(t, e.Contested(), "the turn is one task, whichever process began it")
	require.Len(t, e.By, 1)
	n := 0
	for _, err := range sess.Messages() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 1, n, "the agent answers its open call itself")
	require.NoError(t, sess.Change(session.TriggerPaused, func(e *session.Edit) error {
		e.Header().Status, e.Header().Holder = session.StatusPaused, nil
		return nil
	}))
	require.NoError(t, sess.Close(t.Context()))
	owner, err = store.Holder(id)
	require.NoError(t, err)
	require.Nil(t, owner)
	require.NoError(t, errOf(store.Delete(t.Context(), id)))
}

// A turn whose process has ended was interrupted, also if another process has its number.
func TestAnAgentThatEndedHoldsNothing(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	project := t.TempDir()
	_, id := workFor(t, project, cmd.Process.Pid)
	store := storeIn(t, project)
	owner, err := store.Holder(id)
	require.NoError(t, err)
	require.NotNil(t, owner)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	owner, err = store.Holder(id)
	require.NoError(t, err)
	require.Nil(t, owner)
	infos, err := store.List()
	require.NoError(t, err)
	require.Equal(t, session.StatusInterrupted, infos[0].Status)
	_, again, err := store.Unfinished("claude-0f8fad5b")
	require.NoError(t, err)
	require.False(t, again, "no run resumes it")
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.Equal(t, session.ExitCrashed, sess.State().Header().ExitReason)
	require.NoError(t, sess.Close(t.Context()))
}

// Sessions that no run made stay until import_retention is set, and take no place of the others.
func TestRetentionIsOfRuns(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	var foreign []session.ID
	for _, origin := range []session.Origin{session.OriginHook, session.OriginImport, session.OriginRun, session.OriginRun} {
		sess, err := store.CreateWith(t.Context(), "auth", func(_ session.ID, h *session.Header) { h.Origin = origin })
		require.NoError(t, err)
		require.NoError(t, sess.Complete(t.Context()))
		require.NoError(t, sess.Close(t.Context()))
		if origin != session.OriginRun {
			foreign = append(foreign, sess.ID())
		}
	}
	gone, err := store.Prune(t.Context(), lifecycle.Retention{Sessions: 2, Bytes: 1 << 30}, true)
	require.NoError(t, err)
	require.Empty(t, gone)
	gone, err = store.Prune(t.Context(), lifecycle.Retention{Sessions: 1, Age: 1, Bytes: 1}, true)
	require.NoError(t, err)
	require.Len(t, gone, 2, "both are of runs")
	gone, err = store.Prune(t.Context(), lifecycle.Retention{Imported: 1}, false)
	require.NoError(t, err)
	require.Len(t, gone, 1)
	require.Equal(t, foreign[0], gone[0].ID)
}

// An imported session is not the latest one: nobody has worked in it here.
func TestLatestIsNotImported(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	worked := made(t, store, "auth")
	sess, err := store.CreateWith(t.Context(), "claude-0f8fad5b", func(_ session.ID, h *session.Header) { h.Origin = session.OriginImport })
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
	for range 2 {
		id, err := store.Latest("")
		require.NoError(t, err)
		require.Equal(t, worked, id)
		require.NoError(t, os.RemoveAll(path(store, "sessions", "latest")))
	}
}

// A session of hooks is the latest as soon as it was changed after others were made. One that was only
// looked at is not, and a session of a run stays the latest by being made.
func TestLatestOfHooks(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	var ids []session.ID
	for _, origin := range []session.Origin{session.OriginHook, session.OriginHook, session.OriginRun, session.OriginRun} {
		sess, err := store.CreateWith(t.Context(), "auth", func(_ session.ID, h *session.Header) { h.Origin = origin })
		require.NoError(t, err)
		require.NoError(t, sess.Close(t.Context()))
		ids = append(ids, sess.ID())
	}
	latest := func(want, changed session.ID, by func(sess *lifecycle.Session) error) {
		t.Helper()
		sess, err := store.Open(changed)
		require.NoError(t, err)
		require.NoError(t, by(sess))
		require.NoError(t, sess.Close(t.Context()))
		require.NoError(t, sess.Close(t.Context()))
		id, err := store.Latest("")
		require.NoError(t, err)
		require.Equal(t, want, id)
	}
	change := func(sess *lifecycle.Session) error {
		return sess.Pause(t.Context(), session.TriggerPaused, session.ExitInterrupted)
	}
	latest(ids[3], ids[0], func(*lifecycle.Session) error { return nil })
	latest(ids[3], ids[2], change)
	latest(ids[0], ids[0], change)
	latest(ids[1], ids[1], change)
	latest(ids[1], ids[1], change)
	latest(ids[0], ids[0], change)
	latest(ids[0], ids[3], change)
	require.Equal(t, "auth-20260214-5", made(t, store, "auth").String())
	latest(ids[1], ids[1], change)

	own := storeIn(t, filepath.Dir(store.Path()))
	sess, err := own.Open(ids[0])
	require.NoError(t, err)
	require.NoError(t, change(sess))
	require.NoError(t, own.Close(t.Context()), "which closes the session")
	id, err := store.Latest("")
	require.NoError(t, err)
	require.Equal(t, ids[0], id)
}

func errOf[T any](_ T, err error) error { return err }

// The session of an agent is found by the agent's ID, also where another has the same module.
func TestOfAgent(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	var ids []session.ID
	for _, agent := range []string{"0f8fad5b-1", "0f8fad5b-2"} {
		sess, err := store.CreateWith(t.Context(), "claude-0f8fad5b", func(_ session.ID, h *session.Header) { h.AgentSession = agent })
		require.NoError(t, err)
		ids = append(ids, sess.ID())
		require.NoError(t, sess.Close(t.Context()))
	}
	for i, agent := range []string{"0f8fad5b-1", "0f8fad5b-2"} {
		id, err := store.OfAgent("claude-0f8fad5b", agent)
		require.NoError(t, err)
		require.Equal(t, ids[i], id)
	}
	require.ErrorIs(t, errOf(store.OfAgent("claude-0f8fad5b", "0f8fad5b-3")), lifecycle.ErrNotFound)
	require.ErrorIs(t, errOf(store.OfAgent("claude-0", "0f8fad5b-1")), lifecycle.ErrNotFound)
}

// A session that is made for an agent has its name from the begin, with credentials hidden, also where that
// makes it longer than a name may be.
func TestNameOfAnAgentsSession(t *testing.T) {
	t.Parallel()
	hide, err := redact.New([]string{"x"})
	require.NoError(t, err)
	store := storeWith(t, t.TempDir(), lifecycle.Policy{Redact: hide})
	set := func(h *session.Header) { h.Status = session.StatusComplete }
	for _, name := range []string{"make it", strings.Repeat("x", 100), ""} {
		sess, made, err := store.OpenOfAgent(t.Context(), "claude-0f8fad5b", "0f8fad5b-"+name, name, set)
		require.NoError(t, err)
		require.True(t, made)
		meta, err := store.Meta(sess.ID())
		require.NoError(t, err)
		require.NotContains(t, meta.Name, "xx")
		require.Equal(t, name == "", meta.Name == "")
		require.NoError(t, sess.Close(t.Context()))
	}
}

// A copy of a session in another project is of no turn: nobody there waits for the agent. Its own
// session stays held.
func TestACopyIsHeldForNobody(t *testing.T) {
	t.Parallel()
	store, id := workFor(t, t.TempDir(), os.Getpid())
	there := initStore(t)
	for known := range 2 {
		report, err := there.Import(t.Context(), gather(t, store, id))
		require.NoError(t, err)
		require.Equal(t, known == 1, report.Sessions[0].Known)
		copied, err := session.ParseID(report.Sessions[0].ID)
		require.NoError(t, err)
		owner, err := there.Holder(copied)
		require.NoError(t, err)
		require.Nil(t, owner)
		st, _, err := there.Read(copied)
		require.NoError(t, err)
		require.Nil(t, st.Header().Holder)
	}
	owner, err := store.Holder(id)
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), owner.PID)
}
