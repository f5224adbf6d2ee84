package lifecycle_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// behind makes a session of six records whose readable files are of the first, so
// that the others are in the journal alone, and returns the journal's path.
func behind(t *testing.T, store *lifecycle.Store) (session.ID, string) {
	t.Helper()
	sess := create(t, store, "auth")
	dir := path(store, "sessions", sess.ID().String())
	before := tree(t, dir)
	for n := 1; n <= 5; n++ {
		require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
			e.Header().Status = session.StatusPaused // so that the close adds no record
			return turns(n)(e)
		}))
		require.NoError(t, sess.Sync(t.Context()))
	}
	require.NoError(t, sess.Close(t.Context()))
	for _, name := range []string{"state.json", "metrics.json"} {
		write(t, filepath.Join(dir, name), before[name])
	}
	return sess.ID(), filepath.Join(dir, "journal-1-1.jsonl")
}

func TestFault06NULsAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, tail := range []string{strings.Repeat("\x00", 700), `{"seq":7,"epoch":1,"syn`, "garbage\nmore\n",
		"garbage\n" + reseal(t, `{"seq":7,"epoch":1,"synced":0,"prior":6,"schemaVersion":2,"ops":[],"crc":"00000000"}`)} {
		store := initStore(t)
		id, file := behind(t, store)
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		whole = bytes.TrimRight(whole, "\x00") // it is filled ahead
		write(t, file, string(whole)+tail)

		r, err := store.Verify(id)
		require.NoError(t, err)
		require.Equal(t, 6, r.Records)
		condition := repair.Intact
		if tail[0] != 0 {
			condition = repair.Torn
			require.Equal(t, []repair.Fault{{File: "journal-1-1.jsonl", Offset: int64(len(whole)), Length: int64(len(tail)), Seq: 7, Kind: "torn"}}, r.Faults)
		}
		require.Equal(t, condition, r.Condition)

		var warned bytes.Buffer
		logging := storeLogging(t, store, &warned)
		sess, err := logging.Open(id)
		require.NoError(t, err, "the session resumes")
		require.Equal(t, 5, sess.State().Header().TurnCount)
		require.Equal(t, condition == repair.Torn, strings.Contains(warned.String(), "torn"))
		require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(6)))
		require.NoError(t, sess.Close(t.Context()))
		left, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(whole)+tail, string(left), "a copy is kept: the file is as it was")
		r, err = store.Verify(id)
		require.NoError(t, err)
		require.Equal(t, repair.Intact, r.Condition)
	}
}

func TestFault07DamageInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func([]byte){
		"a flipped bit": func(record []byte) { record[len(record)/2] ^= 1 },
		"a NUL block":   func(record []byte) { clear(record[10 : len(record)-1]) },
		"a lost line":   func(record []byte) { copy(record, bytes.Repeat([]byte("\n"), len(record))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			id, file := behind(t, store)
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			lines := bytes.SplitAfter(data, []byte("\n"))
			spoil(lines[lineOf(lines, 3)])
			write(t, file, string(bytes.Join(lines, nil)))
			_, _, err = store.Read(id)
			require.ErrorIs(t, err, lifecycle.ErrCorrupt, "never silently truncated")
			require.ErrorContains(t, err, "record 3")
			require.ErrorContains(t, err, "journal-1-1.jsonl")
			r, err := store.Verify(id)
			require.NoError(t, err)
			require.Equal(t, repair.Corrupt, r.Condition)
			require.Equal(t, 5, r.Records, "what was kept is counted")
			before := tree(t, filepath.Dir(file))
			_, err = store.Open(id)
			require.ErrorIs(t, err, lifecycle.ErrCorrupt)
			requireQuarantined(t, store, id, before)
		})
	}
	t.Run("at or below the readable files", func(t *testing.T) {
		t.Parallel()
		store := initStore(t)
		sess := create(t, store, "auth")
		for n := range 5 {
			require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(n)))
			require.NoError(t, sess.Flush(t.Context()))
		}
		require.NoError(t, sess.Close(t.Context()))
		file := path(store, "sessions", sess.ID().String(), "journal-1-1.jsonl")
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		data[len(bytes.TrimRight(data, "\x00"))/2] ^= 1
		write(t, file, string(data))
		again, err := store.Open(sess.ID())
		require.NoError(t, err, "it costs history, not the session")
		require.Equal(t, 4, again.State().Header().TurnCount)
		require.NoError(t, again.Close(t.Context()))
		r, err := store.Verify(sess.ID())
		require.NoError(t, err)
		require.Equal(t, repair.HistoryDamaged, r.Condition)
	})
}

func TestFault27StateFileOfAnyContent(t *testing.T) {
	t.Parallel()
	const head = `{"schemaVersion":2,"id":"auth-20260214-1",`
	for name, content := range map[string]string{
		"empty":          "",
		"truncated":      head + `"module":"au`,
		"100,000 levels": head + `"x":` + strings.Repeat("[", 100_000),
		"duplicate keys": head + `"id":"auth-20260214-1"}`,
		"bad UTF-8":      head + "\"cwd\":\"\xff\xfe\"}",
		"not JSON":       "hello\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			anyContent(t, func(t *testing.T, file string) { write(t, file, content) })
		})
	}
}

// The file is sparse, and read piece by piece. Not parallel: it looks at the
// memory of the process.
func TestFault27StateFileOfOneGiB(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	anyContent(t, func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 1<<30)) })
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}

func anyContent(t *testing.T, spoil func(t *testing.T, file string)) {
	store := initStore(t)
	bad, good := made(t, store, "auth"), made(t, store, "auth")
	spoil(t, path(store, "sessions", bad.String(), "state.json"))
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	for _, id := range []session.ID{bad, good} {
		sess, err := store.Open(id)
		require.NoError(t, err, "the journal has it")
		require.NoError(t, sess.Close(t.Context()))
	}
	quarantined, err := filepath.Glob(path(store, "corrupted", bad.String()+".files", "state.json-*[Z+]"))
	require.NoError(t, err)
	require.Len(t, quarantined, 1)
	r, err := store.Verify(bad)
	require.NoError(t, err)
	require.Equal(t, repair.Intact, r.Condition, "it is made again")
}

// The quarantine itself may fail. Then the original stays in its place and is still left out.
func TestFault27QuarantineFails(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	require.NoError(t, b.close())
	dir, err := b.disk.FS().Sub(".lopen/sessions/" + b.id.String())
	require.NoError(t, err)
	f, err := dir.OpenFile("journal-1-1.jsonl", os.O_WRONLY|os.O_TRUNC, 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, call := range []string{"mkdir", "create", "rename"} {
		b.fail(func(op crashfs.Op) bool {
			return op.Call == call && (strings.Contains(op.Name, "corrupted") || call == "rename")
		}, crashfs.Fault{Err: errors.New("no room")})
		_, err = b.store.Open(b.id)
		require.ErrorIs(t, err, lifecycle.ErrCorrupt, call)
		require.ErrorContains(t, err, "stays where it is", call)
		_, err = dir.Stat("journal-1-1.jsonl")
		require.NoError(t, err, call)
		info, found, err := b.store.Unfinished("sim")
		require.NoError(t, err)
		require.True(t, found)
		require.ErrorIs(t, info.Err, lifecycle.ErrCorrupt, "it is left out of what can be resumed")
	}
	b.fail(func(op crashfs.Op) bool { return op.Call == "syncdir" && strings.HasSuffix(op.Name, "sessions") }, crashfs.Fault{Err: errors.New("no power")})
	_, err = b.store.Open(b.id)
	require.ErrorContains(t, err, "was moved to .lopen/corrupted/", "its name is not durable there")
	require.ErrorContains(t, err, "a power cut may bring it back")
	require.NotContains(t, err.Error(), "stays where it is")
}

// What was edited by hand keeps all rules but has another checksum.
func TestEditedOutsideIsNotMoved(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	file := path(store, "sessions", id.String(), "state.json")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	write(t, file, strings.Replace(string(data), `"requirement-gathering"`, `"planning"`, 1))
	_, err = store.Open(id)
	require.ErrorContains(t, err, "edited outside")
	require.DirExists(t, path(store, "sessions", id.String()))
	require.NoDirExists(t, path(store, "corrupted"))
}

func TestFault28NewerAndUnknown(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, file := behind(t, store)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	// A newer journal: its header has a checksum of its own.
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	newer := reseal(t, strings.Replace(string(first)+"\n", `{"journal":1`, `{"journal":2`, 1))
	write(t, file, newer+string(rest))
	before := tree(t, filepath.Dir(file))
	_, err = store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	require.Equal(t, before, tree(t, filepath.Dir(file)), "left alone")

	// Unknown fields go through journal and readable files and come back.
	sess := create(t, store, "auth")
	field := session.Field{Key: "fromTheFuture", Value: strictjson.Value(`{"a":[1,2.5e3]}`)}
	require.NoError(t, sess.Change(session.TriggerStepCompleted, func(e *session.Edit) error {
		e.Header().Extra = []session.Field{field}
		e.Put(session.Task{ID: "t", Kind: session.KindTask, State: session.TaskPending, Extra: []session.Field{field}})
		e.SetRoots([]string{"t"})
		return nil
	}))
	require.NoError(t, sess.Close(t.Context()))
	for n := range 3 {
		again, err := store.Open(sess.ID())
		require.NoError(t, err)
		require.Equal(t, []session.Field{field}, again.State().Header().Extra)
		task, _ := again.State().Task("t")
		require.Equal(t, []session.Field{field}, task.Extra)
		require.NoError(t, again.Change(session.TriggerStepCompleted, turns(n)))
		require.NoError(t, again.Close(t.Context()))
	}
}

func TestFault30NothingLeadsOutside(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "precious"), "precious")
	same := func() {
		require.Equal(t, map[string]string{"precious": "precious"}, tree(t, outside))
	}
	project := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(project, ".lopen")))
	_, _, err := lifecycle.Init(project, lifecycle.Options{})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "symlink")
	same()

	for _, name := range []string{"state.json", "metrics.json", "journal-1-1.jsonl", ".lock", "history"} {
		store := initStore(t)
		id := made(t, store, "auth")
		file := path(store, "sessions", id.String(), name)
		require.NoError(t, os.RemoveAll(file))
		require.NoError(t, os.Symlink(filepath.Join(outside, "precious"), file))
		sess, err := store.Open(id)
		if err == nil { // of the journal's past nothing is needed
			_ = sess.Change(session.TriggerStepCompleted, bulky(1))
			_ = sess.Close(t.Context())
		}
		same()
	}
	store := initStore(t)
	require.NoError(t, os.Symlink(outside, path(store, "sessions", "auth-20260214-1")))
	id, err := session.ParseID("auth-20260214-1")
	require.NoError(t, err)
	_, err = store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	same()
	for _, name := range []string{"../../x-20260214-1", "..", "/etc", "a/b-20260214-1", "auth-20260214-1/.."} {
		_, err := session.ParseID(name)
		require.Error(t, err, name)
		_, err = store.Resolve(name)
		require.ErrorIs(t, err, lifecycle.ErrNotFound, name)
		_, err = store.Create(t.Context(), name)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, name)
	}
	_, err = os.Stat(path(store, "corrupted"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
