package private_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/private"
)

func open(t *testing.T) (writer.FS, string) {
	dir := t.TempDir()
	fsys, err := writer.OpenFS(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	return fsys, dir
}

func read(t *testing.T, path ...string) string {
	data, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(data)
}

// TestKeepWritesOnce: what is private already is left as it is, so that each start of a session costs no write.
func TestKeepWritesOnce(t *testing.T) {
	t.Parallel()
	fsys, dir := open(t)
	require.ErrorIs(t, private.Keep(fsys, "a"), fs.ErrNotExist)
	require.NoError(t, private.Make(fsys, "a"))
	require.Equal(t, "*\n", read(t, dir, "a", ".gitignore"))
	before, err := os.Lstat(filepath.Join(dir, "a", ".gitignore"))
	require.NoError(t, err)
	require.NoError(t, private.Make(fsys, "a"))
	after, err := os.Lstat(filepath.Join(dir, "a", ".gitignore"))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "it was written again")
}

// TestKeepTakesFoldersOnly: what is no folder is neither opened to anybody nor closed, and the error says what to do.
func TestKeepTakesFoldersOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	fsys, dir := open(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), []byte("mine"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(dir, "file"), 0o644)) // #nosec G302 -- as a person has it
	require.NoError(t, os.Mkdir(filepath.Join(dir, "elsewhere"), 0o700))
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(dir, "link")))
	for _, name := range []string{"file", "link"} {
		require.ErrorContains(t, private.Keep(fsys, name), "move it away")
		require.ErrorContains(t, private.Make(fsys, name), "move it away")
	}
	info, err := os.Stat(filepath.Join(dir, "file"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Join(dir, "elsewhere"))
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestOfferLeavesWhatIsThere: a person may have written it, to version a plan.
func TestOfferLeavesWhatIsThere(t *testing.T) {
	t.Parallel()
	fsys, dir := open(t)
	require.NoError(t, private.Offer(fsys, "."))
	require.Equal(t, "*\n", read(t, dir, ".gitignore"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("sessions/\n"), 0o600))
	require.NoError(t, private.Offer(fsys, "."))
	require.Equal(t, "sessions/\n", read(t, dir, ".gitignore"))
}

func TestIgnore(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, there, want string }{
		{"none", "", ".lopen/\n"},
		{"no last line end", "a", "a\n.lopen/\n"},
		{"CRLF", "a\r\nb\r\n", "a\r\nb\r\n.lopen/\r\n"},
		{"named", "/.lopen\n", "/.lopen\n"},
		{"named by its slash", "a\n .lopen/ \n", "a\n .lopen/ \n"},
		{"another", ".lopen2/\n!.lopen/\n", ".lopen2/\n!.lopen/\n.lopen/\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fsys, dir := open(t)
			require.NoError(t, private.Make(fsys, ".lopen"))
			if test.there != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(test.there), 0o600))
			}
			require.Equal(t, test.there == test.want, private.Ignored(fsys, ".lopen"))
			require.NoError(t, private.Ignore(fsys, ".lopen"))
			require.NoError(t, private.Ignore(fsys, ".lopen")) // once is enough
			require.Equal(t, test.want, read(t, dir, ".gitignore"))
			require.True(t, private.Ignored(fsys, ".lopen"))
			require.NoFileExists(t, filepath.Join(dir, ".lopen", ".gitignore"))
		})
	}
}

// A swept is a folder whose owner takes a temporary file for one that was left behind, once.
type swept struct {
	writer.FS
	times int
}

func (s *swept) Rename(from, to string) error {
	if s.times++; s.times == 1 {
		_ = s.Remove(from)
	}
	return s.FS.Rename(from, to)
}

// TestKeepOutlivesASweep: two runs begin at once, and one of them opens the folder that the other one keeps private.
func TestKeepOutlivesASweep(t *testing.T) {
	t.Parallel()
	fsys, dir := open(t)
	s := &swept{FS: fsys}
	require.NoError(t, private.Make(s, "a"))
	require.Equal(t, "*\n", read(t, dir, "a", ".gitignore"))
	require.Equal(t, 2, s.times)
}
