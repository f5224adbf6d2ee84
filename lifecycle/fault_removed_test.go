package lifecycle_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/session/record"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// second is another process of a store's project, after .lopen was removed.
func second(t *testing.T, store *lifecycle.Store) *lifecycle.Store {
	t.Helper()
	other, _, err := lifecycle.Init(filepath.Dir(store.Path()), lifecycle.Options{Now: clock(), Command: "lopen run auth"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	return other
}

// fencedBy requires a pause that says who holds what was lost.
func fencedBy(t *testing.T, err error, holder string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, lifecycle.ClassFenced, lifecycle.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, holder)
}

// After a removal another process makes a session that has the same ID, before this one
// notices, or while it is paused for it.
func TestFault37AnotherSessionOfTheID(t *testing.T) {
	t.Parallel()
	for _, noticed := range []bool{false, true} {
		for _, held := range []bool{true, false} {
			store := initStore(t)
			id := made(t, store, "auth")
			sess, err := store.Open(id) // its segment's name is not that of a new session's
			require.NoError(t, err)
			require.NoError(t, sess.Flush(t.Context()))
			require.NoError(t, os.RemoveAll(store.Path()))
			accepted(t, sess.Change(session.TriggerStepCompleted, turns(2)))
			if noticed {
				require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(sess.Sync(t.Context())))
			}
			other := second(t, store)
			theirs := create(t, other, "auth")
			require.Equal(t, id, theirs.ID())
			require.NoError(t, theirs.Change(session.TriggerStepCompleted, turns(7)))
			require.NoError(t, theirs.Flush(t.Context()))
			why := "lopen run auth" // who holds it
			if !held {
				why = "another"
				require.NoError(t, theirs.Close(t.Context()))
			}

			require.Error(t, sess.Sync(t.Context()))
			fencedBy(t, sess.Unpause(t.Context()), why)
			if held {
				require.NoError(t, theirs.Change(session.TriggerStepCompleted, turns(8)))
				require.NoError(t, theirs.Sync(t.Context()))
			}
			st, _, err := other.Read(id)
			require.NoError(t, err, "it stays where it is")
			require.GreaterOrEqual(t, st.Header().TurnCount, 7)
			require.NoDirExists(t, path(other, "corrupted"))
		}
	}
}

// The same at the moment at which this one makes its own again.
func TestFault37AnotherSessionWhileItIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		b := newBed(t, crashfs.Ext4)
		require.NoError(t, b.disk.FS().RemoveAll(".lopen"))
		accepted(t, b.save(10))
		require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(b.sync()))
		var theirs *lifecycle.Session
		b.watch(serial(func(op crashfs.Op) crashfs.Fault {
			if theirs == nil && op.Call == "mkdir" && op.Name == ".lopen/modules" {
				b.disk.SetHook(nil)
				other, err := lifecycle.InitOn(b.disk.FS(), lifecycle.Options{Command: "lopen run sim", Now: simOptions.Now})
				require.NoError(t, err)
				theirs, err = other.Create(t.Context(), "sim")
				require.NoError(t, err)
				if !held {
					require.NoError(t, theirs.Close(t.Context()))
				}
			}
			return crashfs.Fault{}
		}))
		why := "another session has its ID"
		if held {
			why = "lopen run sim"
		}
		fencedBy(t, b.sess.Unpause(t.Context()), why)
		require.Equal(t, b.id, theirs.ID())
		require.Equal(t, theirs.Incarnation(), b.store.Incarnation(b.id), "it stays where it is")
		if held {
			require.NoError(t, theirs.Change(session.TriggerStepCompleted, turns(8)))
			require.NoError(t, theirs.Sync(t.Context()))
		}
	}
}

func TestFault38ModuleLockLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose  func(t *testing.T, store *lifecycle.Store, lock string)
		taken bool // by another run, before this one notices
		class lifecycle.Class
	}{
		"the store, nobody came":   {func(t *testing.T, s *lifecycle.Store, _ string) { require.NoError(t, os.RemoveAll(s.Path())) }, false, lifecycle.ClassRemoved},
		"the store, somebody came": {func(t *testing.T, s *lifecycle.Store, _ string) { require.NoError(t, os.RemoveAll(s.Path())) }, true, lifecycle.ClassRemoved},
		"the store was moved": {func(t *testing.T, s *lifecycle.Store, _ string) {
			require.NoError(t, os.Rename(s.Path(), s.Path()+".old"))
		}, false, lifecycle.ClassRemoved},
		"the modules, nobody came": {func(t *testing.T, s *lifecycle.Store, lock string) {
			require.NoError(t, os.RemoveAll(filepath.Dir(filepath.Dir(lock))))
		}, false, 0},
		"the lock, somebody came": {func(t *testing.T, _ *lifecycle.Store, lock string) { require.NoError(t, os.Remove(lock)) }, true, lifecycle.ClassFenced},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			lock, err := store.LockModule("auth")
			require.NoError(t, err)
			sess := create(t, store, "auth")
			require.NoError(t, sess.Flush(t.Context()))
			c.lose(t, store, path(store, "modules", "auth", ".lock"))
			other := second(t, store)
			if c.taken {
				_, err := other.LockModule("auth")
				require.NoError(t, err)
			}
			accepted(t, sess.Change(session.TriggerStepCompleted, turns(2)))
			err = sess.Sync(t.Context())
			require.Equal(t, c.class, lifecycle.ClassOf(err), "before its next write: %v", err)
			err = sess.Unpause(t.Context())
			if c.taken {
				require.Equal(t, lifecycle.ClassFenced, lifecycle.ClassOf(err), "%v", err)
				return
			}
			require.NoError(t, err)
			_, err = other.LockModule("auth")
			require.ErrorIs(t, err, lifecycle.ErrBusy, "it was taken again")
			require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(3)))
			require.NoError(t, sess.Sync(t.Context()))
			require.NoError(t, lock.Unlock())
			again, err := other.LockModule("auth")
			require.NoError(t, err)
			require.NoError(t, again.Unlock())
		})
	}
}

// Sync and Flush report the removal, although nothing is due.
func TestFault32NoticedWithoutASave(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, os.RemoveAll(store.Path()))
	require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(sess.Sync(t.Context())))
	require.NoError(t, sess.Unpause(t.Context()))
	_, _, err := store.Read(sess.ID())
	require.NoError(t, err)
}

// A session that was made again is a new incarnation, whose checkpoints begin anew.
func TestFault32MadeAgainIsANewIncarnation(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	project := filepath.Dir(store.Path())
	write(t, filepath.Join(project, "a.txt"), "one")
	sess := create(t, store, "auth")
	first := sess.Incarnation()
	require.Regexp(t, "^[0-9a-f]{16}$", first)
	_, _, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, os.RemoveAll(store.Path()))
	write(t, filepath.Join(project, "a.txt"), "two")

	_, _, err = sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.Equal(t, lifecycle.ClassRemoved, lifecycle.ClassOf(err), "%v", err)
	require.NoError(t, sess.Unpause(t.Context()))
	second := sess.Incarnation()
	require.Regexp(t, "^[0-9a-f]{16}$", second)
	require.NotEqual(t, first, second)
	_, changes, err := sess.Checkpoint(t.Context(), checkpoint.Manual, "")
	require.NoError(t, err)
	require.Len(t, changes, 1, "since what was last seen, which is in memory")
	write(t, filepath.Join(project, "a.txt"), "three")
	ids := cps(t, store)
	require.Len(t, ids, 1)
	_, err = sess.Rewind(t.Context(), ids[0].ID, rewind.Options{Files: true, Force: true})
	require.NoError(t, err)

	fork, err := store.Fork(t.Context(), sess.ID(), lifecycle.ForkOptions{})
	require.NoError(t, err)
	require.NotEqual(t, second, fork.Incarnation())
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, second, again.Incarnation(), "a resumed session is the same one")
	infos, err := store.List()
	require.NoError(t, err)
	for _, info := range infos {
		if info.ID == sess.ID() {
			require.Equal(t, second, info.Incarnation)
		}
	}
	var events []record.Event
	require.NoError(t, store.Log(sess.ID(), 0, func(r record.Record) error {
		events = append(events, r.Event)
		return nil
	}))
	require.Equal(t, record.EventRecreated, events[0])
}
