package journal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/journal"
)

var snapshot = journal.Named{File: "state.json", Epoch: 1, Seq: 3, SHA256: "00ff"}

// Once a note follows, damage of the last record is distinguished from a torn tail.
func TestNoteTellsDamageFromATornEnd(t *testing.T) {
	t.Parallel()
	for _, noted := range []bool{false, true} {
		dir := open(t)
		w := create(t, dir, 3)
		if noted {
			require.NoError(t, w.Note(snapshot))
			require.NoError(t, w.Note(), "two in a row")
		}
		require.Equal(t, noted, read(t, dir, 0).Named(snapshot))
		require.NoError(t, w.Close())
		last := ref(t, read(t, dir, 0), 3)
		whole := content(t, dir, first)
		for at := last.Offset; at < last.Offset+last.Length; at++ {
			put(t, dir, first, flippedAt(whole, at))
			log := read(t, dir, 0)
			require.Equal(t, count(1, 2), seqs(log.Records))
			if noted {
				require.Equal(t, []journal.Kind{journal.Damaged}, kinds(log))
				require.EqualValues(t, 3, log.Lost)
				require.EqualValues(t, 3, log.Last(), "its number is taken")
				require.EqualValues(t, 3, log.Durable().Seq)
			} else {
				require.Equal(t, []journal.Kind{journal.Torn}, kinds(log))
				require.Zero(t, log.Lost)
				require.EqualValues(t, 2, log.Last())
			}
		}
	}
}

// A note is no record: when it is torn, no record is lost or damaged.
func TestNoteThatIsTorn(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 3)
	begin := len(text(t, dir, first))
	require.NoError(t, w.Note(snapshot))
	end := len(text(t, dir, first))
	add(t, w, 4, 4)
	require.NoError(t, w.Close())
	whole := text(t, dir, first)
	for at := begin; at < end; at++ {
		// The power was cut before the record was acknowledged, with any order of the writes.
		torn := slices.Clone(whole)
		clear(torn[at:end])
		for _, data := range [][]byte{torn, torn[:at], torn[:end], flippedAt(whole, int64(at)), append(slices.Clone(torn), make([]byte, 5000)...)} {
			other := open(t)
			put(t, other, first, data)
			put(t, other, journal.ListFile, content(t, dir, journal.ListFile))
			log := read(t, other, 0)
			require.Zero(t, log.Lost)
			require.NotContains(t, kinds(log), journal.Damaged)
			require.Equal(t, count(1, 3), seqs(log.Records), "at %d", at)
			if at == begin {
				w := reopen(t, other)
				add(t, w, 4, 5)
				log = read(t, other, 0)
				require.Equal(t, count(1, 5), bodies(t, log, log.Records))
				require.NotContains(t, kinds(log), journal.Damaged)
			}
		}
	}
}

// When a note fails, only the note is lost, and the next record begins a segment.
func TestNoteThatFails(t *testing.T) {
	t.Parallel()
	for _, short := range []bool{false, true} {
		dir := &faulty{FS: open(t), err: syscall.EIO, short: short}
		w := create(t, dir, 3)
		dir.fails = func(op string, _ int) bool { return op == "write" }
		require.Error(t, w.Note(snapshot))
		dir.fails = nil
		before := dir.total()
		require.NoError(t, w.Note(snapshot), "there is nowhere to write it")
		require.Equal(t, before, dir.total())
		add(t, w, 4, 6)
		check(t, dir, count(1, 6))
		require.Equal(t, "journal-1-2.jsonl", w.Segment())
		require.False(t, read(t, dir, 0).Named(snapshot))
		require.NoError(t, w.Note(snapshot))
		require.True(t, read(t, dir, 0).Named(snapshot))
		require.NoError(t, w.Close())
		require.Error(t, w.Note(snapshot), "it is closed")
	}
}

// Notes are durable when Close returns nil, and when their segment ends.
func TestNotesAreSynced(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *journal.Writer) error{
		"close":  (*journal.Writer).Close,
		"rotate": func(w *journal.Writer) error { w.Full(); _, err := w.Append(body(4)); return err },
	} {
		dir := &faulty{FS: open(t), err: syscall.EIO}
		w := create(t, dir, 3)
		require.NoError(t, w.Note(snapshot))
		require.Equal(t, []string{first}, dir.owes(), name)
		require.NoError(t, end(w))
		require.Empty(t, dir.owes(), name)
	}
	dir := &faulty{FS: open(t), err: syscall.EIO}
	w := create(t, dir, 3)
	require.NoError(t, w.Note(snapshot))
	dir.fails = func(op string, _ int) bool { return op == "datasync" }
	require.Equal(t, writer.ClassDevice, writer.ClassOf(w.Close()))
}

// A snapshot is believed only with the hash, the epoch and the number that the note names,
// and only if it lies on the chain. The base of Read makes no difference.
func TestNamed(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 3)
	more := journal.Named{File: `a "name" of another <file>`, Epoch: 1, Seq: 2, SHA256: "11"}
	require.NoError(t, w.Note(snapshot, more))
	w.Full() // so that the next segment continues from the record of the note
	add(t, w, 4, 4)
	reopen(t, dir)
	reopen(t, dir)
	for base := range uint64(4) {
		log, err := journal.Read(dir, base, false)
		require.NoError(t, err)
		require.True(t, log.Named(snapshot), "base %d", base)
		require.True(t, log.Named(more))
		for _, n := range []journal.Named{
			{"state.json", 2, 3, "00ff"}, {"state.json", 1, 2, "00ff"}, {"state.json", 1, 3, "00fe"}, {"other", 1, 3, "00ff"}, {},
		} {
			require.False(t, log.Named(n), n)
		}
	}
	// The note of a writer that has lost its lease names an unacknowledged record.
	stale := w
	w = reopen(t, dir)
	add(t, w, 5, 6)
	_, err := stale.Append(body(105), body(106))
	require.NoError(t, err)
	require.NoError(t, stale.Note(journal.Named{File: "state.json", Epoch: stale.Epoch(), Seq: 6, SHA256: "22"}))
	require.False(t, read(t, dir, 0).Named(journal.Named{File: "state.json", Epoch: stale.Epoch(), Seq: 6, SHA256: "22"}))
}

// When an entry is lost, the State is still complete, and no other record gets its number.
func TestLossOfEntries(t *testing.T) {
	t.Parallel()
	const E, R = true, false
	for name, c := range map[string]struct {
		kinds []bool // of records 1 to n, true for an entry
		flip  []int
		note  bool // a note follows the records
		lost  uint64
	}{
		"an entry":                              {[]bool{R, E, R, R}, []int{2}, false, 0},
		"a record of the State":                 {[]bool{R, R, E, R}, []int{2}, false, 2},
		"an entry behind one":                   {[]bool{R, R, E, E}, []int{3}, false, 0},
		"the first, an entry":                   {[]bool{E, R, E}, []int{1}, false, 0},
		"the first, of the State":               {[]bool{R, E, E}, []int{1}, false, 1},
		"two entries":                           {[]bool{R, E, E, R, R}, []int{2, 3}, false, 0},
		"an entry and a record of the State":    {[]bool{R, E, R, E, R}, []int{2, 3}, false, 2},
		"a record of the State and an entry":    {[]bool{R, R, E, E, R}, []int{2, 3}, false, 2},
		"entries only":                          {[]bool{E, E, E, E}, []int{1, 2}, false, 0},
		"the last, an entry, before a note":     {[]bool{R, R, E}, []int{3}, true, 0},
		"the last two, entries, before a note":  {[]bool{R, E, E}, []int{2, 3}, true, 0},
		"the last, of the State, before a note": {[]bool{R, E, R}, []int{3}, true, 3},
		"all entries before a note":             {[]bool{E, E, E}, []int{1, 2, 3}, true, 0},
	} {
		for _, where := range []string{"in one segment", "at the end of a segment", "copied", "in the copies", "in copies with nothing behind"} {
			t.Run(name+" "+where, func(t *testing.T) {
				t.Parallel()
				dir := open(t)
				w := create(t, dir, 0)
				var all []journal.Record
				for i, e := range c.kinds {
					all = append(all, journal.Record{Body: fmt.Appendf(nil, `"n":%d`, i+1), Entry: e})
				}
				n := len(all)
				copies := where == "in the copies" || where == "in copies with nothing behind"
				for i := 0; i < n; {
					one := all[i:min(i+1, n)]
					if copies {
						one = all
					}
					_, err := w.Append(one...)
					require.NoError(t, err)
					i += len(one)
				}
				if c.note && !copies {
					require.NoError(t, w.Note())
				}
				switch where {
				case "at the end of a segment":
					w.Full()
					_, err := w.Append(body(n + 1))
					require.NoError(t, err)
				case "copied":
					w = reopen(t, dir)
					add(t, w, n+1, n+1)
				case "in the copies":
					w = reopen(t, dir)
					_, err := w.Append(entry(n + 1))
					require.NoError(t, err)
				case "in copies with nothing behind":
					reopen(t, dir)
				}
				before := read(t, dir, 0)
				require.Empty(t, before.Faults)
				for _, k := range c.flip {
					flip(t, dir, ref(t, before, k))
				}
				log := read(t, dir, 0)
				require.Equal(t, c.lost, log.Lost)
				require.Contains(t, kinds(log), journal.Damaged)
				require.NotContains(t, kinds(log), journal.Torn)
				require.Equal(t, before.Last(), log.Last(), "numbers of what is lost are taken")
				for base := uint64(0); base <= log.Last(); base++ {
					want := uint64(0) // the first lost record above the base, unless only entries are lost there
					for _, k := range c.flip {
						if uint64(k) > base && !c.kinds[k-1] {
							want = base + 1
							for !slices.Contains(c.flip, int(want)) {
								want++
							}
						}
					}
					log := read(t, dir, base)
					require.Equal(t, want, log.Lost, "base %d", base)
					if want > 0 {
						continue
					}
					// The next epoch continues behind them, and a reader of it finds the same.
					other := open(t)
					require.NoError(t, os.CopyFS(other.Name(), os.DirFS(dir.Name())))
					log = read(t, other, base)
					w, err := journal.Open(other, id, log)
					require.NoError(t, err)
					t.Cleanup(func() { w.Close() })
					add(t, w, int(before.Last())+1, int(before.Last())+2)
					for again := uint64(0); again <= base; again++ {
						require.Equal(t, read(t, dir, again).Lost, read(t, other, again).Lost, "base %d, then %d", base, again)
					}
					w = reopen(t, other)
					require.EqualValues(t, before.Last()+2, w.Last().Seq)
				}
			})
		}
	}
}

// Segments that hold only entries may be missing.
func TestMissingSegmentOfEntries(t *testing.T) {
	t.Parallel()
	for _, state := range []bool{false, true} {
		dir := open(t)
		w := create(t, dir, 2)
		w.Full()
		_, err := w.Append(entry(3), journal.Record{Body: body(4).Body, Entry: !state}, entry(5))
		require.NoError(t, err)
		w.Full()
		_, err = w.Append(entry(6), body(7))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir.Name(), "journal-1-2.jsonl")))
		log := read(t, dir, 0)
		require.Equal(t, []journal.Fault{{Kind: journal.Damaged, Segment: "journal-1-2.jsonl", Seq: 3}}, log.Faults, "it is told")
		require.Equal(t, []int{1, 2, 6, 7}, bodies(t, log, log.Records))
		want := uint64(0)
		if state {
			want = 3
		}
		require.Equal(t, want, log.Lost)
		require.NoError(t, os.Remove(filepath.Join(dir.Name(), first)))
		require.EqualValues(t, 6, read(t, dir, 0).Records[0].Seq)
		require.EqualValues(t, 1, read(t, dir, 0).Lost)
	}
	dir := open(t)
	w := create(t, dir, 0)
	_, err := w.Append(entry(1), entry(2))
	require.NoError(t, err)
	w.Full()
	add(t, w, 3, 4)
	require.NoError(t, os.Remove(filepath.Join(dir.Name(), first)))
	log := read(t, dir, 0)
	require.Zero(t, log.Lost)
	require.EqualValues(t, 3, log.Records[0].Seq, "they are missing all the same")
}

// A line that lost its line feed costs one record and not the next one.
func TestLostLineFeed(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := create(t, dir, 0)
	for n := 1; n <= 6; n++ {
		_, err := w.Append(journal.Record{Body: fmt.Appendf(nil, `"n":%d,"of":{"seq":1,"epoch":1,"synced":2},"more":[{"note":1}]`, n), Entry: n%2 == 0})
		require.NoError(t, err)
		if n%3 == 0 {
			require.NoError(t, w.Note())
		}
	}
	require.NoError(t, w.Close())
	whole := content(t, dir, first)
	for _, r := range read(t, dir, 0).Records {
		put(t, dir, first, flippedAt(whole, r.Offset+r.Length-1))
		log := read(t, dir, 0)
		require.Equal(t, slices.DeleteFunc(count(1, 6), func(n int) bool { return n == int(r.Seq) }), bodies(t, log, log.Records), "their lines are found where they stand")
		require.Equal(t, []journal.Fault{{Kind: journal.Damaged, Segment: first, Offset: r.Offset, Length: r.Length, Seq: r.Seq}}, log.Faults)
		require.Equal(t, r.Entry, log.Lost == 0)
	}
	for at := range bytes.IndexByte(whole, '\n') + 1 { // in the header it costs no record
		put(t, dir, first, flippedAt(whole, int64(at)))
		log := read(t, dir, 0)
		require.Equal(t, count(1, 6), bodies(t, log, log.Records))
		require.Zero(t, log.Lost)
		require.Equal(t, []journal.Kind{journal.Damaged}, kinds(log))
	}
}
