package lifecycle_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/session"
)

func TestOpenCreatesNothing(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	_, err := lifecycle.Open(project, lifecycle.Options{})
	require.ErrorIs(t, err, lifecycle.ErrNoStore)
	require.ErrorContains(t, err, project)
	entries, err := os.ReadDir(project)
	require.NoError(t, err)
	require.Empty(t, entries)

	_, err = lifecycle.Open(filepath.Join(project, "none"), lifecycle.Options{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, lifecycle.ErrNoStore, "it is the project that is missing")
}

func TestInit(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	store, fresh, err := lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	require.True(t, fresh)
	require.Equal(t, filepath.Join(project, ".lopen"), store.Path())
	require.Equal(t, project, store.Project().Name())
	ignore, err := os.ReadFile(path(store, ".gitignore"))
	require.NoError(t, err)
	require.Equal(t, "*\n", string(ignore))
	require.NoError(t, store.Close(t.Context()))

	write(t, filepath.Join(project, ".lopen", ".gitignore"), "mine\n")
	store, fresh, err = lifecycle.Init(project, lifecycle.Options{})
	require.NoError(t, err)
	require.False(t, fresh)
	made(t, store, "auth")
	ignore, err = os.ReadFile(path(store, ".gitignore"))
	require.NoError(t, err)
	require.Equal(t, "mine\n", string(ignore))
	require.NoError(t, store.Close(t.Context()))
	require.NoError(t, store.Close(t.Context()), "Close is idempotent")
}

// If the creation of a store was cut off after its folder was made, the first session
// completes the store.
func TestInitCutOff(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(project, ".lopen"), 0o700))
	store := storeIn(t, project)
	made(t, store, "auth")
	require.FileExists(t, path(store, ".gitignore"))
}

func TestOpenRefusesWhatIsNoFolder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		make func(t *testing.T, lopen string)
		want string
	}{
		"file": {func(t *testing.T, lopen string) { write(t, lopen, "mine") }, "it is a file"},
		"symlink out of the project": {func(t *testing.T, lopen string) {
			require.NoError(t, os.Symlink(t.TempDir(), lopen))
		}, "it is a symlink"},
		"symlink inside": {func(t *testing.T, lopen string) {
			require.NoError(t, os.Mkdir(lopen+"2", 0o700))
			require.NoError(t, os.Symlink(".lopen2", lopen))
		}, "it is a symlink"},
		"dangling symlink": {func(t *testing.T, lopen string) {
			require.NoError(t, os.Symlink("nowhere", lopen))
		}, "it is a symlink"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lopen := filepath.Join(t.TempDir(), ".lopen")
			tt.make(t, lopen)
			before, err := os.Lstat(lopen)
			require.NoError(t, err)
			_, err = lifecycle.Open(filepath.Dir(lopen), lifecycle.Options{})
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			require.ErrorContains(t, err, lopen)
			require.ErrorContains(t, err, tt.want)
			_, _, err = lifecycle.Init(filepath.Dir(lopen), lifecycle.Options{})
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			after, err := os.Lstat(lopen)
			require.NoError(t, err)
			require.Equal(t, before.Mode(), after.Mode())
		})
	}
}

// What is inside .lopen may be replaced by links as well.
func TestSymlinksInsideAreRefused(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	id := made(t, store, "auth")
	dir := path(store, "sessions", id.String())
	require.NoError(t, os.Rename(dir, dir+"x"))
	require.NoError(t, os.Symlink(id.String()+"x", dir))
	_, err := store.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, _, err = store.Read(id)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)

	require.NoError(t, os.Symlink(t.TempDir(), path(store, "modules", "auth")))
	require.Error(t, store.CreatePlan("auth", []byte("- [ ] A\n")))
	_, err = store.Plan("auth")
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

func TestModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("windows has no permission bits")
	}
	store := initStore(t)
	sess := create(t, store, "auth")
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(1)))
	require.NoError(t, sess.Flush(t.Context()))
	require.NoError(t, store.SetConfig([]byte("{}\n")))
	require.NoError(t, store.CreatePlan("auth", []byte("- [ ] A\n")))
	files := 0
	require.NoError(t, filepath.WalkDir(store.Path(), func(name string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		switch {
		case d.IsDir():
			require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), name)
		case info.Mode().IsRegular():
			files++
			require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), name)
		}
		return nil
	}))
	require.GreaterOrEqual(t, files, 8)
}

// Many goroutines, each like a process of its own, make one store at once.
func TestInitAtOnce(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			store, _, err := lifecycle.Init(project, lifecycle.Options{})
			if err == nil {
				err = store.Close(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestConfig(t *testing.T) {
	t.Parallel()
	store := initStore(t)
	data, err := store.Config()
	require.NoError(t, err)
	require.Nil(t, data)
	for _, want := range []string{`{"unit":"leaf"}`, `{}`} {
		require.NoError(t, store.SetConfig([]byte(want)))
		data, err = store.Config()
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
}

// A project folder that moves while nobody holds it takes its sessions along;
// one that is reached through a symlink is the same project.
func TestMovedAndLinkedProject(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(parent, "old"), 0o700))
	store := storeIn(t, filepath.Join(parent, "old"))
	id := made(t, store, "auth")
	require.NoError(t, store.Close(t.Context()))

	require.NoError(t, os.Rename(filepath.Join(parent, "old"), filepath.Join(parent, "new")))
	moved := storeIn(t, filepath.Join(parent, "new"))
	sess, err := moved.Open(id)
	require.NoError(t, err)
	require.NoError(t, sess.Change(session.TriggerStepCompleted, turns(3)))
	require.NoError(t, sess.Sync(t.Context()))

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(parent, link))
	linked := storeIn(t, filepath.Join(link, "new"))
	got, err := linked.Resolve("latest")
	require.NoError(t, err)
	require.Equal(t, id, got)
	st, _, err := linked.Read(id)
	require.NoError(t, err)
	require.Equal(t, 3, st.Header().TurnCount)
	_, err = linked.Open(id)
	require.ErrorIs(t, err, lifecycle.ErrBusy, "the lease is seen by either way in")
	second := create(t, linked, "auth")
	require.NoError(t, second.Change(session.TriggerStepCompleted, turns(4)))
	require.NoError(t, second.Sync(t.Context()))
}
