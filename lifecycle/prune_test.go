package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/rewind"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// lagging is a store as a killed process leaves it. Its first session was completed, and
// opened again: it is active by its journal, and complete by its state.json, which was
// not replaced yet. The second one is complete, and older.
func lagging(t *testing.T) (store *lifecycle.Store, resumed, complete session.ID) {
	t.Helper()
	old := initStore(t)
	complete = completed(t, old, "auth")
	sess := create(t, old, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, largePlan))
	require.NoError(t, sess.Complete(t.Context()))
	require.NoError(t, sess.Close(t.Context()))
	shown := path(old, "sessions", sess.ID().String(), "state.json")
	behind, err := os.ReadFile(shown)
	require.NoError(t, err)
	sess, err = old.Open(sess.ID())
	require.NoError(t, err)
	require.NoError(t, sess.Change(session.TriggerStepCompleted, active))
	require.NoError(t, sess.Flush(t.Context())) // or the copy meets what is being replaced
	project := t.TempDir()                      // a copy has no locks, as after a kill
	require.NoError(t, os.CopyFS(project, os.DirFS(filepath.Dir(old.Path()))))
	write(t, filepath.Join(project, ".lopen/sessions", sess.ID().String(), "state.json"), string(behind))
	store = storeIn(t, project)
	infos, err := store.List()
	require.NoError(t, err)
	for _, info := range infos {
		require.Equal(t, session.StatusComplete, info.Status, "what a listing shows lags behind")
	}
	return store, sess.ID(), complete
}

// largePlan makes a state.json that is too large to be replaced at each save.
func largePlan(e *session.Edit) error {
	e.Header().Data = strictjson.Value(`{"plan":"` + strings.Repeat("x", 1<<20-len(`{"plan":""}`)) + `"}`)
	return nil
}

// active resumes a session that was complete.
func active(e *session.Edit) error {
	e.Header().Status, e.Header().CompletedAt = session.StatusActive, time.Time{}
	return nil
}

func TestPruneReadsSessionsWhole(t *testing.T) {
	t.Parallel()
	store, resumed, complete := lagging(t)
	for _, limit := range []lifecycle.Retention{{Sessions: 1}, {Bytes: store.Bytes(complete)}} {
		for _, dryRun := range []bool{true, false} {
			gone, err := store.Prune(t.Context(), limit, dryRun)
			require.NoError(t, err)
			require.Empty(t, gone, "one session alone is complete")
		}
	}
	for _, dryRun := range []bool{true, false} {
		gone, err := store.Prune(t.Context(), lifecycle.Retention{Age: time.Nanosecond}, dryRun)
		require.NoError(t, err)
		require.Equal(t, []session.ID{complete}, retiredIDs(gone))
	}
	st, _, err := store.Read(resumed)
	require.NoError(t, err)
	require.Equal(t, session.StatusActive, st.Status())
}

func TestDeleteCompletedReadsSessionsWhole(t *testing.T) {
	t.Parallel()
	store, resumed, complete := lagging(t)
	bytes, err := store.DeleteCompleted(t.Context(), resumed)
	require.ErrorIs(t, err, lifecycle.ErrNotComplete)
	require.Zero(t, bytes)
	_, err = store.DeleteCompleted(t.Context(), complete)
	require.NoError(t, err)
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.Equal(t, resumed, infos[0].ID)
}

// Prune quarantines a damaged session, as Open does. It does not move it to the trash,
// where it would be deleted one day.
func TestPruneQuarantinesDamaged(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	whole, damaged := completed(t, store, "auth"), completed(t, store, "auth")
	ruin(t, path(store, "sessions", damaged.String()))
	limit := lifecycle.Retention{Age: time.Nanosecond}
	gone, err := store.Prune(t.Context(), limit, true)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.ErrorContains(t, err, damaged.String())
	require.Equal(t, []session.ID{whole}, retiredIDs(gone))
	require.DirExists(t, path(store, "sessions", damaged.String()), "a dry run")
	gone, err = store.Prune(t.Context(), limit, false)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.ErrorContains(t, err, "the session was moved to .lopen/corrupted/")
	require.Equal(t, []session.ID{whole}, retiredIDs(gone))
	quarantined, err := filepath.Glob(path(store, "corrupted", damaged.String()+"-*Z"))
	require.NoError(t, err)
	require.Len(t, quarantined, 1)
	trash, err := store.Trash()
	require.NoError(t, err)
	require.Equal(t, []session.ID{whole}, retiredIDs(trash))
}

// The state.json of a session that was edited outside says that the session is complete,
// but nobody has accepted the edit.
func TestPruneLeavesEdited(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	name := path(store, "sessions", id.String(), "state.json")
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	write(t, name, strings.Replace(string(data), `"status":"complete"`, `"status": "complete"`, 1))
	gone, err := store.Prune(t.Context(), lifecycle.Retention{Age: time.Nanosecond}, false)
	require.NoError(t, err)
	require.Empty(t, gone)
	require.DirExists(t, path(store, "sessions", id.String()))
}

// Emptying the trash takes the lease, as everything that removes a session.
func TestTrashInUseStays(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	_, err := store.Prune(t.Context(), lifecycle.Retention{Age: time.Nanosecond}, false)
	require.NoError(t, err)
	root, err := writer.OpenFS(path(store, "trash", id.String()))
	require.NoError(t, err)
	defer root.Close()
	lease, err := writer.TryLock(root, ".lock", writer.Owner{})
	require.NoError(t, err)
	limit := lifecycle.Retention{Trash: time.Nanosecond}
	gone, err := store.Prune(t.Context(), limit, false)
	require.NoError(t, err)
	require.Empty(t, gone)
	require.DirExists(t, path(store, "trash", id.String()))
	require.NoError(t, lease.Unlock())
	require.Equal(t, []session.ID{id}, retiredIDs(emptied(t, store)))
}

// A note that is damaged or that a newer version wrote does not say when it was written.
func TestTrashWithoutANoteStays(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	_, err := store.Prune(t.Context(), lifecycle.Retention{Age: time.Nanosecond}, false)
	require.NoError(t, err)
	note := path(store, "trash", id.String()+".json")
	written, err := os.ReadFile(note)
	require.NoError(t, err)
	for _, content := range []string{
		string(envelope.Checksum.Append([]byte(`{"schemaVersion":2,"at":"2001-01-01T00:00:00Z","why":"x"`))),
		strings.Replace(string(written), `"at":"2026`, `"at":"2006`, 1),
	} {
		write(t, note, content)
		require.Empty(t, emptied(t, store))
	}
}

// A session that somebody resumes after prune has listed it is judged again under
// its lease.
func TestPruneJudgesAgainUnderTheLease(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*session.Edit) error{
		"active": active,
		"completed anew": func(e *session.Edit) error {
			e.Header().CompletedAt = day.Add(time.Hour)
			return nil
		},
	} {
		b := newBed(t, crashfs.Ext4)
		require.NoError(t, b.sess.Complete(t.Context()))
		require.NoError(t, b.sess.Close(t.Context()))
		other, err := lifecycle.OpenOn(b.disk.FS(), simOptions)
		require.NoError(t, err)
		met := false
		b.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.Call == "mkdir" && op.Name == ".lopen/trash" {
				met = true
				sess, err := other.Open(b.id)
				require.NoError(t, err)
				require.NoError(t, sess.Change(session.TriggerStepCompleted, change))
				require.NoError(t, sess.Close(t.Context()))
			}
			return crashfs.Fault{}
		})
		gone, err := laterStore(t, b.disk).Prune(t.Context(), lifecycle.Retention{Age: time.Nanosecond}, false)
		require.NoError(t, err, what)
		require.Empty(t, gone, what)
		require.True(t, met)
		_, err = b.disk.FS().Lstat(".lopen/sessions/" + b.id.String())
		require.NoError(t, err, what)
	}
}

// The next holder of a session whose rewind was cut off has to finish it: it stays where
// it is found, although it is complete.
func TestPruneLeavesABegunRewind(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	store, err := lifecycle.InitOn(disk.FS(), simOptions)
	require.NoError(t, err)
	sess, ids := agentWorked(t, store, "sim")
	require.NoError(t, sess.Complete(t.Context()))
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "rename" && !strings.HasPrefix(op.Name, ".lopen") {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	})
	_, err = sess.Rewind(t.Context(), ids[0], rewind.Options{Files: true, Force: true}) // else it is taken back
	require.Error(t, err)
	require.NoError(t, sess.Close(t.Context()))
	disk.SetHook(nil)
	limit := lifecycle.Retention{Age: time.Nanosecond}
	gone, err := laterStore(t, disk).Prune(t.Context(), limit, false)
	require.NoError(t, err)
	require.Empty(t, gone)
	next, err := store.Open(sess.ID())
	require.NoError(t, err)
	require.Equal(t, session.StatusComplete, next.State().Status())
	require.NoError(t, next.Close(t.Context()))
	gone, err = laterStore(t, disk).Prune(t.Context(), limit, false)
	require.NoError(t, err)
	require.Len(t, gone, 1, "it is finished")
}

// A listing shows what a session is, however large its plan: a run that looks for an
// unfinished session goes by that.
func TestStatusIsShownAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, err := lifecycle.InitOn(crashfs.New(crashfs.Ext4).FS(), simOptions)
		require.NoError(t, err)
		sess, err := store.Create(t.Context(), "sim")
		require.NoError(t, err)
		require.NoError(t, sess.Change(session.TriggerStepCompleted, largePlan))
		require.NoError(t, sess.Complete(t.Context()))
		require.NoError(t, sess.Close(t.Context()))
		sess, err = store.Open(sess.ID())
		require.NoError(t, err)
		require.NoError(t, sess.Change(session.TriggerStepCompleted, active))
		require.NoError(t, sess.Sync(t.Context()))
		synctest.Wait()
		all, err := store.List()
		require.NoError(t, err)
		require.Equal(t, session.StatusActive, all[0].Status)
		seq := all[0].Seq
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
		require.NoError(t, sess.Sync(t.Context()))
		synctest.Wait()
		all, err = store.List()
		require.NoError(t, err)
		require.Equal(t, seq, all[0].Seq, "what is no change of the status waits until there is more of it")
		require.NoError(t, store.Close(t.Context()))
	})
}
