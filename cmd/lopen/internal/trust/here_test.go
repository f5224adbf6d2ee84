package trust_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cmd/lopen/internal/owner"
	"github.com/lopen-dev/lopen/cmd/lopen/internal/trust"
	"github.com/lopen-dev/lopen/writer/strictjson"
)

// TestPlace: what was said of one store is not said of another in its place, and follows no copy.
func TestPlace(t *testing.T) {
	t.Parallel()
	project := filepath.Join(t.TempDir(), "p")
	folder := filepath.Join(project, ".lopen")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	s, _ := open(t)
	here := func() trust.Here {
		h, err := s.Here(project)
		require.NoError(t, err)
		return h
	}
	h := here()
	require.False(t, h.Same(h.Kept), "nothing was said")
	require.NoError(t, s.SetHere(project, func(h *trust.Here) {
		h.Keep()
		h.Set("check", strictjson.Value(`"x"`))
		h.Judged("m", "make test")
	}))
	h = here()
	require.True(t, h.Same(h.Kept))
	require.True(t, h.Same(h.Settings["check"].Store))

	// In the place of the store, with the same inode number if the system gives it again.
	require.NoError(t, os.Remove(folder))
	require.NoError(t, os.Mkdir(folder, 0o700))
	h = here()
	require.False(t, h.Same(h.Kept), "it is another store")
	require.False(t, h.Same(h.Settings["check"].Store))
	require.Equal(t, "make test", h.CheckOf("m"), "a copy of a store drops no check")
	require.JSONEq(t, `"x"`, string(h.Settings["check"].Value), "what they set in this folder is known")

	first, again := false, false
	require.NoError(t, s.SetHere(project, func(h *trust.Here) { first = h.Tell() }))
	require.NoError(t, s.SetHere(project, func(h *trust.Here) { again = h.Tell() }))
	require.True(t, first)
	require.False(t, again)

	all, err := s.AllHere()
	require.NoError(t, err)
	require.Len(t, all, 1)
	n, err := s.ForgetHere(func(p trust.Project) bool { return p.Folder == all[0].Folder })
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Empty(t, here().Settings)
}

func TestDamagedHereIsNothing(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(project, ".lopen"), 0o700))
	s, dir := open(t)
	require.NoError(t, s.SetHere(project, (*trust.Here).Keep))
	files, err := filepath.Glob(filepath.Join(dir, "here", ".lopen", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	for _, data := range []string{"{", "{}", `{"folder":"/other","kept":"x"}`} {
		require.NoError(t, os.WriteFile(files[0], []byte(data), 0o600))
		h, err := s.Here(project)
		require.ErrorContains(t, err, "counts as nothing")
		require.False(t, h.Same(h.Kept))
	}
	require.NoError(t, s.SetHere(project, (*trust.Here).Keep), "it is replaced")
	h, err := s.Here(project)
	require.NoError(t, err)
	require.True(t, h.Same(h.Kept))
}

// TestExposedStateSaysNothing: where others may write into the user's state, nothing there is believed, and nothing in the working
// directory in its place.
func TestExposedStateSaysNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("whose a folder is, is not known on Windows")
	}
	project := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(project, ".lopen"), 0o700))
	s, dir := open(t)
	require.NoError(t, s.SetHere(project, func(h *trust.Here) {
		h.Keep()
		h.Set("check", strictjson.Value(`""`))
	}))
	require.NoError(t, s.Approve(folder(project), trust.Command{Shell: "x"}))
	require.NoError(t, os.CopyFS(project, os.DirFS(dir)))
	require.NoError(t, os.Chmod(dir, 0o777)) // #nosec G302 -- as others may write it
	t.Chdir(project)
	s = at(t, dir)
	var exposed *owner.Error
	h, err := s.Here(project)
	require.ErrorAs(t, err, &exposed)
	require.Empty(t, h.Settings)
	require.False(t, h.Same(h.Kept))
	require.ErrorAs(t, s.SetHere(project, (*trust.Here).Keep), &exposed)
	all, err := s.AllHere()
	require.ErrorAs(t, err, &exposed)
	require.Empty(t, all)
	approvals, err := s.All()
	require.ErrorAs(t, err, &exposed)
	require.Empty(t, approvals)

	// Nor where that is so of a folder in it.
	for _, in := range []string{"here", "here/.lopen", "turns", "turns/.lopen"} {
		require.NoError(t, os.Chmod(dir, 0o700)) // #nosec G302 -- a folder
		in = filepath.Join(dir, in)
		require.NoError(t, os.MkdirAll(in, 0o700))
		require.NoError(t, os.Chmod(in, 0o777)) // #nosec G302 -- as others may write it
		_, err = at(t, dir).Here(project)
		require.ErrorAs(t, err, &exposed, in)
		require.NoError(t, os.Chmod(in, 0o700)) // #nosec G302 -- a folder
	}

	// One file that others may write is not believed either, and is replaced.
	require.NoError(t, os.Chmod(dir, 0o700)) // #nosec G302 -- a folder
	files, err := filepath.Glob(filepath.Join(dir, "here", ".lopen", "*.json"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(files[0], 0o666)) // #nosec G302 -- as others may write it
	s = at(t, dir)
	h, err = s.Here(project)
	require.ErrorAs(t, err, &exposed)
	require.Empty(t, h.Settings)
	require.NoError(t, s.SetHere(project, (*trust.Here).Keep))
	h, err = s.Here(project)
	require.NoError(t, err)
	require.Empty(t, h.Settings)
	require.True(t, h.Same(h.Kept))
}

// TestAllThatIsSaidAtOnceIsKept: the modules of a work begin together.
func TestAllThatIsSaidAtOnceIsKept(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(project, ".lopen"), 0o700))
	_, dir := open(t)
	require.NoError(t, at(t, dir).SetHere(project, (*trust.Here).Keep))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			module := fmt.Sprint("m", i)
			if err := at(t, dir).SetHere(project, func(h *trust.Here) { h.Judged(module, "check "+module) }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h, err := at(t, dir).Here(project)
	require.NoError(t, err)
	for i := range 16 {
		module := fmt.Sprint("m", i)
		require.Equal(t, "check "+module, h.CheckOf(module))
	}
}

// TestTellsOfASymlinkOnce: a clone can bring one in the place of the store.
func TestTellsOfASymlinkOnce(t *testing.T) {
	t.Parallel()
	project := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(project, ".lopen")); err != nil {
		t.Skip("no symlinks can be made here: ", err)
	}
	s, _ := open(t)
	for _, want := range []bool{true, false, false} {
		var first bool
		require.NoError(t, s.SetHere(project, func(h *trust.Here) { first = h.Tell() }))
		require.Equal(t, want, first)
	}
}
