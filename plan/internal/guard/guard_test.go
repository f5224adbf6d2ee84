package guard_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/plan/internal/guard"
	"github.com/lopen-dev/lopen/writer"
)

const file = "plan.md"

func folder(t *testing.T) (writer.FS, func(content string), func() string) {
	t.Helper()
	dir := t.TempDir()
	fsys, err := writer.OpenFS(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.Close()) })
	name := filepath.Join(dir, file)
	return fsys, func(content string) { require.NoError(t, os.WriteFile(name, []byte(content), 0o600)) }, func() string {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(data)
	}
}

func appended(text string) func([]byte) ([]byte, error) {
	return func(src []byte) ([]byte, error) { return append(bytes.Clone(src), text...), nil }
}

func TestEdit(t *testing.T) {
	t.Parallel()
	fsys, write, read := folder(t)
	require.NoError(t, guard.Edit(fsys, file, 0o600, nil, appended("new")))
	require.Equal(t, "new", read())
	write("another")
	require.NoError(t, os.Chmod(filepath.Join(fsys.Name(), file), 0o640))
	require.NoError(t, guard.Edit(fsys, file, 0o600, []byte("new"), appended(" one")))
	require.Equal(t, "another one", read(), "what is expected and not there counts for nothing")
	info, err := fsys.Lstat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), info.Mode().Perm(), "the bits stay")

	broken := errors.New("broken")
	err = guard.Edit(fsys, file, 0o600, nil, func([]byte) ([]byte, error) { return []byte("lost"), broken })
	require.ErrorIs(t, err, broken)
	require.Equal(t, "another one", read())
}

// An edit is made again to what a file says that changed meanwhile, and given up when it
// never stops changing.
func TestEditOfAFileThatChanges(t *testing.T) {
	t.Parallel()
	fsys, write, read := folder(t)
	write("a")
	calls := 0
	require.NoError(t, guard.Edit(fsys, file, 0o600, nil, func(src []byte) ([]byte, error) {
		if calls++; calls == 1 {
			write("b")
		}
		return append(bytes.Clone(src), '!'), nil
	}))
	require.Equal(t, "b!", read())

	err := guard.Edit(fsys, file, 0o600, nil, func(src []byte) ([]byte, error) {
		write(string(src) + "x")
		return append(bytes.Clone(src), '!'), nil
	})
	require.ErrorIs(t, err, guard.ErrChanging)
	require.NotContains(t, read(), "x!", "nothing was written over")
}

// What stands in the place of a file that was not there is not overwritten.
func TestEditOfAFileThatAppears(t *testing.T) {
	t.Parallel()
	fsys, write, read := folder(t)
	require.NoError(t, guard.Edit(fsys, file, 0o600, nil, func(src []byte) ([]byte, error) {
		if src == nil {
			write("somebody's")
		}
		return append(bytes.Clone(src), " mine"...), nil
	}))
	require.Equal(t, "somebody's mine", read())
}

func TestRead(t *testing.T) {
	t.Parallel()
	fsys, write, _ := folder(t)
	_, err := guard.Read(fsys, file, nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
	write("")
	src, err := guard.Read(fsys, file, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{}, src, "an empty file is there")
	write("text")
	known := []byte("text")
	src, err = guard.Read(fsys, file, known)
	require.NoError(t, err)
	require.Same(t, &known[0], &src[0], "it is in memory once")
	write("next")
	src, err = guard.Read(fsys, file, known)
	require.NoError(t, err)
	require.Equal(t, "next", string(src))
}
