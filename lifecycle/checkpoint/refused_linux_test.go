package checkpoint

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lopen-dev/lopen/writer"
)

// The flags of FS_IOC_SETFLAGS.
const (
	immutable  = 0x10
	appendOnly = 0x20
)

// setFlag sets or clears a flag of a file or folder on the disk. It skips the test where the
// file system has no such flags.
func setFlag(t *testing.T, name string, flag int, on bool) {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		flags &^= flag
		if on {
			flags |= flag
		}
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err != nil && on {
		t.Skipf("the file system of %s has no immutable files, or this user may not make them: %v", name, err)
	}
	require.NoError(t, err)
}

// flagged returns an obstacle: a flag of a path.
func flagged(path string, flag int) func(*testing.T, string) func() {
	return func(t *testing.T, root string) func() {
		name := filepath.Join(root, path)
		setFlag(t, name, flag, true)
		return func() { setFlag(t, name, flag, false) }
	}
}

// bound returns an obstacle: something else is mounted at a path, which looks the same.
func bound(path string, flags uintptr) func(*testing.T, string) func() {
	return func(t *testing.T, root string) func() {
		ownMounts(t)
		name, other := filepath.Join(root, path), filepath.Join(t.TempDir(), "other")
		require.NoError(t, os.CopyFS(other, os.DirFS(filepath.Dir(name))))
		source := filepath.Join(other, filepath.Base(name))
		require.NoError(t, unix.Mount(source, name, "", unix.MS_BIND, ""))
		if flags != 0 {
			require.NoError(t, unix.Mount("", name, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""))
		}
		return func() { require.NoError(t, unix.Unmount(name, unix.MNT_DETACH)) }
	}
}

// ownMounts gives the test a mount namespace. Its thread ends with the test.
func ownMounts(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	runtime.LockOSThread()
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNS))
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
}

// inSticky is an obstacle: another user works in a sticky folder.
func inSticky(t *testing.T, root string) func() {
	if os.Getuid() != 0 {
		t.Skip("acting as another user takes root")
	}
	const nobody = 65534
	require.NoError(t, filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(name) != "d" && filepath.Dir(name) != filepath.Join(root, "d") {
			err = os.Lchown(name, nobody, nobody)
		}
		return err
	}))
	require.NoError(t, os.Chmod(filepath.Join(root, "d"), 0o777|fs.ModeSticky))
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	runtime.LockOSThread()
	require.NoError(t, unix.Setfsuid(nobody)) // without CAP_FOWNER
	return func() { require.NoError(t, unix.Setfsuid(0)) }
}

// onScreen is what a person finds in a folder: modes and contents by path.
func onScreen(t *testing.T, root string) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		text := info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			text += " " + string(data)
		}
		all[name] = text
		return nil
	}))
	return all
}

// TestRefusedPaths has the kernel refuse a change for which a try in the folder succeeds. Apply
// finds it before anything changes, names the path with the reason, and leaves no name of its
// own. A plan that tolerates it makes all other changes.
func TestRefusedPaths(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse func(t *testing.T, root string) (allow func())
		want   map[string]string
	}{
		"immutable file":           {flagged("d/b", immutable), map[string]string{"d/b": "it is immutable; chattr -i"}},
		"append-only file":         {flagged("d/b", appendOnly), map[string]string{"d/b": "it is append-only; chattr -a"}},
		"immutable, to be removed": {flagged("d/gone", immutable), map[string]string{"d/gone": "it is immutable"}},
		"immutable, mode":          {flagged("d/mode", immutable), map[string]string{"d/mode": "it is immutable"}},
		"immutable folder":         {flagged("d", immutable), map[string]string{"d/b": "its folder is immutable", "d/gone": "its folder is immutable", "d/new": "its folder is immutable"}},
		"append-only folder":       {flagged("d", appendOnly), map[string]string{"d/b": "its folder is append-only; chattr -a", "d/gone": "its folder is append-only", "d/new": "its folder is append-only"}},
		"immutable empty folder":   {flagged("old", immutable), map[string]string{"old": "it is immutable"}},
		"file that is a mount":     {bound("d/b", 0), map[string]string{"d/b": "it is a mount point; umount"}},
		"folder that is a mount":   {bound("old", 0), map[string]string{"old": "it is a mount point; umount"}},
		"folder that is read-only": {bound("d", unix.MS_RDONLY), map[string]string{"d/b": "read-only file system", "d/gone": "read-only file system", "d/new": "read-only file system", "d/mode": "read-only file system"}},
		"another user's, sticky":   {inSticky, map[string]string{"d/b": "it belongs to user 0 and its folder is sticky", "d/gone": "it belongs to user 0", "d/mode": "operation not permitted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := made("a", "two", "d/", "", "d/b", "two", "d/gone", "two", "d/mode", "one", "old/", "", "z", "two")
			to := made("a", "one", "d/", "", "d/b", "one", "d/mode", "one", "d/new", "one", "z", "one").with(map[string]fs.FileMode{"d/mode": 0o755})
			blobs, tree := stored(t, from, to), onDisk(t, from)
			allow := c.refuse(t, tree.Name())
			t.Cleanup(func() { allow() })
			plan, before := planOf(t, blobs, from, to), onScreen(t, tree.Name())
			again, err := writer.OpenFS(tree.Name()) // in the test's mount namespace
			require.NoError(t, err)
			defer again.Close()
			s := New(nil, MainTree, blobs, again, Options{})
			_, err = s.Apply(t.Context(), plan)
			require.ErrorIs(t, err, ErrUnchanged)
			require.Equal(t, writer.ClassDenied, writer.ClassOf(err))
			require.Equal(t, before, onScreen(t, tree.Name()))
			for path, why := range c.want {
				require.ErrorContains(t, err, path)
				require.ErrorContains(t, err, why)
			}

			tolerant := *plan
			tolerant.Permitted = true
			done, err := s.Apply(t.Context(), &tolerant)
			require.NoError(t, err)
			kept := map[string]bool{}
			for _, k := range done.Retained {
				require.Equal(t, Denied, k.Why)
				require.Contains(t, k.Cause, c.want[k.Path])
				kept[k.Path] = true
			}
			require.Len(t, kept, len(c.want))
			require.Equal(t, len(plan.Changes), done.Changes+len(kept))
			for _, path := range []string{"a", "z"} {
				require.Equal(t, "-rw-r--r-- one", onScreen(t, tree.Name())[filepath.Join(tree.Name(), path)])
			}
			allow()
			allow = func() {}
			if name != "another user's, sticky" { // whose files are another one's now
				done, err = s.Apply(t.Context(), plan)
				require.NoError(t, err)
				require.Equal(t, Applied{Changes: len(plan.Changes)}, done)
				requireThings(t, to, seen(t, tree), "allowed again")
			}
		})
	}
}
