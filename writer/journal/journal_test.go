package journal_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

const id = "auth-20260214-1"

func open(t testing.TB) writer.FS {
	t.Helper()
	dir, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	return dir
}

func body(n int) []byte { return fmt.Appendf(nil, `"n":%d,"what":"record"`, n) }

// create makes a journal with records 1 to n, each appended for itself.
func create(t testing.TB, dir writer.FS, n int) *journal.Writer {
	t.Helper()
	w, err := journal.Create(dir, id)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	add(t, w, 1, n)
	return w
}

// add appends records first to last, each for itself.
func add(t testing.TB, w *journal.Writer, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		at, err := w.Append(body(i))
		require.NoError(t, err)
		require.EqualValues(t, i, at.Seq)
		require.Equal(t, at, w.Last())
	}
}

// reopen begins the next epoch.
func reopen(t testing.TB, dir writer.FS, base journal.Position) *journal.Writer {
	t.Helper()
	w, err := journal.Open(dir, id, read(t, dir, base.Seq), base)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

func read(t testing.TB, dir writer.FS, base uint64) *journal.Log {
	t.Helper()
	log, err := journal.Read(dir, base, true)
	require.NoError(t, err)
	return log
}

// bodies are the values of n in the records.
func bodies(t testing.TB, log *journal.Log, refs []journal.Ref) []int {
	t.Helper()
	got := []int{}
	err := log.Lines(refs, func(r *journal.Ref, line []byte) error {
		var rec struct {
			Seq, Epoch uint64
			N          int
		}
		if err := json.Unmarshal(line, &rec); err != nil {
			return err
		}
		if rec.Seq != r.Seq || rec.Epoch != r.Epoch {
			return fmt.Errorf("record %d of epoch %d says %s", r.Seq, r.Epoch, line)
		}
		got = append(got, rec.N)
		return nil
	})
	require.NoError(t, err)
	return got
}

func count(first, last int) []int {
	all := []int{}
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

func seqs(refs []journal.Ref) []int {
	all := []int{}
	for _, r := range refs {
		all = append(all, int(r.Seq))
	}
	return all
}

func kinds(log *journal.Log) []journal.Kind {
	all := []journal.Kind{}
	for _, f := range log.Faults {
		all = append(all, f.Kind)
	}
	return all
}

func ref(t testing.TB, log *journal.Log, seq int) journal.Ref {
	t.Helper()
	i := slices.IndexFunc(log.Records, func(r journal.Ref) bool { return int(r.Seq) == seq })
	require.GreaterOrEqual(t, i, 0, "record %d", seq)
	return log.Records[i]
}

func content(t testing.TB, dir writer.FS, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir.Name(), name))
	require.NoError(t, err)
	return data
}

func put(t testing.TB, dir writer.FS, name string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), name), data, 0o600))
}

// flip changes one byte in the middle of a record.
func flip(t testing.TB, dir writer.FS, r journal.Ref) {
	t.Helper()
	data := content(t, dir, r.Segment())
	data[r.Offset+r.Length/2] ^= 1
	put(t, dir, r.Segment(), data)
}

func names(t testing.TB, dir writer.FS) []string {
	t.Helper()
	entries, err := os.ReadDir(dir.Name())
	require.NoError(t, err)
	all := []string{}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// sealed ends a line that lacks its checksum.
func sealed(line string) string {
	return fmt.Sprintf("%s,\"crc\":\"%08x\"}\n", line, crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli)))
}

func TestAppendAndRead(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 200)
	at, err := w.Append(body(201), body(202), body(203))
	require.NoError(t, err)
	require.EqualValues(t, 203, at.Seq, "a batch ends with its last record")
	require.NoError(t, w.Close())
	_, err = w.Append(body(204))
	require.Error(t, err, "it is closed")

	log := read(t, dir, 0)
	require.Empty(t, log.Faults)
	require.Zero(t, log.Lost)
	require.Equal(t, id, log.Session)
	require.False(t, log.Empty())
	require.EqualValues(t, 203, log.Last())
	require.Equal(t, count(1, 203), seqs(log.Records))
	require.Equal(t, count(1, 203), bodies(t, log, log.Records))
	require.Equal(t, at, log.Records[202].Position)
	require.Equal(t, count(200, 203), seqs(log.Above(199)))
	require.Empty(t, log.Above(203))

	require.True(t, read(t, open(t), 0).Empty())
}

func TestBodyThatIsTooLong(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 1)
	_, err := w.Append(make([]byte, journal.MaxBody+1))
	require.ErrorIs(t, err, writer.ErrInvalid)
	add(t, w, 2, 2) // it is no failure of the disk
	require.Equal(t, count(1, 2), bodies(t, read(t, dir, 0), read(t, dir, 0).Records))
}

func TestRotation(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w, err := journal.Create(dir, id)
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	pad := strings.Repeat("x", 1<<20)
	for i := 1; i <= 20; i++ {
		_, err := w.Append(fmt.Appendf(nil, `"n":%d,"pad":%q`, i, pad))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"journal-1-1.jsonl", "journal-1-2.jsonl", "journal-1-3.jsonl"}, names(t, dir))
	for _, n := range names(t, dir) {
		require.LessOrEqual(t, len(content(t, dir, n)), journal.SegmentSize)
	}
	log := read(t, dir, 0)
	require.Empty(t, log.Faults)
	require.Equal(t, count(1, 20), bodies(t, log, log.Records))
}

// What a snapshot does not need is not read, and what is needed is the same.
func TestReadFromSnapshot(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 0)
	w.Limit = 400
	add(t, w, 1, 12)
	w = reopen(t, dir, journal.Position{Epoch: 1, Seq: 10})
	w.Limit = 400
	add(t, w, 13, 24)
	for base := range uint64(25) {
		log, err := journal.Read(dir, base, false)
		require.NoError(t, err)
		require.Zero(t, log.Lost)
		require.Equal(t, count(int(base)+1, 24), seqs(log.Above(base)), "base %d", base)
		require.Equal(t, count(int(base)+1, 24), bodies(t, log, log.Above(base)), "base %d", base)
		require.EqualValues(t, 24, log.Last())
	}
	log, err := journal.Read(dir, 24, false)
	require.NoError(t, err)
	require.Less(t, len(log.Records), 4, "only the last segment was read")
}

func TestOpenCopiesWhatIsAboveTheBase(t *testing.T) {
	t.Parallel()
	for _, base := range []int{0, 1, 3, 4, 5} {
		t.Run(fmt.Sprint(base), func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			old := create(t, dir, 5)
			before := read(t, dir, 0)
			was := content(t, dir, "journal-1-1.jsonl")
			w := reopen(t, dir, journal.Position{Epoch: 1, Seq: uint64(base)})
			require.EqualValues(t, 1, old.Epoch())
			require.EqualValues(t, 2, w.Epoch())
			require.Equal(t, old.Last().Seq, w.Last().Seq)
			require.Equal(t, []string{"journal-1-1.jsonl", "journal-2-1.jsonl"}, names(t, dir), "no temporary file is left")
			require.Equal(t, was, content(t, dir, "journal-1-1.jsonl"), "the old epoch stays as it is")

			data := content(t, dir, "journal-2-1.jsonl")
			first, copied, _ := strings.Cut(string(data), "\n")
			want := ""
			require.NoError(t, before.Lines(before.Above(uint64(base)), func(_ *journal.Ref, line []byte) error {
				want += string(line)
				return nil
			}))
			require.Equal(t, want, copied, "every record above the base, byte for byte, and nothing else")
			var h struct {
				Epoch, Segment uint64
				Session        string
				After          journal.Position
				Copied         int
			}
			require.NoError(t, json.Unmarshal([]byte(first), &h))
			require.Equal(t, len(want), h.Copied)
			require.EqualValues(t, 2, h.Epoch)
			require.EqualValues(t, 1, h.Segment)
			require.Equal(t, id, h.Session)
			require.EqualValues(t, base, h.After.Seq)
			if base > 0 {
				require.Equal(t, ref(t, before, base).Position, h.After, "the checksum is added")
			}

			add(t, w, 6, 7)
			require.NoError(t, os.Remove(filepath.Join(dir.Name(), "journal-1-1.jsonl")))
			log := read(t, dir, uint64(base))
			require.Zero(t, log.Lost, "the new epoch needs no older one")
			require.Empty(t, log.Faults)
			require.Equal(t, count(base+1, 7), bodies(t, log, log.Above(uint64(base))))
		})
	}
}

func TestOpenWithASnapshotAheadOfTheJournal(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 3)
	w := reopen(t, dir, journal.Position{Epoch: 1, Seq: 9})
	require.EqualValues(t, 9, w.Last().Seq)
	add(t, w, 10, 11)
	for _, all := range []bool{true, false} {
		log, err := journal.Read(dir, 9, all)
		require.NoError(t, err)
		require.Zero(t, log.Lost)
		require.Equal(t, count(10, 11), bodies(t, log, log.Above(9)))
	}
}

func TestEpochsGrow(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 1)
	for i := 2; i <= 5; i++ {
		w := reopen(t, dir, journal.Position{})
		require.EqualValues(t, i, w.Epoch())
		require.EqualValues(t, i-1, w.Last().Seq, "the last one's is copied once more")
		add(t, w, i, i)
	}
	log := read(t, dir, 0)
	require.Empty(t, log.Faults, "copies that count are no fault")
	require.Equal(t, count(1, 5), bodies(t, log, log.Records))
	for i, r := range log.Records {
		require.EqualValues(t, i+1, r.Epoch, "a copy keeps the epoch it was written in")
		require.Equal(t, "journal-5-1.jsonl", r.Segment())
	}

	// A snapshot of an epoch whose segments are gone counts as well.
	empty := open(t)
	w, err := journal.Open(empty, id, read(t, empty, 8), journal.Position{Epoch: 7, Seq: 8})
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	require.EqualValues(t, 8, w.Epoch())
}

func TestTwoOpensOfTheSameLog(t *testing.T) {
	t.Parallel()
	for range 20 {
		dir := open(t)
		create(t, dir, 3)
		log := read(t, dir, 0)
		const n = 4
		var (
			wg   sync.WaitGroup
			got  [n]*journal.Writer
			errs [n]error
			gate = make(chan struct{})
		)
		for i := range n {
			wg.Go(func() {
				<-gate
				got[i], errs[i] = journal.Open(dir, id, log, journal.Position{})
			})
		}
		close(gate)
		wg.Wait()
		won := 0
		for i := range n {
			if errs[i] != nil {
				require.ErrorIs(t, errs[i], writer.ErrFenced)
				continue
			}
			won++
			add(t, got[i], 4, 4)
			require.NoError(t, got[i].Close())
		}
		require.Equal(t, 1, won)
		require.Equal(t, []string{"journal-1-1.jsonl", "journal-2-1.jsonl"}, names(t, dir))
		after := read(t, dir, 0)
		require.Equal(t, count(1, 4), bodies(t, after, after.Records))
	}
}

func TestOpenWhereLinksAreRefused(t *testing.T) {
	t.Parallel()
	dir := &faulty{FS: open(t), err: syscall.EPERM}
	create(t, dir, 3)
	log := read(t, dir, 0)
	dir.fails = func(op string, _ int) bool { return op == "link" }
	w, err := journal.Open(dir, id, log, journal.Position{})
	require.NoError(t, err)
	add(t, w, 4, 5)
	require.NoError(t, w.Close())
	_, err = journal.Open(dir, id, log, journal.Position{})
	require.ErrorIs(t, err, writer.ErrFenced)
	after := read(t, dir, 0)
	require.Equal(t, count(1, 5), bodies(t, after, after.Records))
}

// A writer that lost its lock and does not know it yet changes nothing that counts.
func TestWriterOfAnEarlierEpochGoesOn(t *testing.T) {
	t.Parallel()
	dir := open(t)
	stale := create(t, dir, 3)
	snapshot := stale.Last()
	w := reopen(t, dir, snapshot)
	stale.Limit = 1
	for i := 4; i <= 8; i++ { // into later segments of its own, too
		_, err := stale.Append(body(100 + i))
		require.NoError(t, err)
	}
	add(t, w, 4, 6)
	require.Contains(t, names(t, dir), "journal-1-2.jsonl")

	log := read(t, dir, 0)
	require.Zero(t, log.Lost)
	require.Equal(t, count(1, 6), bodies(t, log, log.Records))
	require.NotEmpty(t, log.Faults)
	for _, f := range log.Faults {
		require.Equal(t, journal.Settled, f.Kind, f)
		require.True(t, strings.HasPrefix(f.Segment, "journal-1-"), f)
	}
	for _, f := range []struct {
		epoch, seq uint64
		holds      bool
		why        string
	}{
		{1, 1, true, "history"},
		{1, 3, true, "what the second epoch goes on from"},
		{1, 4, false, "epoch 1 went on after epoch 2 had begun"},
		{1, 8, false, "beyond the chain even"},
		{2, 3, false, "record 3 is epoch 1's"},
		{2, 4, true, "on the chain"},
		{2, 6, true, "its end"},
		{2, 9, true, "ahead of the journal: nothing speaks against it"},
	} {
		require.Equal(t, f.holds, log.Holds(f.epoch, f.seq), "%d/%d: %s", f.epoch, f.seq, f.why)
	}

	// The same of what only the later epoch's header still names.
	log, err := journal.Read(dir, 3, false)
	require.NoError(t, err)
	require.Equal(t, count(4, 6), seqs(log.Records))
	require.True(t, log.Holds(1, 0), "of nothing")
	require.True(t, log.Holds(1, 3))
	require.False(t, log.Holds(2, 3), "record 3 is epoch 1's")
	require.False(t, log.Holds(1, 4))
	require.True(t, log.Holds(2, 4))

	// And of a copy: the record is the one that the snapshot was made of.
	w = reopen(t, dir, journal.Position{})
	log = read(t, dir, 0)
	require.Equal(t, "journal-3-1.jsonl", log.Records[2].Segment())
	require.True(t, log.Holds(1, 3))
	require.False(t, log.Holds(1, 4))
	require.True(t, log.Holds(2, 6))
	require.EqualValues(t, 6, w.Last().Seq)
}
