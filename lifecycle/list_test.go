package lifecycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestListOrder(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	infos, err := store.List()
	require.NoError(t, err)
	require.Empty(t, infos)
	first := create(t, store, "auth")
	made(t, store, "auth")
	made(t, store, "pay")
	require.NoError(t, first.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, first.Flush(t.Context()))
	write(t, path(store, "sessions", "auth-20260214-7"), "a file is no session")
	require.NoError(t, os.Mkdir(path(store, "sessions", "notes"), 0o700))
	infos, err = store.List()
	require.NoError(t, err)
	var ids []string
	for _, info := range infos {
		require.NoError(t, info.Err)
		ids = append(ids, info.ID.String())
	}
	require.Equal(t, []string{"auth-20260214-1", "pay-20260214-1", "auth-20260214-2"}, ids)
}

// A session that cannot be read hides no other session.
func TestDamagedSession(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, dir, journal string){
		"empty":   func(t *testing.T, _, journal string) { write(t, journal, "") },
		"garbage": func(t *testing.T, _, journal string) { write(t, journal, "\x00\x00\x00") },
		"cut": func(t *testing.T, _, journal string) {
			require.NoError(t, os.Truncate(journal, 20))
		},
		"of another session": func(t *testing.T, dir, journal string) {
			require.NoError(t, os.Remove(journal))
			require.NoError(t, os.Link(filepath.Join(filepath.Dir(dir), "auth-20260214-1", "journal-1-1.jsonl"), journal))
		},
		"a folder": func(t *testing.T, _, journal string) {
			require.NoError(t, os.Remove(journal))
			require.NoError(t, os.Mkdir(journal, 0o700))
		},
		"a symlink": func(t *testing.T, dir, journal string) {
			require.NoError(t, os.Rename(journal, filepath.Join(dir, "elsewhere")))
			require.NoError(t, os.Symlink("elsewhere", journal))
		},
		"missing": func(t *testing.T, _, journal string) { require.NoError(t, os.Remove(journal)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			good := made(t, store, "auth")
			bad := made(t, store, "auth")
			dir := path(store, "sessions", bad.String())
			damage(t, dir, filepath.Join(dir, "journal-1-1.jsonl"))

			infos, err := store.List()
			require.NoError(t, err)
			require.Len(t, infos, 2)
			_, _, err = store.Read(bad)
			require.ErrorIs(t, err, lifecycle.ErrCorrupt)
			before := tree(t, dir)
			_, err = store.Open(bad)
			require.ErrorIs(t, err, lifecycle.ErrCorrupt)
			require.ErrorContains(t, err, bad.String())
			requireQuarantined(t, store, bad, before)
			_, err = store.Open(bad)
			require.ErrorIs(t, err, lifecycle.ErrNotFound)

			info, found, err := store.Unfinished("auth")
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, bad, info.ID, "nobody has decided about it")
			var damaged *lifecycle.DamagedError
			require.ErrorAs(t, info.Err, &damaged)
			require.True(t, damaged.Moved())
			require.DirExists(t, path(store, damaged.Where))
			require.ErrorIs(t, info.Err, lifecycle.ErrCorrupt)
			for name, want := range map[string]session.ID{good.String(): good, "auth": good} {
				id, err := store.Resolve(name)
				require.NoError(t, err)
				require.Equal(t, want, id, name)
			}
			require.NoError(t, os.Remove(path(store, "sessions", "latest")))
			id, err := store.Resolve("latest")
			require.NoError(t, err)
			require.Equal(t, good, id)
			next := made(t, store, "auth")
			require.Equal(t, "auth-20260214-3", next.String())
			info, _, err = store.Unfinished("auth")
			require.NoError(t, err)
			require.Equal(t, next, info.ID, "a fresh start was decided on")
		})
	}
}

func TestFutureVersion(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	state := path(store, "sessions", id.String(), "state.json")
	data, err := os.ReadFile(state)
	require.NoError(t, err)
	future := strings.Replace(string(data), `"schemaVersion":2`, `"schemaVersion":3`, 1)
	require.NotEqual(t, string(data), future)
	write(t, state, future)
	_, err = store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	require.NotErrorIs(t, err, lifecycle.ErrCorrupt)
	_, _, err = store.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrFutureVersion)
	infos, err := store.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.ErrorIs(t, infos[0].Err, lifecycle.ErrFutureVersion)
	require.NotErrorIs(t, infos[0].Err, lifecycle.ErrCorrupt)
	left, err := os.ReadFile(state)
	require.NoError(t, err)
	require.Equal(t, future, string(left))
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id, err := session.ParseID("auth-20260214-1")
	require.NoError(t, err)
	_, err = store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, _, err = store.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	for _, name := range []string{"", "latest", "auth", "auth-20260214-1", "..", "/"} {
		_, err = store.Resolve(name)
		require.ErrorIs(t, err, lifecycle.ErrNotFound, "%q", name)
	}
	_, found, err := store.Unfinished("auth")
	require.NoError(t, err)
	require.False(t, found)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	for range 11 {
		made(t, store, "auth")
	}
	made(t, store, "auth-20260214") // a module whose name begins like an ID
	made(t, store, "pay")
	made(t, store, "payment")
	for name, want := range map[string]string{
		"":                       "payment-20260214-1",
		"latest":                 "payment-20260214-1",
		"auth-20260214-1":        "auth-20260214-1",
		"auth-20260214-11":       "auth-20260214-11",
		"auth":                   "auth-20260214-11",
		"auth-20260214":          "auth-20260214-20260214-1",
		"auth-20260214-9":        "auth-20260214-9",
		"auth-20260214-20260214": "auth-20260214-20260214-1",
		"pay":                    "pay-20260214-1",
		"paym":                   "payment-20260214-1",
	} {
		id, err := store.Resolve(name)
		require.NoError(t, err, "%q", name)
		require.Equal(t, want, id.String(), "%q", name)
	}
	_, err := store.Resolve("pa")
	require.ErrorIs(t, err, lifecycle.ErrAmbiguous)
	require.ErrorContains(t, err, "pay-20260214-1")
	require.ErrorContains(t, err, "payment-20260214-1")
	for _, name := range []string{"nobody", "auth-20260215", "AUTH", "auth-20260214-111"} {
		_, err := store.Resolve(name)
		require.ErrorIs(t, err, lifecycle.ErrNotFound, "%q", name)
	}
}

// The hint to the latest session is only a hint: whatever is in its place, the newest
// session is found, and the next Create repairs the hint.
func TestLatestHint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(t *testing.T, hint string)
		want string
	}{
		"missing":        {func(*testing.T, string) {}, "auth-20260214-2"},
		"stale":          {func(t *testing.T, hint string) { require.NoError(t, os.Symlink("auth-20260214-9", hint)) }, "auth-20260214-2"},
		"older":          {func(t *testing.T, hint string) { require.NoError(t, os.Symlink("auth-20260214-1", hint)) }, "auth-20260214-1"},
		"out of it":      {func(t *testing.T, hint string) { require.NoError(t, os.Symlink("../../..", hint)) }, "auth-20260214-2"},
		"text":           {func(t *testing.T, hint string) { write(t, hint+".txt", "auth-20260214-1\n") }, "auth-20260214-1"},
		"text, stale":    {func(t *testing.T, hint string) { write(t, hint+".txt", "auth-20260214-9\n") }, "auth-20260214-2"},
		"text, damaged":  {func(t *testing.T, hint string) { write(t, hint+".txt", "\x00/..\n") }, "auth-20260214-2"},
		"a regular file": {func(t *testing.T, hint string) { write(t, hint, "auth-20260214-1\n") }, "auth-20260214-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := initStore(t)
			made(t, store, "auth")
			made(t, store, "auth")
			hint := path(store, "sessions", "latest")
			require.NoError(t, os.Remove(hint))
			tt.make(t, hint)
			id, err := store.Resolve("latest")
			require.NoError(t, err)
			require.Equal(t, tt.want, id.String())
			made(t, store, "auth")
			requireLatest(t, store, "auth-20260214-3")
		})
	}
}

// tree is what a folder holds: names and contents, or what kind they are.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // the lock's record changes with its holder
		}
		all[e.Name()] = e.Type().String()
		if e.Type().IsRegular() {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			all[e.Name()] = string(data)
		}
	}
	return all
}

// requireQuarantined says that a session lies in corrupted/ as it was, with the
// reason in a note next to it.
func requireQuarantined(t *testing.T, store *lifecycle.Store, id session.ID, content map[string]string) {
	t.Helper()
	require.NoDirExists(t, path(store, "sessions", id.String()))
	moved, err := filepath.Glob(path(store, "corrupted", id.String()+"-*Z"))
	require.NoError(t, err)
	require.Len(t, moved, 1)
	require.Equal(t, content, tree(t, moved[0]))
	reason, err := os.ReadFile(moved[0] + ".json")
	require.NoError(t, err)
	require.Contains(t, string(reason), id.String())
}
