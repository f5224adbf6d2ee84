package journal_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A slow folder calls between after each read of a segment, with what was read.
type slow struct {
	writer.FS
	between func(read []byte)
}

type slowFile struct {
	writer.File
	between func(read []byte)
}

func (d *slow) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err == nil && flag&(os.O_WRONLY|os.O_RDWR) == 0 && journal.IsSegment(name) {
		f = &slowFile{f, d.between}
	}
	return f, err
}

func (f *slowFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.between(p[:n])
	return n, err
}

// headerSize is the size of a read that asks for the first line only, in bytes.
const headerSize = 4 << 10

// A reader reads preallocated zeros, then the writer appends beyond the place where the
// reader reads next. The zeros are older than what follows them, and no damage.
func TestReaderDuringAppends(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := createWith(t, dir, journal.SegmentSize, 3)
	big := journal.Record{Body: fmt.Appendf(nil, `"what":%q`, strings.Repeat("x", 100<<10)), Entry: true}
	last := 3
	reader := &slow{FS: dir, between: func(read []byte) {
		for last < 30 && len(read) > headerSize && read[len(read)-1] == 0 {
			_, err := w.Append(body(0), big, body(0))
			require.NoError(t, err)
			last += 3
		}
	}}
	log, err := journal.Read(reader, 0, true)
	require.NoError(t, err)
	require.NotContains(t, kinds(log), journal.Damaged)
	require.Zero(t, log.Lost)
	require.Equal(t, count(1, len(log.Records)), seqs(log.Records), "without a gap")

	last = 3
	for part, err := range journal.Parts(reader) {
		require.NoError(t, err)
		require.NotContains(t, kinds(part.Log), journal.Damaged)
		require.Equal(t, count(1, len(part.Records)), seqs(part.Records), "without a gap")
	}
}

// A turning folder calls next after a reader opened the list or listed the folder.
type turning struct {
	writer.FS
	next func()
}

func (d *turning) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if name == journal.ListFile {
		d.next()
	}
	return f, err
}

func (d *turning) ReadDir(name string) ([]fs.DirEntry, error) {
	all, err := d.FS.ReadDir(name)
	d.next()
	return all, err
}

// A reader misses no segment when the writer opens one between two of its calls.
func TestReaderDuringRotation(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 3)
	last := 3
	log, err := journal.Read(&turning{dir, func() {
		w.Full()
		last++
		add(t, w, last, last)
	}}, 0, true)
	require.NoError(t, err)
	require.Greater(t, last, 4)
	require.Zero(t, log.Lost)
	require.NotContains(t, kinds(log), journal.Damaged)
	require.GreaterOrEqual(t, len(log.Records), 4)
}

// Grown is true when there is one more record, note or segment.
func TestGrown(t *testing.T) {
	t.Parallel()
	dir := open(t)
	require.False(t, journal.Grown(dir, journal.Extent{}))
	w := create(t, dir, 3)
	require.True(t, journal.Grown(dir, journal.Extent{}))
	seen := read(t, dir, 0).Extent()
	for _, more := range []func(){func() { add(t, w, 4, 4) }, func() { require.NoError(t, w.Note()) }, func() { w.Full(); add(t, w, 5, 5) }, func() { w = reopen(t, dir) }} {
		require.False(t, journal.Grown(dir, seen))
		more()
		require.True(t, journal.Grown(dir, seen))
		seen = read(t, dir, 0).Extent()
	}
}
