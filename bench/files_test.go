package bench

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// BenchmarkFilesUnchanged looks for changes among 10,000 files of which none
// changed; /git is `git status` on the same tree, its start included.
func BenchmarkFilesUnchanged(b *testing.B) {
	many := many(10_000)
	dir := b.TempDir()
	require.NoError(b, workload.Tree(dir, many))
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

// BenchmarkHash reads and hashes 10,000 files; /sha256sum has its names on one
// command line after the other, as many as fit.
func BenchmarkHash(b *testing.B) {
	const many = 10_000
	dir := b.TempDir()
	require.NoError(b, workload.Tree(dir, many))
	root, err := writer.OpenFS(dir)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, root.Close()) })
	b.Run("lopen", func(b *testing.B) {
		for b.Loop() {
			all, err := files.Take(b.Context(), root, nil, files.Options{})
			require.NoError(b, err)
			require.GreaterOrEqual(b, len(all.Files), many)
		}
	})
	b.Run("sha256sum", func(b *testing.B) {
		if _, err := exec.LookPath("sha256sum"); err != nil {
			b.Skip("there is no sha256sum to compare with")
		}
		for b.Loop() {
			cmd := exec.Command("find", dir, "-type", "f", "-exec", "sha256sum", "--binary", "{}", "+")
			require.NoError(b, cmd.Run())
		}
	})
}
