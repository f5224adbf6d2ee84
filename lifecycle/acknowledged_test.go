package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/carry"
	"github.com/lopen-dev/lopen/lifecycle/folder"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// filesBelow are the files below a folder of the project that people would miss, by path.
func filesBelow(t *testing.T, disk *crashfs.Disk, under string) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := disk.FS()
	defer root.Close()
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := root.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			name := dir + "/" + e.Name()
			switch {
			case strings.HasPrefix(e.Name(), "."), !e.IsDir() && !e.Type().IsRegular():
			case e.IsDir():
				walk(name)
			default:
				data, err := writer.ReadFile(root, name, 1<<24)
				require.NoError(t, err)
				all[name] = string(data)
			}
		}
	}
	walk(under)
	return all
}

// requireKept says that the power cut that comes now leaves all files of a folder as they are.
func requireKept(t *testing.T, disk *crashfs.Disk, under string) {
	t.Helper()
	now := filesBelow(t, disk, under)
	require.NotEmpty(t, now)
	for _, v := range disk.Variants(nil, 0) {
		require.Equal(t, now, filesBelow(t, disk.Crash(v), under), v.Name)
	}
}

// When an import returns, each file of the session is durable: also those in folders that nothing but the
// import makes.
func TestWhatAnImportAcknowledged(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	at := folder.Path(id)
	from.add(at+"/output/000001.log", []byte("what the agent said"))
	from.add(at+"/output/000002.log", []byte("and more"))
	from.add(at+"/history/1-1.json", []byte("{}"))
	for name, source := range map[string]func() carry.Source{
		"carried": func() carry.Source { return from.again(nil) },
		"exact":   func() carry.Source { return carry.Exact{Source: from.again(nil)} },
	} {
		disk := crashfs.New(crashfs.Ext4)
		store, err := lifecycle.InitOn(disk.FS(), simOptions)
		require.NoError(t, err)
		own, err := store.Create(t.Context(), "own") // it stays the latest, whose name would be synced behind
		require.NoError(t, err)
		require.NoError(t, own.Close(t.Context()))
		_, err = store.Import(t.Context(), source())
		require.NoError(t, err, name)
		require.Contains(t, filesBelow(t, disk, lifecycle.Dir), lifecycle.Dir+"/"+at+"/output/000001.log", name)
		requireKept(t, disk, lifecycle.Dir)
		require.NoError(t, store.Close(t.Context()))
	}
}

// A session that made way for one that did not come is there again, and stays so.
func TestASessionThatCameBackStays(t *testing.T) {
	t.Parallel()
	disk, store, id, more, old, _ := onDisk(t)
	var between *crashfs.Disk
	disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "rename" && op.Name == lifecycle.Dir+"/"+folder.Path(id) {
			between = disk.Snapshot()
		}
		return crashfs.Fault{}
	}))
	_, err := store.Import(t.Context(), carry.Exact{Source: more.again(nil), Over: true})
	require.NoError(t, err)
	require.NoError(t, store.Close(t.Context()))
	require.NotNil(t, between)

	after, err := lifecycle.OpenOn(between.FS(), simOptions)
	require.NoError(t, err)
	_, _, err = after.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound, "neither is there")
	_, err = after.Prune(t.Context(), lifecycle.Retention{}, false)
	require.NoError(t, err)
	require.Equal(t, old, logOf(t, after, id))
	for _, v := range between.Variants(nil, 0) {
		cut, err := lifecycle.OpenOn(between.Crash(v).FS(), simOptions)
		require.NoError(t, err)
		require.Equal(t, old, logOf(t, cut, id), v.Name)
		require.NoError(t, cut.Close(t.Context()))
	}
	require.NoError(t, after.Close(t.Context()))
}

// The session is taken over once the last readable file has its name. Nothing of the log is rewritten then, and
// whoever waits for the files is told.
func TestTakenOverBeforeACompaction(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	synced := 0
	taken := b.takeOver(t, func(op crashfs.Op) bool {
		if op.Call == "syncdir" {
			synced++
		}
		return synced == 2 // of metrics.json and state.json
	}, func(s *lifecycle.Session) {
		require.NoError(t, s.Change(session.TriggerPaused, turns(77)))
		require.NoError(t, s.Sync(t.Context()))
	})
	accepted(t, b.save(10))
	err := b.flush()
	require.NotNil(t, *taken)
	require.Equal(t, "fenced", lifecycle.ClassOf(err).String(), "%v", err)
	require.NoError(t, (*taken).Change(session.TriggerPaused, turns(78)))
	require.NoError(t, (*taken).Close(t.Context()))
	st, _, err := b.store.Read(b.id)
	require.NoError(t, err)
	require.Equal(t, 78, st.Header().TurnCount)
}

// Where the log was cut off, a snapshot whose record never came tells what was durable before: the session is
// damaged, and does not go on from what is left as if that were all.
func TestLogCutOffBelowALargeSnapshot(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	store.Shrink(4<<10, 1<<20)
	sess := create(t, store, "auth")
	for n := range 3 {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n+1)))
		require.NoError(t, sess.Sync(t.Context()))
	}
	require.NoError(t, sess.Change(session.TriggerStepCompleted, bulky(4)))
	require.NoError(t, sess.Close(t.Context()))
	dir := path(store, "sessions", sess.ID().String())
	log := filepath.Join(dir, "journal-1-1.jsonl")
	data, err := os.ReadFile(log)
	require.NoError(t, err)
	lines := splitLines(data)
	for _, name := range []string{"state.json", "metrics.json"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	for after, intact := range map[int]bool{4: true, 2: false} { // the large one was not acknowledged; two more are gone
		write(t, log, joinLines(lines[:lineOf(lines, after)+1]))
		_, seq, err := store.Read(sess.ID())
		if intact {
			require.NoError(t, err)
			require.EqualValues(t, after, seq)
			continue
		}
		require.ErrorIs(t, err, lifecycle.ErrCorrupt)
		require.ErrorContains(t, err, "the journal ends at record 2, and ")
	}
}
