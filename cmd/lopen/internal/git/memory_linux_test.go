package git

import (
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSmallRepositoryTakesLittleMemory gives git a commit whose tree is 300 KB on the
// disk and 300 MiB in memory.
func TestSmallRepositoryTakesLittleMemory(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.repository("a")
	const size = 300 << 20
	zeros := make([]byte, 1<<20)
	sum := sha1.New()
	loose := p.path("a/loose")
	f, err := os.Create(loose)
	require.NoError(t, err)
	z, err := zlib.NewWriterLevel(f, zlib.BestSpeed)
	require.NoError(t, err)
	both := io.MultiWriter(sum, z)
	fmt.Fprintf(both, "tree %d\x00", size)
	for range size / len(zeros) {
		_, err = both.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	tree := hex.EncodeToString(sum.Sum(nil))
	object := p.path("a/.git/objects/" + tree[:2] + "/" + tree[2:])
	require.NoError(t, os.MkdirAll(filepath.Dir(object), 0o755))
	require.NoError(t, os.Rename(loose, object))
	p.write("a/commit", "tree "+tree+"\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n")
	commit := p.git("a", "hash-object", "-t", "commit", "-w", "--literally", "commit")
	p.write("a/.git/HEAD", commit+"\n")

	require.Equal(t, State{Head: commit, Branch: "(detached)"}, p.look("a"), "git gave up")
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used))
	require.Less(t, used.Maxrss, int64(256<<10), "KiB, of the largest git of this test's process")
}
