package bench

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/bench/turns"
	"github.com/lopen-dev/lopen/bench/workload"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/lifecycle/checkpoint"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// rewritten is how many files each side of BenchmarkCheckpoint rewrites: it finds as many
// more changed since its last turn as there are sides besides.
const rewritten = 5

// A chain is a place for checkpoints of a tree.
type chain struct {
	*checkpoint.Store
	dir string
}

func newChain(tb testing.TB, tree writer.FS) chain {
	tb.Helper()
	k := chain{dir: tb.TempDir()}
	var dirs [2]writer.FS
	for i, name := range []string{"checkpoints", "blobs"} {
		path := filepath.Join(k.dir, name)
		require.NoError(tb, os.Mkdir(path, 0o700))
		var err error
		dirs[i], err = writer.OpenFS(path)
		require.NoError(tb, err)
		tb.Cleanup(func() { require.NoError(tb, dirs[i].Close()) })
	}
	k.Store = checkpoint.New(dirs[0], checkpoint.MainTree, blob.New(dirs[1]), tree, checkpoint.Options{})
	return k
}

func (k chain) create(tb testing.TB) *checkpoint.Entry {
	tb.Helper()
	e, err := k.Create(context.Background(), checkpoint.Meta{Session: "bench-20260214-1", At: time.Now(), Reason: checkpoint.Manual})
	require.NoError(tb, err)
	return e
}

// bytes are the lengths of all files of the place.
func (k chain) bytes(tb testing.TB) (n int64) {
	tb.Helper()
	require.NoError(tb, filepath.WalkDir(k.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				n += info.Size()
			}
		}
		return err
	}))
	return n
}

// rewrite gives files of a tree another content, and returns the bytes of it.
func rewrite(tb testing.TB, rng *rand.Rand, names []string, n int) (bytes int64) {
	for range n {
		content := fmt.Appendf(nil, "package p\n\n// %x\n", rng.Uint64())
		require.NoError(tb, os.WriteFile(names[rng.IntN(len(names))], content, 0o644))
		bytes += int64(len(content))
	}
	return bytes
}

// BenchmarkCheckpoint is a checkpoint of 10,000 files of which 10 changed, until it is
// durable, beside what git does for the same. floor asks the system about each file and
// makes one append durable.
func BenchmarkCheckpoint(b *testing.B) {
	p := openProject(b)
	rng := rand.New(rand.NewPCG(workload.Seed, 1))
	change := func() { rewrite(b, rng, p.names, rewritten) }
	s := newChain(b, p.root)
	s.create(b)
	stat, write := statFloor(b, p.names...), appendFloor(b, recordBytes)
	sides := []turns.Side{{Name: "lopen", Before: change, Do: func() { s.create(b) }}, {Name: "floor", Do: func() { stat.Do(); write.Do() }}}
	if p.git != nil {
		sides = append(sides, turns.Side{Name: "git", Before: change, Do: func() {
			require.NoError(b, p.git("add", "-A"))
			require.NoError(b, p.git("write-tree"))
		}})
	}
	turns.Run(b, sides...)
}

// BenchmarkCheckpointUnchanged is a checkpoint of 10,000 files of which none changed,
// until it is durable; look only finds out that none did.
func BenchmarkCheckpointUnchanged(b *testing.B) {
	p := openProject(b)
	s := newChain(b, p.root)
	s.create(b)
	base, err := files.Take(b.Context(), p.root, nil, files.Options{})
	require.NoError(b, err)
	turns.Run(b, turns.Side{Name: "lopen", Do: func() { s.create(b) }}, turns.Side{Name: "look", Do: func() {
		base, err = files.Take(b.Context(), p.root, base, files.Options{})
		require.NoError(b, err)
	}})
}

// BenchmarkCheckpointFirst is the first checkpoint of 50,000 files, until it is durable,
// beside what git does for the same.
func BenchmarkCheckpointFirst(b *testing.B) {
	dir, _ := tree(b, many(50_000))
	root, err := writer.OpenFS(dir)
	require.NoError(b, err)
	defer root.Close()
	sides := []turns.Side{{Name: "lopen", Do: func() { newChain(b, root).create(b) }}}
	if workload.Git("", dir) != nil {
		sides = append(sides, turns.Side{Name: "git", Do: func() {
			git := workload.Git(filepath.Join(b.TempDir(), "git"), dir)
			for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"write-tree"}} {
				require.NoError(b, git(args...))
			}
		}})
	}
	turns.Run(b, sides...)
}

// BenchmarkCheckpointDiff opens the checkpoints of 100,000 files and says what differs
// between two of which ten do.
func BenchmarkCheckpointDiff(b *testing.B) {
	dir, names := tree(b, many(100_000))
	root, err := writer.OpenFS(dir)
	require.NoError(b, err)
	defer root.Close()
	s := newChain(b, root)
	first := s.create(b)
	rewrite(b, rand.New(rand.NewPCG(workload.Seed, 1)), names, 10)
	second := s.create(b)
	turns.Run(b, turns.Side{Name: "lopen", Do: func() {
		again := s.reopened(b, root)
		defer again.close()
		changes, err := checkpoint.Diff(again.Tree(first.Root), again.Tree(second.Root))
		require.NoError(b, err)
		require.Len(b, changes, 10)
	}})
}

// A reopened place is what another process would open.
type reopened struct {
	*checkpoint.Store
	dirs [2]writer.FS
}

func (k chain) reopened(tb testing.TB, tree writer.FS) reopened {
	tb.Helper()
	var r reopened
	for i, name := range []string{"checkpoints", "blobs"} {
		var err error
		r.dirs[i], err = writer.OpenFS(filepath.Join(k.dir, name))
		require.NoError(tb, err)
	}
	r.Store = checkpoint.New(r.dirs[0], checkpoint.MainTree, blob.New(r.dirs[1]), tree, checkpoint.Options{})
	return r
}

func (r reopened) close() {
	for _, d := range r.dirs {
		_ = d.Close()
	}
}

// tree makes a tree of so many files and returns their names.
func tree(tb testing.TB, n int) (dir string, names []string) {
	tb.Helper()
	dir = tb.TempDir()
	names, err := workload.Tree(dir, n)
	require.NoError(tb, err)
	return dir, names
}

// overhead makes checkpoints of files of which ten change between two, and returns the most
// bytes that one took and the bytes of all, without the contents, and those of one more
// for which nothing changed.
func overhead(tb testing.TB, files, checkpoints int) (most, all, unchanged int64) {
	tb.Helper()
	dir, names := tree(tb, files)
	root, err := writer.OpenFS(dir)
	require.NoError(tb, err)
	defer root.Close()
	var contents int64
	for _, name := range names {
		info, err := os.Stat(name)
		require.NoError(tb, err)
		contents += info.Size()
	}
	s := newChain(tb, root)
	s.create(tb)
	rng := rand.New(rand.NewPCG(workload.Seed, 1))
	was := s.bytes(tb)
	for range checkpoints - 1 {
		changed := rewrite(tb, rng, names, 10)
		contents += changed
		s.create(tb)
		is := s.bytes(tb)
		most = max(most, is-was-changed)
		was = is
	}
	s.create(tb)
	return most, was - contents, s.bytes(tb) - was
}

// What checkpoints take of the disk does not depend on the machine. BenchmarkCheckpointBytes
// has the same of 10,000 files.
func TestCheckpointBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("bytes are counted; -short")
	}
	most, all, unchanged := overhead(t, 1000, 30)
	require.Less(t, most, int64(32<<10), "for ten changed files")
	require.Less(t, all, int64(1<<20))
	require.Less(t, unchanged, int64(2<<10), "one line")
}

// BenchmarkCheckpointBytes is what 200 checkpoints of 10,000 files take of the disk beside
// the contents, when ten files change between two.
func BenchmarkCheckpointBytes(b *testing.B) {
	for b.Loop() {
		most, all, unchanged := overhead(b, many(10_000), many(200))
		b.ReportMetric(float64(most)/(1<<10), "KiB-most")
		b.ReportMetric(float64(all)/(1<<20), "MiB-all")
		b.ReportMetric(float64(unchanged), "B-unchanged")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCheckpointMemory is the most memory that the first two checkpoints of 100,000
// files took.
func BenchmarkCheckpointMemory(b *testing.B) {
	dir, names := tree(b, many(100_000))
	root, err := writer.OpenFS(dir)
	require.NoError(b, err)
	defer root.Close()
	for b.Loop() {
		s := newChain(b, root)
		var most uint64
		done, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for tick := time.NewTicker(5 * time.Millisecond); ; {
				select {
				case <-tick.C:
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapInuse+m.StackInuse)
				case <-done:
					tick.Stop()
					return
				}
			}
		}()
		s.create(b)
		rewrite(b, rand.New(rand.NewPCG(workload.Seed, 1)), names, 10)
		s.create(b)
		close(done)
		<-stopped
		b.ReportMetric(float64(most)/(1<<20), "MiB")
	}
	b.ReportMetric(0, "ns/op")
}
