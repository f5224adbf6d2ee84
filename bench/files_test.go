package bench

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// project makes a tree of n files that no tool takes for racily clean, and names them.
func project(b *testing.B, n int) (dir string, root writer.FS, names []string) {
	b.Helper()
	dir = b.TempDir()
	require.NoError(b, workload.Tree(dir, n))
	require.NoError(b, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
			err = os.Chtimes(name, hourAgo, hourAgo)
		}
		return err
	}))
	root, err := writer.OpenFS(dir)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, root.Close()) })
	time.Sleep(2100 * time.Millisecond) // a file's change time cannot be set
	return dir, root, names
}

// hourAgo is old enough for everybody.
var hourAgo = time.Now().Add(-time.Hour)

// BenchmarkFilesUnchanged looks for changes among 10,000 files of which none changed;
// load also decodes the snapshot that it compares with, git is `git status` on the same
// tree, its start included, and stat asks the system about each file, one after the other.
func BenchmarkFilesUnchanged(b *testing.B) {
	many := many(10_000)
	dir, root, names := project(b, many)
	base, err := files.Take(b.Context(), root, nil, files.Options{})
	require.NoError(b, err)
	require.GreaterOrEqual(b, len(base.Files), many)
	require.Empty(b, base.Skipped)
	look := func() {
		now, err := files.Take(b.Context(), root, base, files.Options{})
		require.NoError(b, err)
		require.Empty(b, files.Compare(base, now))
		base = now
	}
	data := base.Encode()
	sides := []side{{name: "lopen", fn: look}, {name: "load", fn: func() {
		base, err = files.Decode(data)
		require.NoError(b, err)
		look()
	}}, statFloor(b, names...)}
	if git := besideGit(b, dir); git != nil {
		git("status")
		sides = append(sides, side{name: "git", fn: func() { git("status", "--porcelain") }})
	}
	turns(b, sides...)
}

// BenchmarkHash reads and hashes 10,000 files; sha256sum has its names on one command
// line after the other, as many as fit, and memory hashes as many bytes that are there
// already.
func BenchmarkHash(b *testing.B) {
	many := many(10_000)
	dir, root, names := project(b, many)
	var bytes []byte
	for _, name := range names {
		content, err := os.ReadFile(name)
		require.NoError(b, err)
		bytes = append(bytes, content...)
	}
	sides := []side{{name: "lopen", fn: func() {
		all, err := files.Take(b.Context(), root, nil, files.Options{})
		require.NoError(b, err)
		require.GreaterOrEqual(b, len(all.Files), many)
	}}, {name: "memory", fn: func() { sha256.Sum256(bytes) }}}
	if _, err := exec.LookPath("sha256sum"); err == nil {
		sides = append(sides, side{name: "sha256sum", fn: func() {
			require.NoError(b, exec.Command("find", dir, "-type", "f", "-exec", "sha256sum", "--binary", "{}", "+").Run())
		}})
	}
	turns(b, sides...)
}
