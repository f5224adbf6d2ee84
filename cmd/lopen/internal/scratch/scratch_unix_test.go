//go:build unix

package scratch

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// in has the system's folder for temporary files be one of the test's own, which the
// test is then not parallel for.
func in(t *testing.T) string {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	return temp
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// soon fails the test where fn waits for a FIFO.
func soon(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

func TestLifeOfAFolder(t *testing.T) {
	temp := in(t)
	d, err := New()
	require.NoError(t, err)
	info, err := os.Stat(d.path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, d.Renew())
	f, first, err := d.Write("prompt", ".md", []byte("do it"))
	require.NoError(t, err)
	defer f.Close()
	content, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, "do it", string(content), "it is read from its beginning")
	info, err = os.Stat(first)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, d.Renew())
	require.NoFileExists(t, first, "it is the last attempt's")
	g, second, err := d.Write("prompt", ".md", nil)
	require.NoError(t, err)
	defer g.Close()
	require.NotEqual(t, first, second, "nobody can wait for it")
	d.Close()
	require.Empty(t, names(t, temp))
}

// What a killed run left is removed, whatever the command made of it, and nothing that a
// link in it leads to.
func TestWhatAKilledRunLeftIsRemoved(t *testing.T) {
	temp, outside := in(t), t.TempDir()
	kept := filepath.Join(outside, "kept")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	d, err := New()
	require.NoError(t, err)
	for name, put := range map[string]func(string) error{
		"link":   func(p string) error { return os.Symlink(outside, p) },
		"fifo":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"folder": func(p string) error { return os.MkdirAll(filepath.Join(p, "in", "it"), 0o700) },
	} {
		require.NoError(t, put(filepath.Join(d.path, name)))
	}
	d.release() // as the kernel does for who was killed
	next, err := New()
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Base(next.path)}, names(t, temp))
	require.FileExists(t, kept)
	next.Close()
}

// A run that lives keeps its folder, and so does a command that outlived its run.
func TestTheFolderOfWhoLivesIsLeftAlone(t *testing.T) {
	temp := in(t)
	d, err := New()
	require.NoError(t, err)
	defer d.Close()
	cut, err := New()
	require.NoError(t, err)
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{cut.Lock()}
	end, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	cut.release()
	third, err := New()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{filepath.Base(d.path), filepath.Base(cut.path), filepath.Base(third.path)}, names(t, temp))
	require.NoError(t, end.Close())
	require.NoError(t, cmd.Wait())
	third.Close()
	fourth, err := New()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{filepath.Base(d.path), filepath.Base(fourth.path)}, names(t, temp), "its command is gone")
	fourth.Close()
}

// Others put what they like beside it, under names like ours.
func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	temp, outside := in(t), t.TempDir()
	at := func(name string) string { return filepath.Join(temp, name) }
	require.NoError(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	require.NoError(t, os.Symlink(outside, at(prefix+"1")))
	require.NoError(t, os.Mkdir(at("other"), 0o700))
	require.NoError(t, os.WriteFile(at("other/kept"), nil, 0o600))
	require.NoError(t, os.Symlink("other", at(prefix+"2")))
	require.NoError(t, syscall.Mkfifo(at(prefix+"3"), 0o600))
	require.NoError(t, os.WriteFile(at(prefix+"4"), nil, 0o600))
	require.NoError(t, os.MkdirAll(at(prefix+"results/kept"), 0o700)) // somebody's own, of a like name
	want := []string{prefix + "results", prefix + "3", prefix + "4", prefix + "2", prefix + "1", "other"}
	if os.Geteuid() == 0 { // nobody else can give a folder away
		require.NoError(t, os.MkdirAll(at(prefix+"5/in"), 0o777))
		require.NoError(t, os.Chown(at(prefix+"5"), 65534, 65534))
		want = append(want, prefix+"5")
	}
	soon(t, "New", func() {
		d, err := New()
		if err != nil {
			t.Error(err)
			return
		}
		d.Close()
	})
	require.ElementsMatch(t, want, names(t, temp))
	require.FileExists(t, filepath.Join(outside, "kept"))
	require.FileExists(t, at("other/kept"))
	if os.Geteuid() == 0 {
		require.DirExists(t, at(prefix+"5/in"))
	}
}

// A folder that the command moved away, or that it put another one in the place of, is not
// written in any more.
func TestAFolderThatWasReplacedIsNotUsed(t *testing.T) {
	temp, outside := in(t), t.TempDir()
	for name, replace := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(outside, path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o777) },
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"none":   func(string) error { return nil },
	} {
		d, err := New()
		require.NoError(t, err)
		old := d.path
		moved := filepath.Join(outside, "moved-"+name)
		require.NoError(t, os.Rename(old, moved))
		require.NoError(t, replace(old))
		soon(t, name, func() {
			if err := d.Renew(); err != nil {
				t.Error(err)
			}
		})
		require.NotEqual(t, old, d.path)
		f, path, err := d.Write("prompt", "", []byte("secret"))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.FileExists(t, path)
		require.Empty(t, names(t, moved))
		d.Close()
		require.Empty(t, names(t, temp), name)
	}
}

func TestOnlyARegularFileIsRead(t *testing.T) {
	_, outside := in(t), t.TempDir()
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte(`{"turns":1}`), 0o600))
	d, err := New()
	require.NoError(t, err)
	defer d.Close()
	const limit = 1 << 20
	for name, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"fifo":   {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "a named pipe"},
		"link":   {func(p string) error { return os.Symlink(secret, p) }, "escapes"},
		"inner":  {func(p string) error { return os.Symlink(".", p) }, "a folder"},
		"folder": {func(p string) error { return os.Mkdir(p, 0o700) }, "a folder"},
		"socket": {func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) }, "a socket"},
		"sparse": {func(p string) error {
			return os.WriteFile(p, nil, 0o600)
		}, "more than the"},
	} {
		path := d.Name(name, "")
		require.NoError(t, c.put(path), name)
		if name == "sparse" {
			require.NoError(t, os.Truncate(path, 1<<40))
		}
		soon(t, name, func() {
			_, err := d.Read(path, limit)
			assert.ErrorContains(t, err, c.want, name)
			assert.ErrorContains(t, err, path, name)
		})
	}
	_, err = d.Read(d.Name("none", ""), limit)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Removing what the command left does not keep the run: the rest goes on elsewhere.
func TestPatience(t *testing.T) {
	t.Parallel()
	never := make(chan struct{})
	defer close(never)
	soon(t, "within", func() { within(func() { <-never }) })
}
