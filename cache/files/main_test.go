package files

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lopen-dev/lopen/writer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A tree is a folder on the disk.
type tree struct {
	t    require.TestingT
	dir  string
	root writer.FS
}

func newTree(t testing.TB) tree {
	t.Helper()
	dir := t.TempDir()
	root, err := writer.OpenFS(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return tree{t, dir, root}
}

func (x tree) path(name string) string { return filepath.Join(x.dir, filepath.FromSlash(name)) }

// write makes a file and the folders that it needs.
func (x tree) write(name, content string) {
	require.NoError(x.t, os.MkdirAll(filepath.Dir(x.path(name)), 0o755))
	require.NoError(x.t, os.WriteFile(x.path(name), []byte(content), 0o644))
}

// take fails when anything was skipped.
func (x tree) take(base *Snapshot, opts Options) *Snapshot {
	s, err := Take(context.Background(), x.root, base, opts)
	require.NoError(x.t, err)
	require.Empty(x.t, s.Skipped)
	return s
}

// every are the paths of a snapshot.
func every(s *Snapshot) []string { return pathsOf(s, func(Fingerprint) bool { return true }) }

// paths are those of the files and symlinks, folders those of the folders.
func paths(s *Snapshot) []string {
	return pathsOf(s, func(f Fingerprint) bool { return !f.Mode.IsDir() })
}

func folders(s *Snapshot) []string {
	return pathsOf(s, func(f Fingerprint) bool { return f.Mode.IsDir() })
}

func pathsOf(s *Snapshot, which func(Fingerprint) bool) (all []string) {
	for _, f := range s.Files {
		if which(f) {
			all = append(all, f.Path)
		}
	}
	return all
}
