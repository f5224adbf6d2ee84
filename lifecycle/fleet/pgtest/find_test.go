package pgtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	t.Parallel()
	Need(t)
	root := t.TempDir()
	folder := func(dir string, programs ...string) string {
		dir = filepath.Join(root, dir)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		for _, program := range programs {
			require.NoError(t, os.WriteFile(filepath.Join(dir, program), nil, 0o700))
		}
		return dir
	}
	all := []string{"postgres", "initdb", "pg_basebackup"}
	old, newest := folder("debian/9/bin", all...), folder("debian/15/bin", all...)
	folder("debian/17/bin", "pg_basebackup") // the client alone
	local := folder("local", all...)
	links := folder("links")
	require.NoError(t, os.Symlink(filepath.Join(old, "postgres"), filepath.Join(links, "postgres")))
	patterns := []string{filepath.Join(root, "debian/*/bin"), local}

	require.Equal(t, newest, find("", patterns))
	require.Equal(t, local, find(local, patterns))
	require.Equal(t, old, find(links+string(filepath.ListSeparator)+local, patterns))
	require.Equal(t, local, find(folder("debian/17/bin"), patterns[1:]))
	require.Empty(t, find(folder("empty"), nil))
}
