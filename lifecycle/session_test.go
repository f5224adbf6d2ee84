package lifecycle_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestSaveSyncRead(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	sess := create(t, storeIn(t, project), "auth")
	other := storeIn(t, project)
	for i := 1; i <= 3; i++ {
		e := sess.State().Edit()
		e.Header().TurnCount = i
		e.AppendIteration(session.Iteration{Task: "a", Attempt: i, StartedAt: day, InputTokens: 5})
		e.Put(session.Task{ID: "a", Kind: session.KindTask, Name: "A", State: session.TaskInProgress, Attempts: i})
		e.SetRoots([]string{"a"})
		next, err := e.State()
		require.NoError(t, err)
		require.NoError(t, sess.Save(next, session.TriggerStepCompleted))
		require.Same(t, next, sess.State())
		require.NoError(t, sess.Sync(t.Context()))

		st, seq, err := other.Read(sess.ID())
		require.NoError(t, err)
		require.EqualValues(t, i+1, seq)
		require.Equal(t, i, st.Header().TurnCount)
		require.Equal(t, i, st.NumIterations())
		task, ok := st.Task("a")
		require.True(t, ok)
		require.Equal(t, i, task.Attempts)
	}
}

func TestReopen(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(7)))
	require.NoError(t, sess.Pause(t.Context(), session.TriggerPaused, session.ExitInterrupted))
	require.NoError(t, sess.Close(t.Context()))
	require.NoError(t, sess.Close(t.Context()), "Close is idempotent")
	require.ErrorIs(t, sess.Change(session.TriggerStepCompleted, turns(8)), lifecycle.ErrClosed)

	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	h := again.State().Header()
	require.Equal(t, 7, h.TurnCount)
	require.Equal(t, session.StatusPaused, h.Status)
	require.Equal(t, session.ExitInterrupted, h.ExitReason, "who said why it ended has not crashed")
}

func TestReopenAfterKill(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	p := start(t, "hold", store.Project().Name())
	id, err := session.ParseID(p.line(t)) // printed when Sync has acknowledged
	require.NoError(t, err)
	dir := path(store, "sessions", id.String())
	require.NoError(t, p.Process.Kill())
	require.Error(t, p.Wait())
	before, err := os.ReadFile(filepath.Join(dir, "state.json"))
	require.NoError(t, err)
	// What a kill in the middle of a replacement leaves behind.
	write(t, filepath.Join(dir, ".tmp-state.json-1"), "{")

	sess, err := store.Open(id)
	require.NoError(t, err)
	st := sess.State()
	require.Equal(t, session.ExitCrashed, st.Header().ExitReason)
	require.Equal(t, session.StatusActive, st.Status())
	require.Equal(t, 20, st.Header().TurnCount)
	require.Equal(t, 20, st.NumIterations())
	require.EqualValues(t, 200, st.Totals().OutputTokens)
	after, err := os.ReadFile(filepath.Join(dir, "state.json"))
	require.NoError(t, err)
	require.Equal(t, before, after, "opening alone writes no state")
	require.NoFileExists(t, filepath.Join(dir, ".tmp-state.json-1"))

	require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.AppendIteration(session.Iteration{Task: "a", Attempt: 21, StartedAt: day})
		return nil
	}))
	require.NoError(t, sess.Close(t.Context()))
	st, _, err = store.Read(id)
	require.NoError(t, err)
	require.Equal(t, 21, st.NumIterations())
}

// A kill between the replacements of the readable files, or before any, leaves
// them behind the journal, each by itself: what was acknowledged is in the journal.
func TestReadableFilesAreBehind(t *testing.T) {
	t.Parallel()
	for _, behind := range [][]string{{"state.json"}, {"metrics.json"}, {"state.json", "metrics.json"}} {
		store := initStore(t)
		sess := create(t, store, "auth")
		before := map[string]string{}
		for _, name := range behind {
			before[name] = tree(t, path(store, "sessions", sess.ID().String()))[name]
		}
		for i := range 3 {
			require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
				e.AppendIteration(session.Iteration{Task: "a", Attempt: i, StartedAt: day, CostUSD: 1})
				e.Header().TurnCount = i
				return nil
			}))
			require.NoError(t, sess.Flush(t.Context()))
		}
		require.NoError(t, sess.Close(t.Context()))
		for name, content := range before {
			write(t, path(store, "sessions", sess.ID().String(), name), content)
		}
		st, seq, err := store.Read(sess.ID())
		require.NoError(t, err)
		require.EqualValues(t, 5, seq, "the last one is that of the close")
		for range 2 { // the second time from what the first one copied
			again, err := store.Open(sess.ID())
			require.NoError(t, err)
			for _, st := range []*session.State{st, again.State()} {
				require.Equal(t, 3, st.NumIterations())
				require.Equal(t, 2, st.Header().TurnCount)
				require.EqualValues(t, 3, st.Totals().CostUSD)
			}
			require.NoError(t, again.Close(t.Context()))
		}
	}
}

func TestSecondOpener(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	p := start(t, "hold", store.Project().Name())
	id, err := session.ParseID(p.line(t))
	require.NoError(t, err)

	_, err = store.Open(id)
	var busy *lifecycle.BusyError
	require.ErrorAs(t, err, &busy)
	require.ErrorIs(t, err, lifecycle.ErrBusy)
	require.Equal(t, p.Process.Pid, busy.Owner.PID)
	require.Equal(t, "lopen run auth", busy.Owner.Command)
	owner, err := store.Holder(id)
	require.NoError(t, err)
	require.NotNil(t, owner)
	require.Equal(t, p.Process.Pid, owner.PID)
	_, _, err = store.Read(id)
	require.NoError(t, err, "reading takes no lock")

	for range 2 { // asking twice is asking once
		asked, err := store.RequestPause(t.Context(), id)
		require.NoError(t, err)
		require.True(t, asked)
	}
	require.NoError(t, p.in.Close())
	require.Equal(t, "true", p.line(t), "the holder sees the request")
	require.NoError(t, p.Wait())

	owner, err = store.Holder(id)
	require.NoError(t, err)
	require.Nil(t, owner)
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.False(t, sess.PauseRequested(), "a request goes to the holder that was asked")
	_, err = store.Open(id)
	require.ErrorAs(t, err, &busy, "one process excludes itself too")
	require.Equal(t, os.Getpid(), busy.Owner.PID)
}

func TestAWaitIsEndedFromElsewhere(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	id := sess.ID()
	require.False(t, sess.WakeRequested())
	ended := make(chan struct{})
	go func() { // it waits, and looks for requests
		defer close(ended)
		for !sess.WakeRequested() {
			time.Sleep(time.Millisecond)
		}
	}()
	woken, err := store.RequestWake(t.Context(), id)
	require.NoError(t, err)
	require.True(t, woken)
	<-ended
	require.False(t, sess.WakeRequested(), "once for each request")

	require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().ActiveTask = "a"
		return nil
	}))
	require.NoError(t, sess.Flush(t.Context()))
	woken, err = store.RequestWake(t.Context(), id)
	require.NoError(t, err)
	require.False(t, woken, "a task is in progress")
	require.NoError(t, sess.Close(t.Context()))
	woken, err = store.RequestWake(t.Context(), id)
	require.NoError(t, err)
	require.False(t, woken, "nobody holds it")
}

func TestARequestToEndAWaitThatIsNoneIsTakenBack(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	woken, err := store.RequestWake(ctx, sess.ID())
	require.NoError(t, err)
	require.False(t, woken)
	require.False(t, sess.WakeRequested())
}

func TestRequestPauseOfWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	asked, err := store.RequestPause(t.Context(), id)
	require.NoError(t, err)
	require.False(t, asked)
	st, _, err := store.Read(id)
	require.NoError(t, err)
	require.Equal(t, session.StatusPaused, st.Status())
	require.Equal(t, session.ExitPaused, st.Header().ExitReason)

	sess, err := store.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Complete(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	_, err = store.RequestPause(t.Context(), id)
	require.NoError(t, err)
	st, _, err = store.Read(id)
	require.NoError(t, err)
	require.Equal(t, session.StatusComplete, st.Status(), "what is complete stays complete")

	id.Counter = 9
	_, err = store.RequestPause(t.Context(), id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

func TestComplete(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Complete(t.Context()))
	st, _, err := store.Read(sess.ID())
	require.NoError(t, err, "durable when Complete returns")
	h := st.Header()
	require.Equal(t, session.StatusComplete, h.Status)
	require.Equal(t, session.PhaseComplete, h.Phase)
	require.Equal(t, session.ExitComplete, h.ExitReason)
	require.True(t, h.CompletedAt.After(h.CreatedAt))
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, session.ExitComplete, again.State().Header().ExitReason)
	_, found, err := store.Unfinished("auth")
	require.NoError(t, err)
	require.False(t, found)
}

func TestChangeFromManyGoroutines(t *testing.T) {
	t.Parallel()
	const goroutines, each = 16, 50
	store := initStore(t)
	sess := create(t, store, "auth")
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for range each {
				if err := sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
					e.Header().TurnCount++
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, sess.Sync(t.Context()))
	st, seq, err := store.Read(sess.ID())
	require.NoError(t, err)
	require.Equal(t, goroutines*each, st.Header().TurnCount)
	require.LessOrEqual(t, seq, uint64(goroutines*each+1))
}

// A change that fails or breaks a rule changes nothing and saves nothing.
func TestChangeThatFails(t *testing.T) {
	t.Parallel()
	sess := create(t, initStore(t), "auth")
	before := sess.State()
	require.ErrorIs(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().TurnCount = 5
		return os.ErrProcessDone
	}), os.ErrProcessDone)
	var invalid *session.InvalidError
	require.ErrorAs(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().Phase = "dreaming"
		return nil
	}), &invalid)
	require.Same(t, before, sess.State())
}

// The lease is the file of that name: a holder whose file was replaced has lost
// it, whatever its flock says. Unpause takes it again where the files are as they were.
func TestLeaseReplacedUnderTheHolder(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t *testing.T, dir string){
		"the file": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, ".lock")))
			write(t, filepath.Join(dir, ".lock"), "")
		},
		"removed": func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, ".lock")))
		},
		"the folder": func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(dir, dir+"-away"))
			require.NoError(t, os.CopyFS(dir, os.DirFS(dir+"-away")))
		},
		"an older copy": func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Rename(dir+"-old", dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			sess := create(t, store, "auth")
			dir := path(store, "sessions", sess.ID().String())
			require.NoError(t, os.CopyFS(dir+"-old", os.DirFS(dir)))
			if name == "an older copy" {
				require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(9)))
				require.NoError(t, sess.Flush(t.Context()))
			}
			_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
			require.NoError(t, err)
			require.NoError(t, sess.Flush(t.Context())) // nothing is written from now on
			replace(t, dir)
			before, err := os.ReadFile(filepath.Join(dir, "state.json"))
			require.NoError(t, err)
			accepted(t, sess.Change(session.TriggerStepCompleted, turns(1)))
			err = sess.Sync(t.Context())
			var paused *lifecycle.PausedError
			require.ErrorAs(t, err, &paused)
			require.Equal(t, "fenced", lifecycle.ClassOf(err).String())
			require.ErrorAs(t, sess.Change(session.TriggerStepCompleted, turns(2)), &paused)
			after, err := os.ReadFile(filepath.Join(dir, "state.json"))
			require.NoError(t, err)
			require.Equal(t, before, after, "nothing was written after the lease was lost")
			if name == "an older copy" {
				require.ErrorContains(t, sess.Unpause(t.Context()), "its files are at record 1 and this process is at 3")
				return
			}
			_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
			require.Error(t, err)
			require.NoError(t, sess.Unpause(t.Context()))
			cp, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
			require.NoError(t, err)
			require.NoError(t, sess.Close(t.Context()))
			r, err := store.Verify(sess.ID())
			require.NoError(t, err)
			require.Equal(t, repair.Intact, r.Condition)
			st, _, err := store.Read(sess.ID())
			require.NoError(t, err)
			require.Equal(t, 2, st.Header().TurnCount)
			cps, err := store.Checkpoints(nil)
			require.NoError(t, err)
			defer cps.Close()
			_, err = cps.Find(cp.ID)
			require.NoError(t, err, "it is in the folder that has the name")
		})
	}
}

// accepted requires that a change was accepted. A failing commit may pause the session
// before the call returns or after.
func accepted(t *testing.T, err error) {
	t.Helper()
	var paused *lifecycle.PausedError
	if err != nil {
		require.ErrorAs(t, err, &paused)
	}
}

// A caller may save a State that does not follow from the last one. What is on
// disk then is that one, its iterations included, though their number is the same.
func TestSaveOfAnotherBranch(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	base := sess.State()
	for i, task := range []string{"a", "b"} {
		e := base.Edit()
		e.AppendIteration(session.Iteration{Task: task, Attempt: 1, StartedAt: day, Duration: time.Duration(i + 1)})
		next, err := e.State()
		require.NoError(t, err)
		require.NoError(t, sess.Save(next, session.TriggerTaskCompleted))
		require.NoError(t, sess.Sync(t.Context()))
		st, _, err := store.Read(sess.ID())
		require.NoError(t, err)
		require.Equal(t, 1, st.NumIterations())
		for it := range st.Iterations() {
			require.Equal(t, task, it.Task)
		}
	}
}
