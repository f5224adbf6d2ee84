package bench

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// sources makes a tree of n files in folders up to five deep, as repositories have
// them, always the same for a seed.
func sources(b *testing.B, n int, seed uint64) string {
	b.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	top := b.TempDir()
	dirs := []string{"."}
	for i := range n {
		if i%12 == 0 {
			dir := filepath.Join(dirs[r.IntN(min(len(dirs), 80))], fmt.Sprintf("package%d", i))
			require.NoError(b, os.MkdirAll(filepath.Join(top, dir), 0o755))
			dirs = append(dirs, dir)
		}
		content := make([]byte, 100+r.IntN(8000))
		for j := range content {
			content[j] = byte(r.Uint32())
		}
		require.NoError(b, os.WriteFile(filepath.Join(top, dirs[r.IntN(len(dirs))], fmt.Sprintf("file%d.go", i)), content, 0o644))
	}
	require.NoError(b, os.WriteFile(filepath.Join(top, ".gitignore"), []byte("*.o\n*.log\n/build/\nnode_modules/\n!keep.log\n"), 0o644))
	return top
}

// BenchmarkFilesUnchanged looks for changes among 10,000 files of which none
// changed; /git is `git status` on the same tree, its start included.
func BenchmarkFilesUnchanged(b *testing.B) {
	many := many(10_000)
	dir := sources(b, many, 1)
	root, err := writer.OpenFS(dir)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, root.Close()) })
	time.Sleep(3 * time.Second) // so that no file is as young as the snapshot, for git as well
	base, err := files.Take(b.Context(), root, nil, files.Options{})
	require.NoError(b, err)
	require.GreaterOrEqual(b, len(base.Files), many)
	require.Empty(b, base.Skipped)
	b.Run("lopen", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			now, err := files.Take(b.Context(), root, base, files.Options{})
			require.NoError(b, err)
			require.Empty(b, files.Compare(base, now))
			base = now
		}
	})
	b.Run("load+lopen", func(b *testing.B) {
		data := base.Encode()
		for b.Loop() {
			loaded, err := files.Decode(data)
			require.NoError(b, err)
			now, err := files.Take(b.Context(), root, loaded, files.Options{})
			require.NoError(b, err)
			require.Empty(b, files.Compare(loaded, now))
		}
	})
	b.Run("git", func(b *testing.B) {
		git, err := exec.LookPath("git")
		if err != nil {
			b.Skip("there is no git to compare with")
		}
		run := func(args ...string) {
			cmd := exec.Command(git, append([]string{"-C", dir}, args...)...)
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			out, err := cmd.CombinedOutput()
			require.NoError(b, err, "%s", out)
		}
		run("init", "-q")
		run("add", "-A")
		run("status")
		for b.Loop() {
			run("status", "--porcelain")
		}
	})
}
