package bench

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
)

// BenchmarkSecondRun looks at a project of 2 GB that has not changed since another process made a
// checkpoint of it: it opens the store, recalls what that one remembered, and says what differs.
// checkpoint makes one, durably, in its place; git is `git status`, its start included.
func BenchmarkSecondRun(b *testing.B) {
	dir := b.TempDir()
	large(b, dir, many(20_000), 100<<10)
	git := workload.Git(filepath.Join(b.TempDir(), "git"), dir)
	if git != nil {
		require.NoError(b, git("init", "-q"))
		require.NoError(b, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(".lopen\n"), 0o600))
		require.NoError(b, git("-c", "core.fsync=none", "-c", "core.compression=0", "add", "-A")) // not measured
	}
	time.Sleep(2100 * time.Millisecond) // a file's change time cannot be set
	opts := lifecycle.Options{Memory: files.Own()}
	run := func(work func(*lifecycle.Store) error) func() {
		return func() {
			store, _, err := lifecycle.Init(dir, opts)
			require.NoError(b, err)
			require.NoError(b, work(store))
			require.NoError(b, store.Close(b.Context()))
		}
	}
	makeOne := run(func(store *lifecycle.Store) error {
		_, err := store.Checkpoint(b.Context(), nil, false)
		return err
	})
	makeOne()
	sides := []turns.Side{{Name: "lopen", Do: run(func(store *lifecycle.Store) error {
		cps, err := store.Checkpoints(nil)
		if err != nil {
			return err
		}
		e, _, err := cps.Look(b.Context(), checkpoint.Meta{Reason: checkpoint.Manual, At: time.Now()})
		require.NoError(b, err)
		require.Zero(b, e.Changed)
		return cps.Close()
	})}, {Name: "checkpoint", Do: makeOne}}
	if git != nil {
		require.NoError(b, git("status"))
		sides = append(sides, turns.Side{Name: "git", Do: func() { require.NoError(b, git("status", "--porcelain")) }})
	}
	turns.Run(b, sides...)
}

// large makes n files of a size, each with another content, a hundred in a folder. They are sparse,
// because what does not change is not read.
func large(b *testing.B, dir string, n, size int) {
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("package%d", i/100), fmt.Sprintf("file%d.bin", i))
		require.NoError(b, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(b, os.WriteFile(name, binary.BigEndian.AppendUint64(nil, uint64(i)), 0o600))
		require.NoError(b, os.Truncate(name, int64(size)))
	}
}
