//go:build unix

package lifecycle_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/lifecycle"
)

// FAULT 45: whatever stands where a file or folder of ours is expected, nothing hangs
// and nothing outside of the project is touched. Without -deep a FIFO is tried in
// each place, or a hard link or a symlink, in turns: what a careless open waits for and
// writes through.
func TestFault45ForeignKinds(t *testing.T) {
	t.Parallel()
	model := memory(t)
	ids := furnished(t, model)
	for i, name := range placesIn(t, filepath.Join(model, ".lopen")) {
		turn := 0
		info, err := os.Lstat(filepath.Join(model, ".lopen", name))
		require.NoError(t, err)
		for _, k := range foreignKinds {
			if k.only != nil && !k.only(info) || !*deep && !k.short {
				continue
			}
			if turn++; (i+turn)%every(3) != 0 {
				continue
			}
			t.Run(strings.ReplaceAll(name, "/", "!")+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				top := memory(t)
				project, outside := filepath.Join(top, "project"), filepath.Join(top, "outside")
				copyTree(t, model, project)
				require.NoError(t, os.Mkdir(outside, 0o700))
				place := filepath.Join(project, ".lopen", name)
				if err := k.put(place, filepath.Join(outside, "it")); err != nil {
					require.ErrorIs(t, err, fs.ErrPermission)
					t.Skipf("%s cannot be made here: %v", k.name, err)
				}
				write(t, filepath.Join(outside, "precious"), "precious")
				before := look(t, outside)
				for _, op := range everything(project, ids) {
					within(t, op.name, op.do)
					require.Equal(t, before, look(t, outside), "%s touched what is outside", op.name)
				}
			})
		}
	}
}

// A foreignKind is what stands in the place of something of ours.
type foreignKind struct {
	name string
	only func(fs.FileInfo) bool // whether it may replace what is there; nil for everything
	put  func(place, outside string) error

	short bool // tried without -deep as well
}

func isFile(info fs.FileInfo) bool   { return info.Mode().IsRegular() }
func isFolder(info fs.FileInfo) bool { return info.IsDir() }

// instead makes something in the place of what is there.
func instead(put func(place string) error) func(place, outside string) error {
	return func(place, _ string) error {
		if err := os.RemoveAll(place); err != nil {
			return err
		}
		return put(place)
	}
}

var foreignKinds = []foreignKind{
	{"named pipe", nil, instead(func(place string) error { return unix.Mkfifo(place, 0o600) }), true},
	{"socket", nil, instead(func(place string) error { return unix.Mknod(place, unix.S_IFSOCK|0o600, 0) }), false},
	{"device", nil, instead(func(place string) error { return unix.Mknod(place, unix.S_IFCHR|0o600, 1<<8|5) }), false}, // /dev/zero has no end
	{"folder", isFile, instead(func(place string) error { return os.Mkdir(place, 0o700) }), false},
	{"file", isFolder, instead(func(place string) error { return os.WriteFile(place, []byte("a file\n"), 0o600) }), false},
	{"symlink to the outside", nil, func(place, outside string) error {
		if err := os.Rename(place, outside); err != nil {
			return err
		}
		return os.Symlink(outside, place)
	}, true},
	{"symlink inside", nil, func(place, _ string) error {
		if err := os.Rename(place, place+"-moved"); err != nil {
			return err
		}
		return os.Symlink(filepath.Base(place)+"-moved", place)
	}, false},
	{"hard link", isFile, func(place, outside string) error { return os.Link(place, outside) }, true},
}

// What is refused is refused as invalid, with the path of what stands in the way.
func TestFault45Refused(t *testing.T) {
	t.Parallel()
	model := memory(t)
	ids := furnished(t, model)
	folder := "sessions/" + ids[0].String()
	for name, do := range map[string]func(s *lifecycle.Store) error{
		"sessions":  func(s *lifecycle.Store) error { _, err := s.List(); return err },
		"trash":     func(s *lifecycle.Store) error { _, err := s.Trash(); return err },
		"corrupted": func(s *lifecycle.Store) error { _, err := s.Quarantined(); return err },
		"blobs":     func(s *lifecycle.Store) error { _, err := s.Checkpoints(nil); return err },
		"modules":   func(s *lifecycle.Store) error { _, err := s.LockModule("auth"); return err },
		".lock":     func(s *lifecycle.Store) error { _, err := s.Create(t.Context(), "auth"); return err },
		folder:      func(s *lifecycle.Store) error { _, err := s.Open(ids[0]); return err },

		"modules/auth":         func(s *lifecycle.Store) error { _, err := s.LockModule("auth"); return err },
		"modules/auth/.lock":   func(s *lifecycle.Store) error { _, err := s.LockModule("auth"); return err },
		"modules/auth/plan.md": func(s *lifecycle.Store) error { _, err := s.Plan("auth"); return err },
		"config.json":          func(s *lifecycle.Store) error { _, err := s.Config(); return err },
		folder + "/.lock":      func(s *lifecycle.Store) error { _, err := s.Open(ids[0]); return err },
		folder + "/.child":     func(s *lifecycle.Store) error { _, err := s.Orphan(ids[0]); return err },
		"checkpoints":          func(s *lifecycle.Store) error { _, err := s.Checkpoints(nil); return err },
		folder + "/history":    func(s *lifecycle.Store) error { _, err := s.Snapshots(ids[0]); return err },
	} {
		for _, k := range foreignKinds {
			info, err := os.Lstat(filepath.Join(model, ".lopen", name))
			require.NoError(t, err)
			hard := k.name == "hard link" && !strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".child")
			if k.only != nil && !k.only(info) || hard { // what is only read may have other names
				continue
			}
			t.Run(strings.ReplaceAll(name, "/", "!")+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				top := memory(t)
				project := filepath.Join(top, "project")
				copyTree(t, model, project)
				place := filepath.Join(project, ".lopen", name)
				if err := k.put(place, filepath.Join(top, "outside")); err != nil {
					require.ErrorIs(t, err, fs.ErrPermission)
					t.Skipf("%s cannot be made here: %v", k.name, err)
				}
				store, err := lifecycle.Open(project, lifecycle.Options{Now: clock()})
				require.NoError(t, err)
				defer store.Close(t.Context())
				within(t, name, func() { err = do(store) })
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				require.ErrorContains(t, err, place)
			})
		}
	}
}

// The lock of the store and that of a module are distinguished from one file with two names.
func TestFault45TwoLocksThatAreOneFile(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	lock, err := store.LockModule("auth")
	require.NoError(t, err)
	require.NoError(t, lock.Unlock())
	storeLock, moduleLock := path(store, ".lock"), path(store, "modules", "auth", ".lock")
	lease := path(store, "sessions", id.String(), ".lock")
	for _, other := range []string{moduleLock, lease} {
		require.NoError(t, os.Remove(other))
		require.NoError(t, os.Link(storeLock, other))
	}
	within(t, "one file", func() { // the patience for a lock is shorter, and nothing waits for it
		_, err = store.LockModule("auth")
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, moduleLock+": it is a hard link")
		_, err = store.Create(t.Context(), "auth")
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, storeLock+": it is a hard link")
		_, err = store.Open(id)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, lease+": it is a hard link")
	})
	for _, other := range []string{moduleLock, lease} { // what the message says to do
		require.NoError(t, os.Remove(other))
	}
	sess, err := store.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Close(t.Context()))
}
