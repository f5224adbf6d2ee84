package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// rewritten is how many files each side of BenchmarkCheckpoint rewrites: it finds as many
// more changed since its last turn as there are sides besides.
const rewritten = 5

// BenchmarkCheckpoint is a checkpoint of 10,000 files of which 10 changed, until it is
// durable, beside what git does for the same. floor asks the system about each file and
// makes one append durable.
func BenchmarkCheckpoint(b *testing.B) {
	p := openProject(b)
	rng := rand.New(rand.NewPCG(workload.Seed, 1))
	change := func() {
		for range rewritten {
			content := fmt.Appendf(nil, "package p\n\n// %x\n", rng.Uint64())
			require.NoError(b, os.WriteFile(p.names[rng.IntN(len(p.names))], content, 0o644))
		}
	}
	store := b.TempDir()
	var dirs [2]writer.FS
	for i, name := range []string{"checkpoints", "blobs"} {
		path := filepath.Join(store, name)
		require.NoError(b, os.Mkdir(path, 0o700))
		var err error
		dirs[i], err = writer.OpenFS(path)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, dirs[i].Close()) })
	}
	s := checkpoint.New(dirs[0], blob.New(dirs[1]), p.root)
	meta := checkpoint.Meta{At: time.Now(), Reason: checkpoint.Manual}
	last, err := s.Create(context.Background(), meta, nil, nil)
	require.NoError(b, err)
	stat, write := statFloor(b, p.names...), appendFloor(b, recordBytes)
	sides := []side{{name: "lopen", before: change, fn: func() {
		last, err = s.Create(context.Background(), meta, last, nil)
		require.NoError(b, err)
	}}, {name: "floor", fn: func() { stat.fn(); write.fn() }}}
	if p.git != nil {
		sides = append(sides, side{name: "git", before: change, fn: func() {
			p.git(b, "add", "-A")
			p.git(b, "write-tree")
		}})
	}
	turns(b, sides...)
}
