package bench

import (
	"crypto/sha256"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

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
	sides := []side{{name: "lopen", fn: look}, {name: "load", fn: func() {
		base, err = files.Decode(data)
		require.NoError(b, err)
		look()
	}}, statFloor(b, p.names...)}
	if p.git != nil {
		p.git(b, "status")
		sides = append(sides, side{name: "git", fn: func() { p.git(b, "status", "--porcelain") }})
	}
	turns(b, sides...)
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
	sides := []side{{name: "lopen", fn: func() {
		all, err := files.Take(b.Context(), p.root, nil, files.Options{})
		require.NoError(b, err)
		require.GreaterOrEqual(b, len(all.Files), len(p.names))
	}}, {name: "memory", fn: func() { sha256.Sum256(bytes) }}}
	if _, err := exec.LookPath("sha256sum"); err == nil {
		sides = append(sides, side{name: "sha256sum", fn: func() {
			require.NoError(b, exec.Command("find", p.dir, "-type", "f", "-exec", "sha256sum", "--binary", "{}", "+").Run())
		}})
	}
	turns(b, sides...)
}
