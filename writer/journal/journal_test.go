package journal_test

import (
	"bytes"
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

// body returns a record that the State rests on.
func body(n int) journal.Record {
	return journal.Record{Body: fmt.Appendf(nil, `"n":%d,"what":"record"`, n)}
}

// entry returns a record that the State does not rest on.
func entry(n int) journal.Record {
	return journal.Record{Body: fmt.Appendf(nil, `"n":%d,"what":"entry"`, n), Entry: true}
}

// create makes a journal with records 1 to n, one Append each.
func create(t testing.TB, dir writer.FS, n int) *journal.Writer {
	t.Helper()
	return createWith(t, dir, 8<<10, n)
}

// createWith is create with a limit of a segment in bytes.
func createWith(t testing.TB, dir writer.FS, limit int64, n int) *journal.Writer {
	t.Helper()
	w, err := journal.Create(dir, id)
	require.NoError(t, err)
	w.Limit = limit
	t.Cleanup(func() { w.Close() })
	add(t, w, 1, n)
	return w
}

// add appends records first to last, one Append each.
func add(t testing.TB, w *journal.Writer, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		at, err := w.Append(body(i))
		require.NoError(t, err)
		require.EqualValues(t, i, at.Seq)
		require.Equal(t, at, w.Last())
	}
}

// batch appends records 1 to n in one call.
func batch(t testing.TB, w *journal.Writer, n int) {
	t.Helper()
	var all []journal.Record
	for i := range n {
		all = append(all, body(i+1))
	}
	_, err := w.Append(all...)
	require.NoError(t, err)
}

// reopen begins the next epoch.
func reopen(t testing.TB, dir writer.FS) *journal.Writer {
	t.Helper()
	w, err := journal.Open(dir, id, read(t, dir, 0))
	require.NoError(t, err)
	w.Limit = 8 << 10
	t.Cleanup(func() { w.Close() })
	return w
}

func read(t testing.TB, dir writer.FS, base uint64) *journal.Log {
	t.Helper()
	log, err := journal.Read(dir, base, true)
	require.NoError(t, err)
	return log
}

// bodies returns the values of n in the records.
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

// text returns the content of a segment without the preallocated zeros.
func text(t testing.TB, dir writer.FS, name string) []byte {
	t.Helper()
	return bytes.TrimRight(content(t, dir, name), "\x00")
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

// names returns the names of the files in dir, without the list.
func names(t testing.TB, dir writer.FS) []string {
	t.Helper()
	entries, err := os.ReadDir(dir.Name())
	require.NoError(t, err)
	all := []string{}
	for _, e := range entries {
		if e.Name() != journal.ListFile {
			all = append(all, e.Name())
		}
	}
	return all
}

// sealed appends the checksum to a line.
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
	_, err := w.Append(journal.Record{Body: make([]byte, journal.MaxBody+1)})
	require.ErrorIs(t, err, writer.ErrInvalid)
	add(t, w, 2, 2) // a refused record does not give up the segment
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
		_, err := w.Append(journal.Record{Body: fmt.Appendf(nil, `"n":%d,"pad":%q`, i, pad)})
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

// Read leaves out segments that a snapshot makes needless. The records above it are the same.
func TestReadFromSnapshot(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 0)
	w.Limit = 400
	add(t, w, 1, 12)
	w = reopen(t, dir)
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

// Open copies only records that no later line proves durable: the last batch, or none.
func TestOpenCopiesWhatMayNotBeDurable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more  func(t *testing.T, w *journal.Writer)
		after int // the last record that is known to be durable
		last  int
	}{
		"nothing was written": {func(*testing.T, *journal.Writer) {}, 0, 0},
		"one record":          {func(t *testing.T, w *journal.Writer) { add(t, w, 1, 1) }, 0, 1},
		"some":                {func(t *testing.T, w *journal.Writer) { add(t, w, 1, 5) }, 4, 5},
		"a batch": {func(t *testing.T, w *journal.Writer) {
			add(t, w, 1, 3)
			_, err := w.Append(body(4), entry(5), entry(6))
			require.NoError(t, err)
		}, 3, 6},
		"a note": {func(t *testing.T, w *journal.Writer) {
			add(t, w, 1, 5)
			require.NoError(t, w.Note())
		}, 5, 5},
		"a new segment": {func(t *testing.T, w *journal.Writer) {
			add(t, w, 1, 5)
			w.Full()
			_, err := w.Append(entry(6))
			require.NoError(t, err)
		}, 5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			old := create(t, dir, 0)
			c.more(t, old)
			before, there := read(t, dir, 0), names(t, dir)
			require.EqualValues(t, c.after, before.Durable().Seq)
			was := content(t, dir, "journal-1-1.jsonl")
			w := reopen(t, dir)
			require.EqualValues(t, 1, old.Epoch())
			require.EqualValues(t, 2, w.Epoch())
			require.Equal(t, old.Last(), w.Last())
			require.Equal(t, append(there, "journal-2-1.jsonl"), names(t, dir), "no temporary file is left")
			require.Equal(t, was, content(t, dir, "journal-1-1.jsonl"), "the old epoch stays as it is")

			data := content(t, dir, "journal-2-1.jsonl")
			first, copied, _ := strings.Cut(string(data), "\n")
			want := ""
			require.NoError(t, before.Lines(before.Above(uint64(c.after)), func(_ *journal.Ref, line []byte) error {
				want += string(line)
				return nil
			}))
			require.Equal(t, want, copied, "byte for byte, and nothing else")
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
			require.Equal(t, before.Durable(), h.After)

			add(t, w, c.last+1, c.last+2)
			for _, n := range there {
				require.NoError(t, os.Remove(filepath.Join(dir.Name(), n)))
			}
			log := read(t, dir, uint64(c.after))
			require.Zero(t, log.Lost, "what is above needs no older epoch")
			require.Equal(t, count(c.after+1, c.last+2), bodies(t, log, log.Above(uint64(c.after))))
		})
	}
}

func TestEpochsGrow(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 1)
	for i := 2; i <= 5; i++ {
		w := reopen(t, dir)
		require.EqualValues(t, i, w.Epoch())
		require.EqualValues(t, i-1, w.Last().Seq)
		add(t, w, i, i)
	}
	reopen(t, dir)
	log := read(t, dir, 0)
	require.Empty(t, log.Faults, "copies that count are no fault")
	require.Equal(t, count(1, 5), bodies(t, log, log.Records))
	for i, r := range log.Records {
		require.EqualValues(t, i+1, r.Epoch, "a copy keeps the epoch it was written in")
		require.Equal(t, fmt.Sprintf("journal-%d-1.jsonl", i+2), r.Segment())
	}
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
				got[i], errs[i] = journal.Open(dir, id, log)
			})
		}
		close(gate)
		wg.Wait()
		won := 0
		for i := range n {
			if errs[i] != nil {
				require.Equal(t, writer.ClassFenced, writer.ClassOf(errs[i]))
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
	w, err := journal.Open(dir, id, log)
	require.NoError(t, err)
	add(t, w, 4, 5)
	require.NoError(t, w.Close())
	_, err = journal.Open(dir, id, log)
	require.Equal(t, writer.ClassFenced, writer.ClassOf(err))
	after := read(t, dir, 0)
	require.Equal(t, count(1, 5), bodies(t, after, after.Records))
}

// A writer that has lost its lease without noticing changes nothing that counts.
func TestWriterOfEarlierEpochContinues(t *testing.T) {
	t.Parallel()
	dir := open(t)
	stale := create(t, dir, 3)
	w := reopen(t, dir)
	stale.Limit = 1
	for i := 4; i <= 8; i++ { // each in a new segment of its own
		_, err := stale.Append(body(100 + i))
		require.NoError(t, err)
	}
	add(t, w, 4, 6)
	require.Contains(t, names(t, dir), "journal-1-2.jsonl")

	log := read(t, dir, 0)
	require.Zero(t, log.Lost)
	require.Equal(t, count(1, 6), bodies(t, log, log.Records))
	require.EqualValues(t, 6, log.Last())
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

	// Record 3 is not read now: only the header of the later epoch names it.
	log, err := journal.Read(dir, 3, false)
	require.NoError(t, err)
	require.Equal(t, count(3, 6), seqs(log.Records))
	require.True(t, log.Holds(1, 0), "of nothing")
	require.True(t, log.Holds(1, 3))
	require.False(t, log.Holds(2, 3), "record 3 is epoch 1's")
	require.False(t, log.Holds(1, 4))
	require.True(t, log.Holds(2, 4))

	// The same holds in the epoch that follows.
	w = reopen(t, dir)
	log = read(t, dir, 0)
	require.Equal(t, "journal-3-1.jsonl", log.Records[5].Segment())
	require.True(t, log.Holds(1, 3))
	require.False(t, log.Holds(1, 4))
	require.True(t, log.Holds(2, 6))
	require.EqualValues(t, 6, w.Last().Seq)
}
