package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	checkpointFiles   = 10_000 // a tenth with -short
	checkpointChanged = 10
)

// checkpointTree makes a project of small files in 400 folders, from a seed, old
// enough that no file is racily clean.
func checkpointTree(b *testing.B, root string) (paths []string) {
	rng := rand.New(rand.NewPCG(1, 2))
	old := time.Now().Add(-time.Hour)
	for i := range many(checkpointFiles) {
		dir := filepath.Join(root, fmt.Sprintf("d%02d", i/500), fmt.Sprintf("e%02d", i/25%20))
		if i%25 == 0 {
			require.NoError(b, os.MkdirAll(dir, 0o755))
		}
		path := filepath.Join(dir, fmt.Sprintf("file%05d.go", i))
		require.NoError(b, os.WriteFile(path, content(rng), 0o644))
		require.NoError(b, os.Chtimes(path, old, old))
		paths = append(paths, path)
	}
	return paths
}

func content(rng *rand.Rand) []byte {
	return fmt.Appendf(nil, "package p\n\n// %x\n", rng.Uint64())
}

// change rewrites a few files, the same for every contender.
func change(b *testing.B, rng *rand.Rand, paths []string) {
	for range checkpointChanged {
		require.NoError(b, os.WriteFile(paths[rng.IntN(len(paths))], content(rng), 0o644))
	}
}

// BenchmarkCheckpoint is a checkpoint of 10,000 files of which 10 changed, until it
// is durable, beside what git does for the same.
func BenchmarkCheckpoint(b *testing.B) {
	root := b.TempDir()
	paths := checkpointTree(b, root)
	b.Run("create", func(b *testing.B) {
		side := b.TempDir()
		var dirs [3]writer.FS
		for i, name := range []string{"checkpoints", "blobs", ""} {
			path := root
			if name != "" {
				path = filepath.Join(side, name)
				require.NoError(b, os.Mkdir(path, 0o700))
			}
			var err error
			dirs[i], err = writer.OpenFS(path)
			require.NoError(b, err)
			defer dirs[i].Close()
		}
		s := checkpoint.New(dirs[0], blob.New(dirs[1]), dirs[2])
		meta := checkpoint.Meta{At: time.Now(), Reason: checkpoint.Manual}
		last, err := s.Create(context.Background(), meta, nil, nil)
		require.NoError(b, err)
		rng := rand.New(rand.NewPCG(3, 4))
		b.ResetTimer()
		for range b.N {
			b.StopTimer()
			change(b, rng, paths)
			b.StartTimer()
			last, err = s.Create(context.Background(), meta, last, nil)
			require.NoError(b, err)
		}
	})
	b.Run("git", func(b *testing.B) {
		if _, err := exec.LookPath("git"); err != nil {
			b.Skip("there is no git to compare with")
		}
		gitDir := filepath.Join(b.TempDir(), "git")
		git := func(args ...string) {
			cmd := exec.Command("git", append([]string{"--git-dir", gitDir, "--work-tree", root, "-c", "core.fsync=all"}, args...)...)
			out, err := cmd.CombinedOutput()
			require.NoError(b, err, string(out))
		}
		git("init", "-q")
		git("add", "-A")
		rng := rand.New(rand.NewPCG(5, 6))
		b.ResetTimer()
		for range b.N {
			b.StopTimer()
			change(b, rng, paths)
			b.StartTimer()
			git("add", "-A")
			git("write-tree")
		}
	})
}
