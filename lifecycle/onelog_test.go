package lifecycle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// The record of a large State failed after its snapshot was written, and a small record
// takes the number. The snapshot does not belong to the small record, whatever happens to
// it: the large State was never acknowledged.
func TestSnapshotOfARecordThatFailed(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	before := b.sess.State()
	b.fail(func(op crashfs.Op) bool { return op.Call == "write" && strings.Contains(op.Name, "journal-") }, errnoOf(syscall.EIO))
	accepted(t, b.sess.Change(session.TriggerStepCompleted, bulky(666)))
	require.Error(t, b.sess.Sync(t.Context()))
	b.fail(nil)
	e := before.Edit()
	e.Header().TurnCount = 7
	small, err := e.State()
	require.NoError(t, err)
	accepted(t, b.sess.Save(small, session.TriggerStepCompleted))
	require.NoError(t, b.sess.Unpause(t.Context()))
	require.NoError(t, b.close())
	dir := ".lopen/sessions/" + b.id.String()
	taken := 0
	snapshots, err := b.disk.FS().ReadDir(dir + "/history")
	require.NoError(t, err)
	for _, s := range snapshots {
		if s.Name() == "1-3.json.zst" {
			taken++
		}
	}
	require.Equal(t, 1, taken, "the snapshot of the State that was not acknowledged")
	acknowledged := func(what string) {
		for seq := uint64(1); seq <= 4; seq++ {
			if st, err := b.store.ReadAt(b.id, seq); err == nil {
				require.NotEqual(t, 666, st.Header().TurnCount, what)
			}
			if fork, err := b.store.Fork(t.Context(), b.id, lifecycle.ForkOptions{Seq: seq}); err == nil {
				require.NotEqual(t, 666, fork.State().Header().TurnCount, what)
				require.NoError(t, fork.Close(t.Context()))
			}
		}
		for _, strategy := range []string{"", repair.LatestCheckpoint, repair.JournalAlone, repair.Partial, "checkpoint=3"} {
			if r, err := b.store.Recover(t.Context(), b.id.String(), strategy, true); err == nil {
				require.NotEqual(t, 666, r.State().Header().TurnCount, "%s, %s", what, strategy)
			}
		}
	}
	st, err := b.store.ReadAt(b.id, 3)
	require.NoError(t, err)
	require.Equal(t, 7, st.Header().TurnCount)
	acknowledged("whole")
	for _, name := range []string{"journal-1-2.jsonl", "journal-1-1.jsonl", "segments", "state.json", "metrics.json"} {
		data, err := writer.ReadFile(b.disk.FS(), dir+"/"+name, 1<<20)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		for at := range len(bytes.TrimRight(data, "\x00")) {
			if at%every(29) == 0 {
				spoilt := bytes.Clone(data)
				spoilt[at] ^= 1
				require.NoError(t, writer.ReplaceFile(b.disk.FS(), dir+"/"+name, spoilt, 0o600))
				acknowledged(fmt.Sprintf("%s, byte %d", name, at))
			}
		}
		require.NoError(t, b.disk.FS().Remove(dir+"/"+name)) // and so with all of these
		acknowledged(name + " is gone")
	}
}

// Readable files that lag, are torn or are missing cause only a warning: the log has the
// session.
func TestReadableFilesDecideNothing(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	dir := path(store, "sessions", sess.ID().String())
	early := tree(t, dir)
	for n := 1; n <= 3; n++ {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n)))
		require.NoError(t, sess.Sync(t.Context()))
	}
	require.NoError(t, sess.Close(t.Context()))
	for _, name := range []string{"state.json", "metrics.json"} {
		for what, spoil := range map[string]func(file string) error{
			"gone":     os.Remove,
			"empty":    func(file string) error { return os.Truncate(file, 0) },
			"torn":     func(file string) error { return os.Truncate(file, 30) },
			"cut":      func(file string) error { return os.Truncate(file, int64(len(early[name])-4)) },
			"not JSON": func(file string) error { return os.WriteFile(file, []byte("hello\n"), 0o600) },
			"older":    func(file string) error { return os.WriteFile(file, []byte(early[name]), 0o600) },
			"a folder": func(file string) error {
				return os.Mkdir(file+".d", 0o700) // its name is taken below
			},
		} {
			file := filepath.Join(dir, name)
			require.NoError(t, spoil(file))
			if what == "a folder" {
				require.NoError(t, os.Remove(file))
				require.NoError(t, os.Rename(file+".d", file))
			}
			before := tree(t, dir)
			infos, err := store.List()
			require.NoError(t, err)
			require.NoError(t, infos[0].Err, what)
			st, _, err := store.Read(sess.ID())
			require.NoError(t, err, "%s: %s", name, what)
			require.Equal(t, 3, st.Header().TurnCount)
			require.Equal(t, before, tree(t, dir), "reading changes nothing")
			var log bytes.Buffer
			again, err := storeLogging(t, store, &log).Open(sess.ID())
			require.NoError(t, err, "%s: %s", name, what)
			require.Equal(t, 3, again.State().Header().TurnCount)
			require.NoError(t, again.Close(t.Context()))
			require.Equal(t, what != "older", bytes.Contains(log.Bytes(), []byte("made again")), "%s: %s", name, log.String())
			r, err := store.Verify(sess.ID())
			require.NoError(t, err)
			require.Equal(t, repair.Intact, r.Condition, "%s: %s: %v", name, what, r.Faults)
		}
		quarantined, err := filepath.Glob(path(store, "corrupted", sess.ID().String()+".files", name+"-*[Z+]"))
		require.NoError(t, err)
		require.Len(t, quarantined, 5)
	}
}

// The number of quarantined copies is bounded.
func TestQuarantinedCopiesAreBounded(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	file := path(store, "sessions", id.String(), "state.json")
	for n := range 8 {
		write(t, file, fmt.Sprintf("version %d", n))
		sess, err := store.Open(id)
		require.NoError(t, err)
		require.NoError(t, sess.Close(t.Context()))
	}
	quarantined, err := filepath.Glob(path(store, "corrupted", id.String()+".files", "state.json-*[Z+]"))
	require.NoError(t, err)
	require.Len(t, quarantined, 5)
	data, err := os.ReadFile(quarantined[4])
	require.NoError(t, err)
	require.Equal(t, "version 7", string(data))
	note, err := os.ReadFile(quarantined[4] + ".json")
	require.NoError(t, err)
	require.Contains(t, string(note), `"reason":"`)
	require.Contains(t, string(note), `"session":"`+id.String()+`"`)
	require.Contains(t, string(note), `"file":"state.json"`)
	folders, err := store.Quarantined()
	require.NoError(t, err)
	require.Empty(t, folders, "the session is whole")
	all, err := os.ReadDir(filepath.Dir(quarantined[0]))
	require.NoError(t, err)
	require.Len(t, all, 10, "a note with each")
	_, err = store.Delete(t.Context(), id)
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Dir(quarantined[0]), "what was said goes with the session")
}

// The first line of the newest segment, and the segment itself: what it holds is not taken
// for torn, and what is missing is reported.
func TestNewestSegment(t *testing.T) {
	t.Parallel()
	holder := func() (*lifecycle.Store, session.ID, string) {
		store := initStore(t)
		id := made(t, store, "auth")
		sess, err := store.Open(id)
		require.NoError(t, err)
		for n := 1; n <= 20; n++ {
			require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n)))
			require.NoError(t, sess.Sync(t.Context()))
		}
		require.NoError(t, sess.Close(t.Context()))
		return store, id, path(store, "sessions", id.String(), "journal-2-1.jsonl")
	}
	t.Run("a flipped bit in its header", func(t *testing.T) {
		store, id, file := holder()
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		data[20] ^= 1
		write(t, file, string(data))
		r, err := store.Verify(id)
		require.NoError(t, err)
		require.Equal(t, repair.Flawed, r.Condition)
		gone("state.json")(t, filepath.Dir(file))
		st, _, err := store.Read(id)
		require.NoError(t, err, "the list of segments has the line")
		require.Equal(t, 20, st.Header().TurnCount)
	})
	t.Run("it is missing", func(t *testing.T) {
		store, id, file := holder()
		require.NoError(t, os.Remove(file))
		r, err := store.Verify(id)
		require.NoError(t, err)
		require.Equal(t, repair.Corrupt, r.Condition)
		_, err = store.Open(id)
		require.ErrorIs(t, err, lifecycle.ErrCorrupt)
		rec, err := store.Recover(t.Context(), id.String(), "", true)
		require.NoError(t, err)
		require.Equal(t, 20, rec.State().Header().TurnCount, "state.json has it")
	})
	t.Run("its records are missing", func(t *testing.T) {
		store, id, file := holder()
		ruin(t, filepath.Dir(file))
		_, err := store.Open(id)
		require.ErrorIs(t, err, lifecycle.ErrCorrupt)
		require.ErrorContains(t, err, "what was acknowledged in between is missing")
	})
}

// When an edit is discarded, the edited file stays, quarantined, next to the new one.
func TestDiscardEdit(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, dir := worked(t, store, 8)
	for _, name := range []string{"state.json", "metrics.json"} {
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		edited := bytes.Replace(data, []byte("{"), []byte("{ "), 1)
		write(t, file, string(edited))
		_, err = store.Open(id)
		require.ErrorIs(t, err, lifecycle.ErrEdited)
		before := tree(t, dir)
		_, err = store.DiscardEdit(id, true)
		require.NoError(t, err)
		require.Equal(t, before, tree(t, dir), "it only looked")
		_, err = store.DiscardEdit(id, false)
		require.NoError(t, err)
		quarantined, err := filepath.Glob(path(store, "corrupted", id.String()+".files", filepath.Base(file)+"-*[Z+]"))
		require.NoError(t, err)
		require.Len(t, quarantined, 1)
		left, err := os.ReadFile(quarantined[0])
		require.NoError(t, err)
		require.Equal(t, string(edited), string(left))
		r, err := store.Verify(id)
		require.NoError(t, err)
		require.Equal(t, repair.Intact, r.Condition)
		_, err = store.DiscardEdit(id, false)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
}

// What Flush and Close show survives a power cut, also where a publication without a sync
// came before.
func TestFlushIsDurable(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *sim) error{"flush": (*sim).flush, "close": (*sim).close} {
		for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
			s := newSim(t, mode)
			s.talks = true
			s.init()
			require.NoError(t, s.create())
			for range 3 {
				require.NoError(t, s.save(10))
				require.NoError(t, s.sync()) // and a publication begins
			}
			dir := ".lopen/sessions/" + s.id.String() + "/"
			require.Eventually(t, func() bool { // the last one has written what it does not sync
				data, err := writer.ReadFile(s.disk.FS(), dir+"state.json", 1<<20)
				return err == nil && bytes.Contains(data, []byte(`{"n":3,`))
			}, time.Minute, time.Millisecond)
			require.NoError(t, end(s))
			for _, file := range []string{"state.json", "metrics.json", "messages.jsonl", "transcript.jsonl"} {
				want, err := writer.ReadFile(s.disk.FS(), dir+file, 1<<20)
				require.NoError(t, err)
				got, err := writer.ReadFile(s.disk.Crash(crashfs.Variant{}).FS(), dir+file, 1<<20)
				require.NoError(t, err, "%s, %s", name, file)
				require.Equal(t, string(want), string(got), "%s, %s", name, file)
			}
			require.NoError(t, s.close())
		}
	}
}

// Readable files that lag, damage above them, and a snapshot above the damage.
func TestDamageBelowANewerSnapshot(t *testing.T) {
	t.Parallel()
	store := storeWith(t, t.TempDir(), lifecycle.Policy{Interval: 3})
	sess := create(t, store, "auth")
	dir := path(store, "sessions", sess.ID().String())
	require.NoError(t, sess.Flush(t.Context()))
	early := tree(t, dir)
	for n := 1; n <= 5; n++ {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n)))
		require.NoError(t, sess.Sync(t.Context()))
	}
	require.NoError(t, sess.Close(t.Context()))
	for _, name := range []string{"state.json", "metrics.json"} {
		write(t, filepath.Join(dir, name), early[name])
	}
	file := filepath.Join(dir, "journal-1-1.jsonl")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[lineOf(lines, 3)][30] ^= 1
	write(t, file, string(bytes.Join(lines, nil)))
	st, _, err := store.Read(sess.ID())
	require.NoError(t, err)
	require.Equal(t, 5, st.Header().TurnCount)
	r, err := store.Verify(sess.ID())
	require.NoError(t, err)
	require.Equal(t, repair.HistoryDamaged, r.Condition)
}
