package lifecycle_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/history"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/lifecycle/wire"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// TestPowerCutWhileRecovering cuts the power at every call: the new session is not
// there or it is whole, and the damaged one never changes.
func TestPowerCutWhileRecovering(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, mode)
			accepted(t, b.save(10))
			require.NoError(t, b.close())
			root := b.disk.FS()
			file := ".lopen/sessions/" + b.id.String() + "/state.json"
			f, err := root.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0o600)
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())
			folder := ".lopen/sessions/" + b.id.String()
			want := diskTree(t, root, folder)
			b.capture.Store(true)
			r, err := b.store.Recover(t.Context(), b.id.String(), repair.JournalAlone, false)
			require.NoError(t, err)
			b.take("the end")
			require.Equal(t, want, diskTree(t, root, folder))
			delete(want, folder+"/.lock") // its record is for messages and was never synced
			absent, whole := 0, 0
			for i, p := range b.points {
				for _, v := range outcomes(p.disk, i) {
					crashStates.Add(1)
					what := fmt.Sprintf("cut before %q, %s", p.op, v.Name)
					disk := p.disk.Crash(v)
					store, err := lifecycle.OpenOn(disk.FS(), simOptions)
					require.NoError(t, err, what)
					have := diskTree(t, disk.FS(), folder)
					delete(have, folder+"/.lock")
					require.Equal(t, want, have, what)
					infos, err := store.List()
					require.NoError(t, err, what)
					if len(infos) == 1 {
						absent++
						require.Less(t, i, len(b.points)-1, "what was acknowledged is there: %s", what)
						again, err := store.Recover(t.Context(), b.id.String(), repair.JournalAlone, false)
						require.NoError(t, err, what)
						require.NotEqual(t, b.id, again.ID, what)
						continue
					}
					whole++
					sess, err := store.Open(r.ID)
					require.NoError(t, err, what)
					require.Equal(t, 2, sess.State().Header().TurnCount, what)
					require.True(t, sess.State().Header().RequiresValidation, what)
					data, err := disk.FS().Lstat(".lopen/sessions/" + r.ID.String() + "/recovery.json")
					require.NoError(t, err, what)
					require.NotZero(t, data.Size(), what)
					require.NoError(t, sess.Close(t.Context()), what)
				}
			}
			require.NotZero(t, absent)
			require.NotZero(t, whole)
		})
	}
}

// diskTree is what a folder of a simulated disk holds, by path.
func diskTree(t *testing.T, root writer.FS, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries, err := root.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		name := dir + "/" + e.Name()
		if e.IsDir() {
			maps.Copy(all, diskTree(t, root, name))
			continue
		}
		data, err := writer.ReadFile(root, name, 1<<20)
		require.NoError(t, err)
		all[name] = string(data)
	}
	return all
}

// A file that differs only in a space has another checksum, and is written again.
func TestAcceptEditOfASpace(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"state.json", "metrics.json"} {
		store := initStore(t)
		id, dir := worked(t, store, 8)
		_, err := store.AcceptEdit(id, false)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "it was not edited")
		require.ErrorContains(t, err, "not edited outside")
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		write(t, filepath.Join(dir, name), strings.Replace(string(data), "{", "{ ", 1))
		before := tree(t, dir)
		edit, err := store.AcceptEdit(id, true)
		require.NoError(t, err)
		require.Empty(t, edit.Changes)
		require.Equal(t, before, tree(t, dir), "it only looked")
		_, err = store.AcceptEdit(id, false)
		require.NoError(t, err)
		r, err := store.Verify(id)
		require.NoError(t, err)
		require.Equal(t, repair.Intact, r.Condition, name)
	}
}

// A session can be resumed only up to a hole, even if the records after the hole could be
// applied.
func TestRecoverStopsAtAHole(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	for n := 2; n <= 6; n++ {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n)))
		require.NoError(t, sess.Sync(t.Context()))
	}
	require.NoError(t, sess.Close(t.Context()))
	dir := path(store, "sessions", sess.ID().String())
	dropRecord(t, dir, 4)
	r, err := store.Recover(t.Context(), sess.ID().String(), repair.JournalAlone, true)
	require.NoError(t, err)
	require.EqualValues(t, 3, r.Seq)
	require.Equal(t, 3, r.State().Header().TurnCount)
	gone("state.json")(t, dir)
	r, err = store.Recover(t.Context(), sess.ID().String(), repair.Partial, true)
	require.NoError(t, err)
	require.EqualValues(t, 7, r.Seq, "the last one is that of the close")
	require.Contains(t, r.Lost, "record 4")
}

// Readable files of two different records can be a base if the records between them are there.
func TestRecoverFromMetricsThatAreBehind(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, dir := worked(t, store, 8)
	st, err := store.ReadAt(id, 4)
	require.NoError(t, err)
	write(t, filepath.Join(dir, "metrics.json"), string(wire.EncodeMetrics(st, session.Mark{Epoch: 1, Seq: 4, Iterations: 4})))
	gone("history")(t, dir)
	r, err := store.Recover(t.Context(), id.String(), repair.LatestCheckpoint, true)
	require.NoError(t, err)
	require.EqualValues(t, 8, r.Seq)
	require.Equal(t, "state.json", r.Base)
	require.Equal(t, 7, r.State().NumIterations())
	require.Equal(t, 7, r.State().Progress().Done)
}

// A State that a writer left after it had lost the session is not a State of the session.
func TestRecoverLeavesOutAnotherPast(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, dir := worked(t, store, 8)
	e, err := store.ReadAt(id, 8)
	require.NoError(t, err)
	foreign := e.Edit()
	foreign.Header().TurnCount = 666
	st, err := foreign.State()
	require.NoError(t, err)
	mark := session.Mark{Epoch: 7, Seq: 8, Iterations: 8}
	state, metrics := wire.EncodeState(st, mark), wire.EncodeMetrics(st, mark)
	write(t, filepath.Join(dir, "state.json"), string(state))
	write(t, filepath.Join(dir, "metrics.json"), string(metrics))
	root, err := writer.OpenFS(dir)
	require.NoError(t, err)
	defer root.Close()
	_, err = history.Write(root, history.Manifest{Session: id.String(), Epoch: 7, Seq: 8}, state, metrics, codec.Options{})
	require.NoError(t, err)
	r, err := store.Recover(t.Context(), id.String(), repair.LatestCheckpoint, true)
	require.NoError(t, err)
	require.Equal(t, 8, r.State().Header().TurnCount)
	require.True(t, strings.HasSuffix(r.Base, "history/1-8.json.zst"), r.Base)
	require.Contains(t, strings.Join(r.Lost, "\n"), "a writer that had lost the session wrote it")
}

// A snapshot of a later record is no sign of a loss where another writer continued
// from an earlier one: it is of a past that does not count.
func TestSnapshotOfAnotherPastIsNoLoss(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	st := sess.State()
	require.NoError(t, sess.Close(t.Context()))
	again, err := store.Open(sess.ID()) // in epoch 2
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
	root, err := writer.OpenFS(path(store, "sessions", sess.ID().String()))
	require.NoError(t, err)
	defer root.Close()
	for _, c := range []struct {
		epoch uint64
		want  error
	}{{1, nil}, {2, lifecycle.ErrCorrupt}} {
		mark := session.Mark{Epoch: c.epoch, Seq: 9}
		_, err = history.Write(root, history.Manifest{Session: sess.ID().String(), Epoch: c.epoch, Seq: 9}, wire.EncodeState(st, mark), wire.EncodeMetrics(st, mark), codec.Options{})
		require.NoError(t, err)
		_, _, err = store.Read(sess.ID())
		require.ErrorIs(t, err, c.want)
	}
}
