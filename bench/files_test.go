package bench

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/cache/files"
)

// BenchmarkFilesUnchanged looks for changes among 10,000 files of which none changed;
// load also decodes the snapshot that it compares with, git is `git status` on the same
// tree, its start included, and stat asks the system about each file, one after the other.
func BenchmarkFilesUnchanged(b *testing.B) {
	p := openProject(b)
	base, err := files.Take(b.Context(), p.root, nil, files.Options{})
	require.NoError(b, err)
	require.GreaterOrEqual(b, len(base.Files), len(p.names))
	require.Empty(b, base.Skipped)
	look := func() {
		now, err := files.Take(b.Context(), p.root, base, files.Options{})
		require.NoError(b, err)
		require.Empty(b, files.Compare(base, now))
		base = now
	}
	data := base.Encode()
	sides := []turns.Side{{Name: "lopen", Do: look}, {Name: "load", Do: func() {
		base, err = files.Decode(data)
		require.NoError(b, err)
		look()
	}}, statFloor(b, p.names...)}
	if p.git != nil {
		require.NoError(b, p.git("status"))
		sides = append(sides, turns.Side{Name: "git", Do: func() { require.NoError(b, p.git("status", "--porcelain")) }})
	}
	turns.Run(b, sides...)
}

// BenchmarkHash reads and hashes 10,000 files; sha256sum has its names on one command
// line after the other, as many as fit, and memory hashes as many bytes that are there
// already.
func BenchmarkHash(b *testing.B) {
	p := openProject(b)
	var bytes []byte
	for _, name := range p.names {
		content, err := os.ReadFile(name)
		require.NoError(b, err)
		bytes = append(bytes, content...)
	}
	sides := []turns.Side{{Name: "lopen", Do: func() {
		all, err := files.Take(b.Context(), p.root, nil, files.Options{})
		require.NoError(b, err)
		require.GreaterOrEqual(b, len(all.Files), len(p.names))
	}}, {Name: "memory", Do: func() { sha256.Sum256(bytes) }}}
	if _, err := exec.LookPath("sha256sum"); err == nil {
		sides = append(sides, turns.Side{Name: "sha256sum", Do: func() {
			require.NoError(b, exec.Command("find", p.dir, "-type", "f", "-exec", "sha256sum", "--binary", "{}", "+").Run())
		}})
	}
	turns.Run(b, sides...)
}
