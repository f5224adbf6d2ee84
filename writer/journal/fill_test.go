package journal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

const first = "journal-1-1.jsonl"

// A record takes one write and one sync. Only one of many changes the length of the file.
func TestFilledAhead(t *testing.T) {
	t.Parallel()
	dir := &faulty{FS: open(t)}
	w := createWith(t, dir, journal.SegmentSize, 0)
	steps := map[int]bool{}
	for n := 1; n <= 500; n++ {
		before := dir.total()
		writes, syncs := dir.calls["write"], dir.calls["datasync"]
		require.NoError(t, w.Note())
		require.Equal(t, before+1, dir.total(), "a note is one write")
		_, err := w.Append(journal.Record{Body: fmt.Appendf(nil, `"n":%d,"pad":"%0300d"`, n, n)})
		require.NoError(t, err)
		require.Equal(t, before+3, dir.total(), "and a record one write and one sync")
		require.Equal(t, []int{writes + 2, syncs + 1}, []int{dir.calls["write"], dir.calls["datasync"]})
		steps[len(content(t, dir, first))] = true
	}
	require.LessOrEqual(t, len(steps), 5, "the file grew in steps of 64 KiB at least")
	require.Less(t, len(content(t, dir, first))-len(text(t, dir, first)), 256<<10)
	log := read(t, dir, 0)
	require.Empty(t, log.Faults, "zeros at the end are normal")
	require.Equal(t, count(1, 500), bodies(t, log, log.Records))
}

// A step is as long as four appends, within bounds, and ends at the segment's limit.
func TestStepsOfFilling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, least, most int }{{1, 1, 64 << 10}, {20 << 10, 32 << 10, 128 << 10}, {100 << 10, 32 << 10, 256 << 10}, {1 << 20, 1, 256 << 10}} {
		dir := open(t)
		w := createWith(t, dir, journal.SegmentSize, 0)
		_, err := w.Append(journal.Record{Body: fmt.Appendf(nil, `"pad":"%s"`, bytes.Repeat([]byte("x"), c.size))})
		require.NoError(t, err)
		zeros := len(content(t, dir, first)) - len(text(t, dir, first))
		require.GreaterOrEqual(t, zeros, c.least, "after %d bytes", c.size)
		require.LessOrEqual(t, zeros, c.most, "after %d bytes", c.size)
	}
	dir := open(t)
	w := createWith(t, dir, journal.SegmentSize, 0)
	w.Limit = 100 << 10
	pad := journal.Record{Body: fmt.Appendf(nil, `"pad":"%s"`, bytes.Repeat([]byte("x"), 9<<10))}
	for range 40 {
		_, err := w.Append(pad)
		require.NoError(t, err)
	}
	_, err := w.Append(pad, pad, pad, pad, pad, pad, pad, pad, pad, pad, pad, pad) // longer than a segment
	require.NoError(t, err)
	for _, n := range names(t, dir)[:4] {
		require.LessOrEqual(t, len(content(t, dir, n)), 100<<10, n)
	}
	log := read(t, dir, 0)
	require.Empty(t, log.Faults)
	require.Len(t, log.Records, 52)
}

// After the disk was full, the next segment is not preallocated.
func TestNoFillingOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := &faulty{FS: open(t), err: syscall.ENOSPC}
	w := createWith(t, dir, journal.SegmentSize, 0)
	dir.fails = func(op string, _ int) bool { return op == "write" }
	_, err := w.Append(body(1))
	require.Error(t, err)
	dir.fails = nil
	require.NoError(t, w.Reopen())
	add(t, w, 1, 3)
	require.NoError(t, w.Note())
	add(t, w, 4, 4)
	require.Equal(t, text(t, dir, "journal-1-2.jsonl"), content(t, dir, "journal-1-2.jsonl"))
	w.Full() // the segment after it is preallocated again
	add(t, w, 5, 5)
	require.NotEqual(t, text(t, dir, "journal-1-3.jsonl"), content(t, dir, "journal-1-3.jsonl"))
	check(t, dir, count(1, 5))
}

// A readCounter counts the bytes that are read of files.
type readCounter struct {
	writer.FS
	n *atomic.Int64
}

func (d readCounter) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return countedFile{f, d.n}, nil
}

type countedFile struct {
	writer.File
	n *atomic.Int64
}

func (f countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.n.Add(int64(n))
	return n, err
}

func (f countedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.n.Add(int64(n))
	return n, err
}

// A hole of a sparse file reads as zeros, however long it is, and is not read to its end.
func TestSparseFiles(t *testing.T) {
	t.Parallel()
	const length = 2 << 30
	dir := readCounter{open(t), new(atomic.Int64)}
	w := createWith(t, dir, journal.SegmentSize, 3)
	require.NoError(t, w.Close())
	require.NoError(t, os.Truncate(filepath.Join(dir.Name(), first), length))
	log := read(t, dir, 0)
	require.Empty(t, log.Faults)
	require.Equal(t, count(1, 3), bodies(t, log, log.Records))
	require.Less(t, dir.n.Load(), int64(length/4))
	require.NoError(t, os.Truncate(filepath.Join(dir.Name(), first), 0))
	require.NoError(t, os.Truncate(filepath.Join(dir.Name(), first), length))
	log = read(t, dir, 0)
	require.Empty(t, log.Records)
	require.EqualValues(t, 1, log.Lost, "the list knows the segment")
	require.Less(t, dir.n.Load(), int64(length/2))
}
