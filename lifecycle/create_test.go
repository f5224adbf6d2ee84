package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	sess := create(t, store, "auth")
	require.Equal(t, "auth-20260214-1", sess.ID().String())
	for _, name := range []string{"state.json", "metrics.json", ".lock"} {
		require.FileExists(t, path(store, "sessions", "auth-20260214-1", name))
	}
	st, seq, err := store.Read(sess.ID())
	require.NoError(t, err, "durable and readable when Create returns")
	require.EqualValues(t, 1, seq)
	require.Equal(t, session.StatusActive, st.Status())
	require.Equal(t, session.PhaseRequirementGathering, st.Phase())
	requireLatest(t, store, "auth-20260214-1")

	require.Equal(t, "auth-20260214-2", made(t, store, "auth").String())
	require.Equal(t, "auth-x-20260214-1", made(t, store, "auth-x").String())
	requireLatest(t, store, "auth-x-20260214-1")
	ids, err := os.ReadFile(path(store, "ids.json"))
	require.NoError(t, err)
	require.Equal(t, string(envelope.Checksum.Append([]byte(`{"schemaVersion":1,"counters":{"auth-20260214":2,"auth-x-20260214":1}`))), string(ids))
	requireNoLeftovers(t, store)
}

func requireLatest(t *testing.T, store *lifecycle.Store, want string) {
	t.Helper()
	if runtime.GOOS != "windows" {
		to, err := os.Readlink(path(store, "sessions", "latest"))
		require.NoError(t, err)
		require.Equal(t, want, to)
	}
	id, err := store.Resolve("latest")
	require.NoError(t, err)
	require.Equal(t, want, id.String())
}

func requireNoLeftovers(t *testing.T, store *lifecycle.Store) {
	t.Helper()
	left, err := filepath.Glob(path(store, "sessions", ".new-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestCreateRefusesModuleNames(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	for _, name := range []string{"", "a/b", "..", "a b", "Auth", "-a", "a-", ".a", "../a", "a\x00"} {
		_, err := store.Create(t.Context(), name)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "%q", name)
		require.ErrorIs(t, store.CreatePlan(name, nil), lifecycle.ErrInvalid, "%q", name)
		_, err = store.Plan(name)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "%q", name)
		_, err = store.LockModule(name)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, "%q", name)
	}
	require.NoFileExists(t, path(store, "ids.json"))
}

// TestCreateAtOnce: sixteen processes make sessions of one module at once, in a
// project that has no store yet.
func TestCreateAtOnce(t *testing.T) {
	t.Parallel()
	const n = 16
	project := t.TempDir()
	var all []*another
	for range n {
		all = append(all, start(t, "create", project))
	}
	for _, p := range all {
		require.NoError(t, p.in.Close())
	}
	var got, want []string
	for i, p := range all {
		got = append(got, p.line(t))
		want = append(want, fmt.Sprintf("auth-20260214-%d", i+1))
		require.NoError(t, p.Wait())
	}
	require.ElementsMatch(t, want, got)
	store := storeIn(t, project)
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, n)
	for _, info := range infos {
		require.NoError(t, info.Err)
	}
	requireNoLeftovers(t, store)
}

func TestIDsAreNotReused(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	made(t, store, "auth")
	last := made(t, store, "auth")
	require.NoError(t, os.RemoveAll(path(store, "sessions", last.String())))
	require.Equal(t, "auth-20260214-3", made(t, store, "auth").String())
	require.NoError(t, os.RemoveAll(path(store, "sessions")))
	require.Equal(t, "auth-20260214-4", made(t, store, "auth").String())
}

func TestCountersLost(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"missing":     "",
		"not json":    "{\"schemaVersion\":1,\"coun",
		"no version":  `{"counters":{"auth-20260214":1}}`,
		"no counters": `{"schemaVersion":1}`,
		"null":        "null",
		"negative":    `{"schemaVersion":1,"counters":{"auth-20260214":-4}}`,
		"stale":       `{"schemaVersion":1,"counters":{"auth-20260214":1}}`,
		"forgotten":   `{"schemaVersion":1,"counters":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			for range 3 {
				made(t, store, "auth")
			}
			made(t, store, "other")
			ids := path(store, "ids.json")
			require.NoError(t, os.Remove(ids))
			if content != "" {
				write(t, ids, content)
			}
			require.Equal(t, "auth-20260214-4", made(t, store, "auth").String())
			require.Equal(t, "other-20260214-2", made(t, store, "other").String())
		})
	}
}

func TestCountersOfTheFuture(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	made(t, store, "auth")
	const future = `{"schemaVersion":2,"counters":{"auth-20260214":{"next":9}}}`
	write(t, path(store, "ids.json"), future)
	_, err := store.Create(t.Context(), "auth")
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	require.ErrorContains(t, err, path(store, "ids.json"))
	data, err := os.ReadFile(path(store, "ids.json"))
	require.NoError(t, err)
	require.Equal(t, future, string(data))
}

func TestCreateClearsWhatWasCutOff(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	left := path(store, "sessions", ".new-auth-20260214-1")
	require.NoError(t, os.Mkdir(left, 0o700))
	write(t, filepath.Join(left, "state.json"), "{")
	infos, err := store.List()
	require.NoError(t, err)
	require.Empty(t, infos, "what was cut off is not offered")
	made(t, store, "auth")
	require.NoDirExists(t, left)
}

// What is left of a fork that was cut off has links to the segments of the session that it came
// from: doctor names it, and who deletes that session gets its room back.
func TestDeleteClearsWhatWasCutOff(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := completed(t, store, "auth")
	left := path(store, "sessions", ".new-auth-20260214-2")
	cut := func() {
		require.NoError(t, os.MkdirAll(filepath.Join(left, "inherited", "1"), 0o700))
		require.NoError(t, os.Link(path(store, "sessions", id.String(), "journal-1-1.jsonl"), filepath.Join(left, "inherited", "1", "journal-1-1.jsonl")))
		require.NoError(t, os.Chtimes(left, day, day.Add(-3*time.Hour)))
	}
	cut()
	found := findings(store.Doctor(t.Context()))["unfinished"]
	require.Contains(t, found.Found, ".new-auth-20260214-2 is of a session whose making was cut off 3h0m")
	require.Contains(t, found.Mend, "lopen session prune")
	require.False(t, found.Problem)
	dir, err := writer.OpenFS(path(store))
	require.NoError(t, err)
	making, err := writer.TryLock(dir, ".lock", writer.OwnerOf(os.Getpid(), ""))
	require.NoError(t, err)
	at, cancel := context.WithCancel(t.Context())
	cancel() // else doctor waits for the lock
	require.NotContains(t, findings(store.Doctor(at)), "unfinished", "somebody may be making it")
	require.NoError(t, errors.Join(making.Unlock(), dir.Close()))

	_, err = store.Prune(t.Context(), lifecycle.Retention{}, true)
	require.NoError(t, err)
	require.DirExists(t, left, "a dry run")
	_, err = store.Prune(t.Context(), lifecycle.Retention{}, false)
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.NotContains(t, findings(store.Doctor(t.Context())), "unfinished")

	cut()
	takes := store.Bytes(id)
	freed, err := store.Delete(t.Context(), id)
	require.NoError(t, err)
	require.NoDirExists(t, left)
	require.Equal(t, takes, freed)
}

// A folder that cannot be removed keeps nobody from deleting a session.
func TestDeleteDespiteWhatCannotBeCleared(t *testing.T) {
	t.Parallel()
	b := newBed(t, crashfs.Ext4)
	require.NoError(t, b.sess.Complete(t.Context()))
	require.NoError(t, b.sess.Close(t.Context()))
	const left = ".lopen/sessions/.new-auth-20260214-9"
	require.NoError(t, b.disk.FS().Mkdir(left, 0o700))
	b.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Name == left {
			return crashfs.Fault{Err: syscall.EACCES}
		}
		return crashfs.Fault{}
	})
	_, err := laterStore(t, b.disk).Delete(t.Context(), b.id)
	require.NoError(t, err)
	b.disk.SetHook(nil)
	_, err = b.disk.FS().Lstat(".lopen/sessions/" + b.id.String())
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = b.disk.FS().Lstat(left)
	require.NoError(t, err, "it could be removed, which shows nothing")
}

// A session that cannot be put in its place is an error and leaves nothing; the
// next one gets the next ID.
func TestCreateFails(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	taken := path(store, "sessions", "auth-20260214-1")
	write(t, taken, "mine")
	_, err := store.Create(t.Context(), "auth")
	require.ErrorContains(t, err, "auth-20260214-1")
	requireNoLeftovers(t, store)
	data, err := os.ReadFile(taken)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
	require.Equal(t, "auth-20260214-2", made(t, store, "auth").String())
}

// The hint to the latest session is in the same folder as the session: writing it
// syncs that folder, too, and must not be what the session's name depends on.
func TestCreateIsDurableWithoutTheHint(t *testing.T) {
	t.Parallel()
	s := newSim(t, crashfs.Ext4)
	s.init()
	s.watch(func(op crashfs.Op) crashfs.Fault {
		if strings.Contains(op.Name, "latest") {
			return crashfs.Fault{Err: syscall.ENOSPC}
		}
		return crashfs.Fault{}
	})
	require.NoError(t, s.create())
	store, err := lifecycle.OpenOn(s.disk.Crash(crashfs.Variant{}).FS(), simOptions)
	require.NoError(t, err)
	_, _, err = store.Read(s.id)
	require.NoError(t, err)
}

// When ids.json is lost, the sessions that are not in their place any more still
// count: one in the trash can be restored, one in corrupted/ recovered.
func TestCountersLostWithSessionsElsewhere(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	first := completed(t, store, "old")
	damaged := made(t, store, "bad")
	ruin(t, path(store, "sessions", damaged.String()))
	_, err := store.Open(damaged)
	require.ErrorIs(t, err, lifecycle.ErrCorrupt)
	require.NoDirExists(t, path(store, "sessions", damaged.String()))
	second := completed(t, store, "old")
	require.NoError(t, store.SetMeta(t.Context(), first, func(m *lifecycle.Meta) error { m.Pinned = true; return nil }))
	gone, err := store.Prune(t.Context(), lifecycle.Retention{Age: 1}, false)
	require.NoError(t, err)
	require.Equal(t, []session.ID{second}, retiredIDs(gone))
	require.NoError(t, os.Remove(path(store, "ids.json")))

	require.EqualValues(t, 3, made(t, store, "old").Counter, "the second one is in the trash")
	require.EqualValues(t, 2, made(t, store, "bad").Counter, "the first one is in corrupted/")
	require.NoError(t, store.Restore(t.Context(), second), "its ID is its own")
}
