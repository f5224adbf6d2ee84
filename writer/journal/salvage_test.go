package journal_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

// An intact record that a failed call left in the file is void.
func TestUnacknowledgedRecordIsVoid(t *testing.T) {
	t.Parallel()
	dir := &faulty{FS: open(t), err: syscall.EIO, fails: func(op string, k int) bool { return op == "datasync" && k == 3 }}
	w := create(t, dir, 2)
	_, err := w.Append(body(99))
	require.Equal(t, writer.ClassDevice, writer.ClassOf(err))
	require.Equal(t, []int{1, 2, 99}, bodies(t, read(t, dir, 0), read(t, dir, 0).Records), "nothing speaks against it yet")
	require.NoError(t, w.Reopen())
	log := read(t, dir, 0)
	require.Equal(t, count(1, 2), bodies(t, log, log.Records))
	require.Equal(t, []journal.Kind{journal.Settled}, kinds(log))
	add(t, w, 3, 4)
	log = read(t, dir, 0)
	require.Equal(t, count(1, 4), bodies(t, log, log.Records))
	require.Equal(t, []journal.Kind{journal.Settled}, kinds(log))
	w = reopen(t, dir)
	add(t, w, 5, 5)
	log = read(t, dir, 0)
	require.Equal(t, count(1, 5), bodies(t, log, log.Records))
}

// TestSalvage finds intact records that Read leaves out: behind a damaged header and behind
// a hole. Of two records with one number it takes the later one.
func TestSalvage(t *testing.T) {
	t.Parallel()
	dir := open(t)
	require.NoError(t, create(t, dir, 5).Close())
	w := reopen(t, dir)
	add(t, w, 6, 8)
	require.NoError(t, w.Close())
	flip(t, dir, ref(t, read(t, dir, 0), 7))
	first := content(t, dir, "journal-1-1.jsonl")
	first[3] ^= 1 // its header
	put(t, dir, "journal-1-1.jsonl", first)
	require.Empty(t, bodies(t, read(t, dir, 8), read(t, dir, 8).Above(8)))
	log, err := journal.Salvage(dir, read(t, dir, 0).Session)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 8}, seqs(log.Records))
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 8}, bodies(t, log, log.Records))
	log, err = journal.Salvage(dir, "other-20260214-1")
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3, 4, 5}, seqs(log.Records), "a segment that names another session strayed in")
}

// Records of a writer that had lost its lease, or that gave them up, were never acknowledged.
func TestSalvageLeavesOutWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	dir, other := open(t), open(t)
	require.NoError(t, create(t, dir, 3).Close())
	w := reopen(t, dir) // 3 is copied
	require.NoError(t, w.Close())
	require.NoError(t, create(t, other, 5).Close())
	put(t, dir, "journal-1-1.jsonl", content(t, other, "journal-1-1.jsonl"))
	require.Equal(t, []int{1, 2, 3}, seqs(read(t, dir, 0).Records))
	log, err := journal.Salvage(dir, read(t, dir, 0).Session)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, seqs(log.Records))
	copied := content(t, dir, "journal-2-1.jsonl")
	copied[len(copied)-3] ^= 1
	put(t, dir, "journal-2-1.jsonl", copied)
	log, err = journal.Salvage(dir, read(t, dir, 0).Session)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2, 3}, seqs(log.Records), "of a damaged copy the original is taken")
}
