package lifecycle_test

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// TestPowerCutWhileImporting cuts the power at every call: nothing is visible, or the whole
// session with all that its checkpoints need. What is left is cleared by the next one.
func TestPowerCutWhileImporting(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	for _, beside := range []bool{false, true} {
		disk := crashfs.New(crashfs.Ext4)
		store, err := lifecycle.InitOn(disk.FS(), simOptions)
		require.NoError(t, err)
		own := 0
		if beside {
			sess, ids := agentWorked(t, store, "sim")
			require.NoError(t, sess.Close(t.Context()))
			own = len(ids)
			from = from.again(func(l *loaded) { // so that no document is synced behind the names
				l.header.Documents = nil
				l.entries = slices.DeleteFunc(l.entries, func(e loadedEntry) bool { return strings.HasPrefix(e.Name, "documents/") })
			})
		}
		var points []*crashfs.Disk
		states, reveals, placed := 0, 0, 0
		disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
			if op.N > 0 {
				points = append(points, disk.Snapshot())
			}
			if reveals == 0 && strings.Contains(op.Name, "checkpoints") && !strings.Contains(op.Name, ".import-") && op.Call == "rename" {
				reveals = len(points) // from here on names come into place
			}
			if op.Call == "rename" && op.Name == lifecycle.Dir+"/sessions/"+id.String() {
				placed = len(points)
			}
			return crashfs.Fault{}
		}))
		_, err = store.Import(t.Context(), from.again(nil))
		require.NoError(t, err)
		disk.SetHook(nil)
		points = append(points, disk.Snapshot())
		require.NoError(t, store.Close(t.Context()))
		there, gone := 0, 0
		for i, p := range points {
			whole := *deep || i >= reveals-1 && i <= placed+4
			if !whole && i%5 != 0 && i < len(points)-1 || passed(i, len(points)) {
				continue
			}
			for _, v := range outcomes(p, i) {
				if states++; !whole && states%7 != 0 {
					continue
				}
				crashStates.Add(1)
				after, err := lifecycle.OpenOn(p.Crash(v).FS(), simOptions)
				require.NoError(t, err)
				if _, _, err := after.Read(id); err == nil {
					there++
					requireIntact(t, after, id)
				} else {
					gone++
					require.Less(t, i, len(points)-1, "it was acknowledged: %s", v.Name)
				}
				_, err = after.Prune(t.Context(), lifecycle.Retention{}, false)
				require.NoError(t, err)
				for _, name := range visible(t, after) {
					require.NotContains(t, name, ".import-")
				}
				if beside {
					require.Len(t, cps(t, after), own)
				}
				r, err := after.Import(t.Context(), from.again(nil))
				require.NoError(t, err, v.Name)
				require.Equal(t, id.String(), r.Sessions[0].ID)
				requireIntact(t, after, id)
				for _, name := range visible(t, after) {
					require.False(t, strings.Contains(name, ".tmp-") && strings.Contains(name, "checkpoints"), name)
				}
				require.NoError(t, after.Close(t.Context()))
			}
		}
		require.NotZero(t, there)
		require.NotZero(t, gone)
		require.NotZero(t, placed)
	}
}

// TestImportOnABadDisk fails each call: nothing is visible afterwards, and nothing is left
// behind, or everything came.
func TestImportOnABadDisk(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	for n, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for k, ended := uint64(1), false; !ended; k++ {
			if !*deep && (k%2 != uint64(n) || !drawn(int(k/2))) {
				continue
			}
			disk := crashfs.New(crashfs.Ext4)
			store, err := lifecycle.InitOn(disk.FS(), simOptions)
			require.NoError(t, err)
			before := visible(t, store)
			call, n := "", uint64(0)
			disk.SetHook(serial(func(op crashfs.Op) crashfs.Fault {
				if op.N == 0 || op.Call == "remove" || op.Call == "removeall" {
					return crashfs.Fault{}
				}
				if n++; n == k {
					call = op.Call + " " + op.Name
					return crashfs.Fault{Err: fault}
				}
				return crashfs.Fault{}
			}))
			_, err = store.Import(context.Background(), from.again(nil))
			disk.SetHook(nil)
			ended = call == ""
			if _, _, rerr := store.Read(id); rerr == nil {
				requireIntact(t, store, id)
			} else {
				require.Error(t, err, call)
				require.Equal(t, before, visible(t, store), "%s: %v", call, err)
			}
			_, err = store.Import(context.Background(), from.again(nil))
			require.NoError(t, err, call)
			requireIntact(t, store, id)
			require.NoError(t, store.Close(context.Background()))
		}
	}
}

// An import whose caller gives up leaves nothing.
func TestImportGivenUp(t *testing.T) {
	t.Parallel()
	from, id := workedElsewhere(t)
	store := initStore(t)
	before := visible(t, store)
	for n := range from.entries {
		ctx, cancel := context.WithCancel(t.Context())
		l := from.again(nil)
		_, err := store.Import(ctx, &stopping{l, n, cancel})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, n+1, l.next, "no entry more is taken")
		require.Equal(t, before, visible(t, store))
	}
	_, _, err := store.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// stopping gives up before an entry.
type stopping struct {
	*loaded
	at   int
	stop func()
}

func (s *stopping) Next() (bundle.Entry, error) {
	if s.next == s.at {
		s.stop()
	}
	return s.loaded.Next()
}

// What a killed import left is named by doctor, and cleared by whoever makes a session; that of
// one that goes on is not.
func TestInterruptedImportIsCleared(t *testing.T) {
	t.Parallel()
	from, _ := workedElsewhere(t)
	store := initStore(t)
	old := path(store, ".import-old")
	require.NoError(t, os.MkdirAll(old+"/sessions/auth-20260214-1", 0o700))
	for _, dir := range []string{"checkpoints", "blobs"} {
		require.NoError(t, os.Mkdir(path(store, dir), 0o700))
	}
	content := path(store, "blobs", ".tmp-blob-cut")
	write(t, content, "half a content")
	named := func() (all []string) {
		for _, c := range store.Doctor(t.Context()) {
			if c.Name == "imports" {
				all = append(all, c.Found)
			}
		}
		return all
	}
	require.Len(t, named(), 1)
	require.Contains(t, named()[0], ".import-old is of an import that was cut off")
	made(t, store, "second")
	require.NoDirExists(t, old)
	require.NoFileExists(t, content)
	l := &stopping{loaded: from.again(nil), at: 3}
	l.stop = func() { // while it goes on, somebody else makes a session
		made(t, storeIn(t, store.Project().Name()), "third")
		require.Empty(t, named())
		entries, err := fs.Glob(os.DirFS(store.Path()), ".import-*")
		require.NoError(t, err)
		require.Len(t, entries, 1)
	}
	_, err := store.Import(t.Context(), l)
	require.NoError(t, err)
	entries, err := fs.Glob(os.DirFS(store.Path()), ".import-*")
	require.NoError(t, err)
	require.Empty(t, entries)
}
