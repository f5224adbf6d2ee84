package git

import (
	"bytes"
	"compress/flate"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/adler32"
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
	head := fmt.Sprintf("tree %d\x00", size)
	sum.Write([]byte(head))
	// One compressed part is written again and again: compressing takes ten times as long.
	var part, last bytes.Buffer
	z, err := flate.NewWriter(&part, flate.BestSpeed)
	require.NoError(t, err)
	_, err = z.Write(zeros)
	require.NoError(t, errors.Join(err, z.Flush()))
	z.Reset(&last)
	_, err = z.Write([]byte(head))
	require.NoError(t, errors.Join(err, z.Flush()))
	_, err = fmt.Fprintf(f, "\x78\x01%s", &last)
	require.NoError(t, err)
	for range size / len(zeros) {
		sum.Write(zeros)
		_, err = f.Write(part.Bytes())
		require.NoError(t, err)
	}
	z.Reset(f)
	require.NoError(t, z.Close())
	adler := adler32.Checksum([]byte(head)) // and zeros add its low half to the high one, each
	a, b := adler&0xffff, adler>>16
	b = uint32((uint64(b) + uint64(a)*size) % 65521)
	_, err = f.Write(binary.BigEndian.AppendUint32(nil, b<<16|a))
	require.NoError(t, err)
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
