package journal_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
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

func TestTornTail(t *testing.T) {
	t.Parallel()
	const seg = "journal-1-1.jsonl"
	src := open(t)
	w := create(t, src, 3)
	_, err := w.Append(body(4), body(5), body(6)) // one batch: none of them knows of another one
	require.NoError(t, err)
	whole := content(t, src, seg)
	log := read(t, src, 0)
	last, batch := ref(t, log, 6), ref(t, log, 4)

	type torn struct {
		data []byte
		at   journal.Ref // the first record that is not there
	}
	each := func(fn func(at int64) []byte) (all []torn) {
		for i := last.Offset + 1; i < last.Offset+last.Length; i++ {
			all = append(all, torn{fn(i), last})
		}
		return all
	}
	end := journal.Ref{Position: journal.Position{Seq: 7}, Offset: int64(len(whole))}
	for name, cases := range map[string][]torn{
		"cut":     each(func(at int64) []byte { return slices.Clone(whole[:at]) }),
		"zeros":   each(func(at int64) []byte { return append(slices.Clone(whole[:at]), make([]byte, int64(len(whole))-at)...) }),
		"longer":  each(func(at int64) []byte { return append(slices.Clone(whole[:at]), make([]byte, 5000)...) }),
		"flipped": each(func(at int64) []byte { d := slices.Clone(whole); d[at] ^= 1; return d }),
		"newline": each(func(at int64) []byte { d := slices.Clone(whole); d[at-1] = '\n'; return d }),
		"zeros from its begin": {
			{append(slices.Clone(whole[:last.Offset]), make([]byte, 100)...), last},
		},
		"garbage behind": {
			{append(slices.Clone(whole), "garbage"...), end},
			{append(slices.Clone(whole), "garbage\n"...), end},
			{append(slices.Clone(whole), "\n"...), end},
			{append(slices.Clone(whole), whole[last.Offset:]...), end}, // a record once more
			{append(slices.Clone(whole), make([]byte, 17<<20)...), end},
		},
		"valid lines behind a hole": {
			{flippedAt(whole, batch.Offset+batch.Length/2), batch},
			{flippedAt(whole, batch.Offset+batch.Length-1), batch}, // its line feed: two lines become one
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			for _, c := range cases {
				put(t, dir, seg, c.data)
				log := read(t, dir, 0)
				require.Equal(t, count(1, int(c.at.Seq)-1), bodies(t, log, log.Records))
				require.Zero(t, log.Lost)
				require.Equal(t, []journal.Fault{{
					Kind: journal.Torn, Segment: seg, Offset: c.at.Offset,
					Length: int64(len(c.data)) - c.at.Offset, Seq: c.at.Seq,
				}}, log.Faults)
				require.Equal(t, c.data, content(t, dir, seg), "reading changes nothing")
			}
			// What goes on from there settles it.
			w := reopen(t, dir, journal.Position{})
			next := int(cases[len(cases)-1].at.Seq)
			add(t, w, next, next+1)
			log := read(t, dir, 0)
			require.Zero(t, log.Lost)
			require.Equal(t, count(1, next+1), bodies(t, log, log.Records))
			require.NotContains(t, kinds(log), journal.Torn)
			require.NotContains(t, kinds(log), journal.Damaged)
			require.Contains(t, kinds(log), journal.Settled)
		})
	}

	t.Run("cut between two lines", func(t *testing.T) {
		t.Parallel()
		dir := open(t)
		put(t, dir, seg, whole[:last.Offset])
		log := read(t, dir, 0)
		require.Empty(t, log.Faults)
		require.Equal(t, count(1, 5), bodies(t, log, log.Records))
	})
}

func flippedAt(data []byte, at int64) []byte {
	d := slices.Clone(data)
	d[at] ^= 1
	return d
}

func TestDamageThatALaterRecordKnowsOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		flip  []int
		base  uint64
		lost  uint64
		gone  []int
		fault []journal.Kind
	}{
		{"above the base", []int{3}, 0, 3, []int{3}, []journal.Kind{journal.Damaged}},
		{"just above the base", []int{3}, 2, 3, []int{3}, []journal.Kind{journal.Damaged}},
		{"at the base", []int{3}, 3, 0, []int{3}, []journal.Kind{journal.Damaged}},
		{"below the base", []int{3}, 5, 0, []int{3}, []journal.Kind{journal.Damaged}},
		{"the first", []int{1}, 0, 1, []int{1}, []journal.Kind{journal.Damaged}},
		{"two in a row", []int{3, 4}, 2, 3, []int{3, 4}, []journal.Kind{journal.Damaged}},
		{"two in a row around the base", []int{3, 4}, 3, 4, []int{3, 4}, []journal.Kind{journal.Damaged}},
		{"two apart", []int{2, 4}, 2, 4, []int{2, 4}, []journal.Kind{journal.Damaged, journal.Damaged}},
		{"the last one below the base", []int{6}, 6, 0, []int{6}, []journal.Kind{journal.Damaged}},
		{"the last one above the base", []int{6}, 5, 0, []int{6}, []journal.Kind{journal.Torn}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			create(t, dir, 6)
			log := read(t, dir, 0)
			for _, n := range c.flip {
				flip(t, dir, ref(t, log, n))
			}
			got := read(t, dir, c.base)
			require.Equal(t, c.lost, got.Lost)
			require.Equal(t, c.fault, kinds(got))
			want := slices.DeleteFunc(count(1, 6), func(n int) bool { return slices.Contains(c.gone, n) })
			require.Equal(t, want, bodies(t, got, got.Records), "the others are there, those behind it as well")
			first := ref(t, log, c.flip[0])
			require.Equal(t, first.Offset, got.Faults[0].Offset)
			require.Equal(t, first.Seq, got.Faults[0].Seq)
		})
	}
}

// Lost is the first record above the base that is damaged, wherever the damage begins.
func TestDamageAroundTheBase(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 8)
	log := read(t, dir, 0)
	for n := 3; n <= 6; n++ {
		flip(t, dir, ref(t, log, n))
	}
	for base, want := range map[uint64]uint64{0: 3, 2: 3, 5: 6, 6: 0, 7: 0} {
		require.Equal(t, want, read(t, dir, base).Lost, "base %d", base)
	}
	got := read(t, dir, 4)
	require.NotZero(t, got.Lost)
	if got.Lost != 5 {
		t.Fatalf("Lost is %d with base 4 and records 3 to 6 damaged; 5 is the first one above the base", got.Lost)
	}
}

func TestDamageInTheCopies(t *testing.T) {
	t.Parallel()
	const seg = "journal-2-1.jsonl"
	for name, c := range map[string]struct {
		damage func(data []byte, log *journal.Log, at journal.Ref) []byte
		more   int // records appended to the new epoch before
		seq    int
	}{
		"flipped":                    {flipIn, 2, 2},
		"flipped, nothing behind":    {flipIn, 0, 2},
		"the last copy, none behind": {flipIn, 0, 3},
		"the last copy, cut off":     {cutIn, 0, 3},
		"cut in the middle":          {func(d []byte, _ *journal.Log, at journal.Ref) []byte { return d[:at.Offset+10] }, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			create(t, dir, 3)
			w := reopen(t, dir, journal.Position{})
			add(t, w, 4, 3+c.more)
			log := read(t, dir, 0)
			require.Empty(t, log.Faults)
			at := ref(t, log, c.seq)
			require.Equal(t, seg, at.Segment())
			put(t, dir, seg, c.damage(content(t, dir, seg), log, at))
			got := read(t, dir, 0)
			require.EqualValues(t, c.seq, got.Lost)
			i := slices.IndexFunc(got.Faults, func(f journal.Fault) bool { return f.Kind == journal.Damaged })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, seg, got.Faults[i].Segment)
			require.Equal(t, at.Offset, got.Faults[i].Offset)
			require.NotContains(t, kinds(got), journal.Torn)
			require.Zero(t, read(t, dir, 3).Lost, "what a snapshot covers costs history only")
		})
	}
}

func flipIn(data []byte, _ *journal.Log, at journal.Ref) []byte {
	return flippedAt(data, at.Offset+at.Length/2)
}

func cutIn(data []byte, _ *journal.Log, at journal.Ref) []byte { return data[:at.Offset] }

// The copies were durable whatever the snapshot covers by now.
func TestCopiesCutAtTheBase(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 5)
	reopen(t, dir, journal.Position{})
	log := read(t, dir, 0)
	data := content(t, dir, "journal-2-1.jsonl")
	put(t, dir, "journal-2-1.jsonl", data[:ref(t, log, 3).Offset+5]) // 3, 4 and 5 are gone
	require.EqualValues(t, 3, read(t, dir, 2).Lost)
	if got := read(t, dir, 3); got.Lost == 0 {
		t.Fatal("with base 3 the loss of the durable copies 4 and 5 is not noticed, though the header counts their bytes")
	}
}

func TestMissingSegment(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 3)
	for n := 4; n <= 9; n++ {
		w.Limit = 1 << 20
		if n == 4 || n == 7 {
			w.Limit = 1
		}
		add(t, w, n, n)
	}
	require.Equal(t, []string{"journal-1-1.jsonl", "journal-1-2.jsonl", "journal-1-3.jsonl"}, names(t, dir))
	require.NoError(t, os.Remove(filepath.Join(dir.Name(), "journal-1-2.jsonl")))
	for _, c := range []struct {
		base, lost uint64
		all        bool
	}{{0, 4, true}, {0, 4, false}, {3, 4, true}, {5, 6, true}, {5, 6, false}, {6, 0, true}, {6, 0, false}, {8, 0, true}, {8, 0, false}} {
		log, err := journal.Read(dir, c.base, c.all)
		require.NoError(t, err)
		require.Equal(t, c.lost, log.Lost, "base %d", c.base)
		require.Equal(t, count(7, 9), bodies(t, log, log.Above(6)))
	}
}

// The end of a segment that a later one goes on from is damage, for history only
// when the snapshot covers it.
func TestDamagedEndOfAnEarlierSegment(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 3)
	w.Limit = 1
	add(t, w, 4, 4)
	w.Limit = 1 << 20
	add(t, w, 5, 6)
	flip(t, dir, ref(t, read(t, dir, 0), 3))
	got := read(t, dir, 0)
	require.EqualValues(t, 3, got.Lost)
	require.Equal(t, []journal.Kind{journal.Damaged}, kinds(got))
	require.Equal(t, []int{1, 2, 4, 5, 6}, bodies(t, got, got.Records))
	for _, base := range []uint64{3, 4, 5} {
		for _, all := range []bool{true, false} {
			log, err := journal.Read(dir, base, all)
			require.NoError(t, err)
			require.Zero(t, log.Lost, "base %d", base)
		}
	}
}

func TestEmptyAndForeignFiles(t *testing.T) {
	t.Parallel()
	other := func(epoch, n int) []byte {
		return []byte(sealed(fmt.Sprintf(`{"journal":1,"session":"other-20260214-1","epoch":%d,"segment":%d,"after":{"epoch":0,"seq":0}`, epoch, n)) +
			sealed(fmt.Sprintf(`{"seq":1,"epoch":%d,"synced":9,"n":99`, epoch)))
	}
	for name, c := range map[string]struct {
		file  string
		data  []byte
		fault []journal.Kind
	}{
		"empty":                    {"journal-1-2.jsonl", nil, nil},
		"garbage":                  {"journal-1-2.jsonl", []byte("garbage"), []journal.Kind{journal.Torn}},
		"zeros":                    {"journal-1-2.jsonl", make([]byte, 4096), []journal.Kind{journal.Torn}},
		"another session":          {"journal-2-1.jsonl", other(2, 1), []journal.Kind{journal.Torn}},
		"another name's header":    {"journal-2-1.jsonl", []byte(strings.ReplaceAll(string(other(3, 1)), "other", "auth")), []journal.Kind{journal.Torn}},
		"leading zeros":            {"journal-02-1.jsonl", []byte("garbage"), nil},
		"leading zeros of segment": {"journal-2-01.jsonl", []byte("garbage"), nil},
		"a sign":                   {"journal-+2-1.jsonl", []byte("garbage"), nil},
		"epoch 0":                  {"journal-0-1.jsonl", []byte("garbage"), nil},
		"segment 0":                {"journal-1-0.jsonl", []byte("garbage"), nil},
		"a suffix":                 {"journal-2-1.jsonl.bak", []byte("garbage"), nil},
		"a temporary file":         {".tmp-journal-2-1.jsonl-X", []byte("garbage"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			create(t, dir, 3)
			put(t, dir, c.file, c.data)
			log := read(t, dir, 0)
			require.Equal(t, id, log.Session)
			require.Zero(t, log.Lost)
			require.Equal(t, count(1, 3), bodies(t, log, log.Records))
			require.Equal(t, len(c.fault), len(log.Faults))
			for i, k := range c.fault {
				require.Equal(t, k, log.Faults[i].Kind)
				require.Equal(t, c.file, log.Faults[i].Segment)
			}
			// It stays a fault of the past when an epoch goes on.
			add(t, reopen(t, dir, journal.Position{}), 4, 4)
			log = read(t, dir, 0)
			require.Equal(t, count(1, 4), bodies(t, log, log.Records))
			require.NotContains(t, kinds(log), journal.Torn)
		})
	}

	t.Run("another session, part of the segments", func(t *testing.T) {
		t.Parallel()
		dir := open(t)
		create(t, dir, 3)
		put(t, dir, "journal-2-1.jsonl", other(2, 1))
		log, err := journal.Read(dir, 1, false)
		require.NoError(t, err)
		if log.Session != id {
			t.Fatalf("Read without all begins at the other session's segment: Session %q, records %v; the session's own 2 and 3 are not seen", log.Session, seqs(log.Records))
		}
		require.Equal(t, count(2, 3), bodies(t, log, log.Above(1)))
	})
}

func TestNewerVersion(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 3)
	put(t, dir, "journal-2-1.jsonl", []byte(sealed(`{"journal":2,"session":"`+id+`","unknown":[1]`)))
	for _, all := range []bool{true, false} {
		_, err := journal.Read(dir, 0, all)
		require.ErrorIs(t, err, writer.ErrFutureVersion)
	}
}

// A header that names a record with another checksum has another past.
func TestHeaderOfAnotherPast(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 3)
	put(t, dir, "journal-2-1.jsonl", []byte(
		sealed(`{"journal":1,"session":"`+id+`","epoch":2,"segment":1,"after":{"epoch":1,"seq":3,"crc":"00000000"}`)+
			sealed(`{"seq":4,"epoch":2,"synced":1,"n":4`)))
	log := read(t, dir, 0)
	require.EqualValues(t, 3, log.Lost)
	require.Contains(t, kinds(log), journal.Damaged)
	require.Equal(t, []int{1, 2, 4}, bodies(t, log, log.Records))
	require.Zero(t, read(t, dir, 3).Lost)
}

func TestHeaderNumbersThatOverflow(t *testing.T) {
	t.Parallel()
	for _, after := range []string{`"after":{"epoch":1,"seq":18446744073709551615}`, `"after":{"epoch":1,"seq":3},"copied":9223372036854775807`} {
		dir := open(t)
		create(t, dir, 3)
		put(t, dir, "journal-2-1.jsonl", []byte(sealed(`{"journal":1,"session":"`+id+`","epoch":2,"segment":1,`+after)+
			sealed(`{"seq":0,"epoch":2,"synced":1,"n":0`)))
		log := read(t, dir, 0)
		if !slices.IsSorted(seqs(log.Records)) {
			t.Fatalf("records %v after a header with %s: decodeHeader does not bound its numbers as decodeRecord does", seqs(log.Records), after)
		}
	}
}

func TestLinesOfWhatChanged(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 3)
	log := read(t, dir, 0)
	flip(t, dir, ref(t, log, 2))
	n := 0
	err := log.Lines(log.Records, func(*journal.Ref, []byte) error { n++; return nil })
	require.ErrorIs(t, err, writer.ErrCorrupt)
	require.Equal(t, 1, n)
	put(t, dir, "journal-1-1.jsonl", content(t, dir, "journal-1-1.jsonl")[:ref(t, log, 3).Offset])
	require.ErrorIs(t, log.Lines(log.Above(2), func(*journal.Ref, []byte) error { return nil }), writer.ErrCorrupt)
	require.NoError(t, os.Remove(filepath.Join(dir.Name(), "journal-1-1.jsonl")))
	require.ErrorIs(t, log.Lines(log.Records, func(*journal.Ref, []byte) error { return nil }), fs.ErrNotExist)
}

// faulty fails the calls that fails picks, and keeps account of what must not
// happen: a call on a file after a failure that gave it up, and an
// acknowledgement of what no sync covers.
type faulty struct {
	writer.FS
	fails func(op string, k int) bool // k counts the calls of op from 1
	err   error
	short bool // a failing write takes half of it and says nothing

	mu      sync.Mutex
	calls   map[string]int // Guarded by mu.
	failed  int            // Guarded by mu.
	files   []*faultyFile  // Guarded by mu.
	made    []string       // Guarded by mu: every file that was created.
	nameDue bool           // Guarded by mu: a name is not durable.
	bad     []string       // Guarded by mu: what must not happen.
}

type faultyFile struct {
	writer.File
	fs      *faulty
	name    string
	dirty   bool // Guarded by fs.mu.
	givenUp bool // Guarded by fs.mu.
}

// call counts a call, and says whether it fails. Every file that is open then is
// given up.
func (d *faulty) call(op string, f *faultyFile) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[op]++
	if f != nil && f.givenUp && op != "close" {
		d.bad = append(d.bad, op+" of "+f.name+" after a failure")
	}
	if d.fails == nil || !d.fails(op, d.calls[op]) {
		return false
	}
	d.failed++
	for _, f := range d.files {
		f.givenUp = true
	}
	return true
}

// owes says what is not durable.
func (d *faulty) owes() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.files {
		if f.dirty && !f.givenUp {
			all = append(all, f.name)
		}
	}
	if d.nameDue {
		all = append(all, "the folder")
	}
	return append(all, d.bad...)
}

func (d *faulty) total() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.calls {
		n += k
	}
	return n
}

func (d *faulty) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	if flag&os.O_CREATE == 0 {
		return d.FS.OpenFile(name, flag, perm)
	}
	if d.call("open", nil) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: d.err}
	}
	f, err := d.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.nameDue = true
	d.made = append(d.made, name)
	d.files = append(d.files, &faultyFile{File: f, fs: d, name: name})
	return d.files[len(d.files)-1], nil
}

func (d *faulty) Link(a, b string) error {
	if d.call("link", nil) {
		return &os.LinkError{Op: "link", Old: a, New: b, Err: d.err}
	}
	for _, f := range d.files {
		if f.name == a && f.dirty {
			d.bad = append(d.bad, "a link to "+a+" before its sync")
		}
	}
	d.nameDue = true
	return d.FS.Link(a, b)
}

func (d *faulty) SyncDir(name string) error {
	if d.call("syncdir", nil) {
		return &fs.PathError{Op: "fsync", Path: name, Err: d.err}
	}
	d.mu.Lock()
	d.nameDue = false
	d.mu.Unlock()
	return d.FS.SyncDir(name)
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	failing := f.fs.call("write", f)
	f.fs.mu.Lock()
	f.dirty = true
	f.fs.mu.Unlock()
	if !failing {
		return f.File.WriteAt(p, off)
	}
	n, err := f.File.WriteAt(p[:len(p)/2], off)
	if err == nil && !f.fs.short {
		err = &fs.PathError{Op: "write", Path: f.name, Err: f.fs.err}
	}
	return n, err
}

func (f *faultyFile) sync(op string, fn func() error) error {
	if f.fs.call(op, f) {
		return &fs.PathError{Op: op, Path: f.name, Err: f.fs.err}
	}
	f.fs.mu.Lock()
	f.dirty = false
	f.fs.mu.Unlock()
	return fn()
}

func (f *faultyFile) Sync() error     { return f.sync("sync", f.File.Sync) }
func (f *faultyFile) Datasync() error { return f.sync("datasync", f.File.Datasync) }

func (f *faultyFile) Close() error {
	err := f.File.Close()
	if f.fs.call("close", f) {
		return &fs.PathError{Op: "close", Path: f.name, Err: f.fs.err}
	}
	return err
}

// life appends 12 records in batches of 1 and 2, with changes of the
// segment. What fails is given up, after a while tried again as new records, with
// other bodies, or with retry as they were. It returns what was acknowledged.
func life(t *testing.T, dir *faulty, w *journal.Writer, retry bool) (acked []int) {
	t.Helper()
	last := w.Last()
	for i, n := 0, 1; i < 8; i++ {
		w.Limit = 1 << 20
		if i%3 == 2 {
			w.Limit = 1
		}
		batch := [][]byte{body(n)}
		if i%2 == 1 {
			batch = append(batch, body(n+1))
		}
		for {
			at, err := w.Append(batch...)
			if err == nil {
				require.Empty(t, dir.owes(), "acknowledged")
				require.Equal(t, last.Seq+uint64(len(batch)), at.Seq)
				last = at
				for range batch {
					acked = append(acked, n)
					n++
				}
				break
			}
			if dir.short {
				require.ErrorIs(t, err, io.ErrShortWrite)
			} else {
				require.ErrorIs(t, err, writer.ErrDevice)
			}
			require.Equal(t, last, at, "what is durable")
			require.Equal(t, last, w.Last())
			before := dir.total()
			for range 3 {
				_, again := w.Append(body(1000))
				require.Equal(t, err, again, "it stays")
			}
			require.Equal(t, before, dir.total(), "nothing is tried")
			for tries := 0; w.Reopen() != nil; tries++ {
				require.Less(t, tries, 9)
				before := dir.total()
				_, again := w.Append(body(1000))
				require.Error(t, again, "a Reopen that failed changes nothing")
				require.Equal(t, before, dir.total())
			}
			require.Empty(t, dir.owes(), "reopened")
			require.Equal(t, last, w.Last())
			if !retry {
				n += 100 // the failed ones are never seen again
				for j := range batch {
					batch[j] = body(n + j)
				}
			}
		}
	}
	before := dir.total()
	require.NoError(t, w.Reopen(), "a whole one stays as it is")
	require.Equal(t, before, dir.total())
	return acked
}

// check reads what a life left.
func check(t *testing.T, dir *faulty, acked []int) {
	t.Helper()
	log := read(t, dir, 0)
	require.Equal(t, acked, bodies(t, log, log.Records), "every acknowledged record, once and in order, and no other one")
	require.Zero(t, log.Lost)
	for _, f := range log.Faults {
		require.Equal(t, journal.Settled, f.Kind, f)
	}
	seen := map[string]bool{}
	for _, n := range dir.made {
		require.False(t, seen[n], "%s is used twice", n)
		seen[n] = true
	}
}

var ops = []string{"open", "write", "sync", "datasync", "syncdir", "close"}

func TestEveryFaultOfAWriter(t *testing.T) {
	t.Parallel()
	for _, op := range ops {
		for _, c := range []struct {
			name         string
			times        int
			short, retry bool
		}{{"once", 1, false, false}, {"once, tried again", 1, false, true}, {"for a while", 3, false, false}, {"short", 1, true, false}} {
			if c.short && op != "write" {
				continue
			}
			t.Run(op+" "+c.name, func(t *testing.T) {
				t.Parallel()
				for k := 1; ; k++ {
					dir := &faulty{FS: open(t), err: syscall.EIO, short: c.short}
					w, err := journal.Create(dir, id)
					require.NoError(t, err)
					require.Empty(t, dir.owes(), "created")
					begun := dir.calls[op]
					dir.fails = func(o string, n int) bool { return o == op && n >= begun+k && n < begun+k+c.times }
					acked := life(t, dir, w, c.retry)
					dir.fails = nil
					check(t, dir, acked)
					require.NoError(t, w.Close())
					if dir.failed == 0 {
						require.Greater(t, k, 1, "%s was never called", op)
						return
					}
				}
			})
		}
	}
}

func TestEveryFaultOfOpen(t *testing.T) {
	t.Parallel()
	for _, op := range append(ops, "link") {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			for k := 1; ; k++ {
				dir := &faulty{FS: open(t), err: syscall.EIO}
				create(t, dir, 5)
				begun := dir.calls[op]
				dir.fails = func(o string, n int) bool { return o == op && n == begun+k }
				log := read(t, dir, 2)
				w, err := journal.Open(dir, id, log, journal.Position{Epoch: 1, Seq: 2})
				dir.fails = nil
				if err == nil && dir.failed > 0 {
					t.Fatalf("%s %d failed, and Open did not", op, k)
				}
				if err != nil {
					require.ErrorIs(t, err, writer.ErrDevice)
					for _, n := range names(t, dir) {
						require.True(t, strings.HasPrefix(n, "journal-"), "%s is left", n)
					}
					got := read(t, dir, 2)
					require.Equal(t, count(3, 5), bodies(t, got, got.Above(2)))
					w = reopen(t, dir, journal.Position{Epoch: 1, Seq: 2})
				}
				require.Empty(t, dir.owes(), "opened")
				add(t, w, 6, 7)
				require.NoError(t, w.Close())
				check(t, dir, count(1, 7))
				if dir.failed == 0 {
					require.True(t, k > 1 || op == "datasync" || op == "close", "%s was never called", op)
					return
				}
			}
		})
	}
}

func TestFaultOfCreate(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"open", "write", "sync", "syncdir"} {
		dir := &faulty{FS: open(t), err: syscall.ENOSPC, fails: func(o string, _ int) bool { return o == op }}
		_, err := journal.Create(dir, id)
		require.ErrorIs(t, err, writer.ErrNoSpace, op)
	}
	dir := open(t)
	create(t, dir, 1)
	_, err := journal.Create(dir, id)
	require.ErrorIs(t, err, fs.ErrExist, "a journal is never begun twice")
	require.Equal(t, count(1, 1), bodies(t, read(t, dir, 0), read(t, dir, 0).Records))
}

// What a failed call left whole in the file is void all the same.
func TestUnacknowledgedRecordIsVoid(t *testing.T) {
	t.Parallel()
	dir := &faulty{FS: open(t), err: syscall.EIO, fails: func(op string, k int) bool { return op == "datasync" && k == 3 }}
	w := create(t, dir, 2)
	_, err := w.Append(body(99))
	require.ErrorIs(t, err, writer.ErrDevice)
	require.Equal(t, []int{1, 2, 99}, bodies(t, read(t, dir, 0), read(t, dir, 0).Records), "nothing speaks against it yet")
	require.NoError(t, w.Reopen())
	log := read(t, dir, 0)
	require.Equal(t, count(1, 2), bodies(t, log, log.Records))
	require.Equal(t, []journal.Kind{journal.Settled}, kinds(log))
	add(t, w, 3, 4)
	log = read(t, dir, 0)
	require.Equal(t, count(1, 4), bodies(t, log, log.Records))
	require.Equal(t, []journal.Kind{journal.Settled}, kinds(log))
	w = reopen(t, dir, journal.Position{})
	add(t, w, 5, 5)
	log = read(t, dir, 0)
	require.Equal(t, count(1, 5), bodies(t, log, log.Records))
}

// TestSalvage takes what is whole where Read takes what counts: behind a damaged
// header, behind a hole, and of what was given up the later record.
func TestSalvage(t *testing.T) {
	t.Parallel()
	dir := open(t)
	require.NoError(t, create(t, dir, 5).Close())
	w := reopen(t, dir, ref(t, read(t, dir, 0), 5).Position)
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
