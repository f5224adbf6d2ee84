package journal_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

func TestTornTail(t *testing.T) {
	t.Parallel()
	const seg = "journal-1-1.jsonl"
	src := open(t)
	w := create(t, src, 3)
	_, err := w.Append(body(4), body(5), body(6)) // one batch: none proves another to be durable
	require.NoError(t, err)
	whole := text(t, src, seg)
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
		"garbage behind": {
			{append(slices.Clone(whole), "garbage"...), end},
			{append(slices.Clone(whole), "garbage\n"...), end},
			{append(slices.Clone(whole), "\n"...), end},
			{append(slices.Clone(whole), whole[last.Offset:]...), end}, // the last record twice
			{append(slices.Clone(whole), bytes.Repeat([]byte("x"), 17<<20)...), end},
			{append(append(slices.Clone(whole), make([]byte, 5000)...), "garbage"...), end},
			{append(append(slices.Clone(whole), make([]byte, 17<<20)...), whole[last.Offset:]...), end},
		},
		"valid lines behind a hole": {
			{flippedAt(whole, batch.Offset+batch.Length/2), batch},
			{flippedAt(whole, batch.Offset+batch.Length-1), batch}, // the line feed: two lines become one
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
					Length: int64(len(bytes.TrimRight(c.data, "\x00"))) - c.at.Offset, Seq: c.at.Seq,
				}}, log.Faults)
				require.Equal(t, c.data, content(t, dir, seg), "reading changes nothing")
			}
			// The next epoch settles the torn tail.
			w := reopen(t, dir)
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

// requireGaps requires that the gaps of a log have each of the records that are missing, in order, and that
// none has nothing but what is there.
func requireGaps(t *testing.T, log *journal.Log, missing []uint64, about ...any) {
	t.Helper()
	gaps, left := log.Gaps(), missing
	for _, g := range gaps {
		n := len(left)
		for len(left) > 0 && g.Has(left[0]) {
			left = left[1:]
		}
		require.Less(t, len(left), n, about...)
		require.False(t, slices.ContainsFunc(log.Records, func(r journal.Ref) bool { return g.Has(r.Seq) }), about...)
	}
	require.Empty(t, left, about...)
}

func numbers(all ...int) (seqs []uint64) {
	for _, n := range all {
		seqs = append(seqs, uint64(n))
	}
	return seqs
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
		{"the last one below the base", []int{6}, 6, 0, []int{6}, []journal.Kind{journal.Torn}},
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
			if c.base == 0 || c.fault[0] == journal.Torn {
				requireGaps(t, read(t, dir, 0), slices.DeleteFunc(numbers(c.gone...), func(uint64) bool { return c.fault[0] == journal.Torn }))
			}
		})
	}
}

// A missing line leaves no hole. The number of the next line shows that it is missing.
func TestLineThatIsGone(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 6)
	r, whole := ref(t, read(t, dir, 0), 3), content(t, dir, first)
	put(t, dir, first, slices.Concat(whole[:r.Offset], whole[r.Offset+r.Length:]))
	log := read(t, dir, 0)
	require.EqualValues(t, 3, log.Lost)
	require.Equal(t, []journal.Fault{{Kind: journal.Damaged, Segment: first, Offset: r.Offset, Seq: 3}}, log.Faults)
	require.Equal(t, []int{1, 2, 4, 5, 6}, bodies(t, log, log.Records))
	require.Equal(t, []journal.Gap{{First: 3, Last: 3}}, log.Gaps())
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
	require.Equal(t, []journal.Gap{{First: 3, Last: 6}}, read(t, dir, 0).Gaps())
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
		more   int // records appended to the new epoch before the damage
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
			batch(t, create(t, dir, 0), 3)
			w := reopen(t, dir)
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
			missing := numbers(count(c.seq, 3+c.more)...)
			requireGaps(t, got, slices.DeleteFunc(missing, func(seq uint64) bool {
				return slices.ContainsFunc(got.Records, func(r journal.Ref) bool { return r.Seq == seq })
			}))
			require.Zero(t, read(t, dir, 3).Lost, "what a snapshot covers costs history only")
		})
	}
}

func flipIn(data []byte, _ *journal.Log, at journal.Ref) []byte {
	return flippedAt(data, at.Offset+at.Length/2)
}

func cutIn(data []byte, _ *journal.Log, at journal.Ref) []byte { return data[:at.Offset] }

// The durable offsets in copied records refer to the original file, not to the one with the
// copies.
func TestCopiesSpeakOfAnotherFile(t *testing.T) {
	t.Parallel()
	dir := open(t)
	w := createWith(t, dir, 1<<20, 0)
	_, err := w.Append(journal.Record{Body: fmt.Appendf(nil, `"pad":"%s"`, bytes.Repeat([]byte("x"), 20<<10))})
	require.NoError(t, err)
	batch(t, w, 3)
	w = reopen(t, dir)
	_, err = w.Append(body(5))
	require.NoError(t, err)
	log := read(t, dir, 0)
	require.EqualValues(t, 5, log.Last())
	const seg = "journal-2-1.jsonl"
	at := ref(t, log, 5)
	require.Equal(t, seg, at.Segment())
	put(t, dir, seg, content(t, dir, seg)[:at.Offset+10])
	log = read(t, dir, 0)
	require.Contains(t, kinds(log), journal.Torn)
	require.NotContains(t, kinds(log), journal.Damaged)
	require.Zero(t, log.Lost)
}

// Copies were durable, so losing them is damage even where a snapshot covers them.
func TestCopiesCutAtTheBase(t *testing.T) {
	t.Parallel()
	dir := open(t)
	batch(t, create(t, dir, 0), 5)
	reopen(t, dir)
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
	require.Equal(t, []journal.Gap{{First: 4, Last: 6}}, read(t, dir, 0).Gaps())
}

// A damaged end of a segment from which a later one continues is damage. It concerns history
// only when the snapshot covers it.
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
	of := func(session string, epoch, n int) []byte {
		return []byte(sealed(fmt.Sprintf(`{"journal":1,"session":%q,"epoch":%d,"segment":%d,"after":{"epoch":0,"seq":0}`, session, epoch, n)) +
			sealed(fmt.Sprintf(`{"seq":1,"epoch":%d,"synced":9,"prior":0,"n":99`, epoch)))
	}
	for name, c := range map[string]struct {
		file  string
		data  []byte
		fault []journal.Kind
	}{
		"empty":                    {"journal-1-2.jsonl", nil, nil},
		"garbage":                  {"journal-1-2.jsonl", []byte("garbage"), []journal.Kind{journal.Torn}},
		"zeros":                    {"journal-1-2.jsonl", make([]byte, 4096), nil},
		"another session":          {"journal-2-1.jsonl", of("other-20260214-1", 2, 1), []journal.Kind{journal.Torn}},
		"another name's header":    {"journal-2-1.jsonl", of(id, 3, 1), []journal.Kind{journal.Torn}},
		"another segment's header": {"journal-2-1.jsonl", of(id, 2, 2), []journal.Kind{journal.Torn}},
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
			// The next epoch leaves the fault as it is.
			add(t, reopen(t, dir), 4, 4)
			log = read(t, dir, 0)
			require.Equal(t, count(1, 4), bodies(t, log, log.Records))
			require.NotContains(t, kinds(log), journal.Torn)
		})
	}

	t.Run("another session, part of the segments", func(t *testing.T) {
		t.Parallel()
		dir := open(t)
		create(t, dir, 3)
		put(t, dir, "journal-2-1.jsonl", of("other-20260214-1", 2, 1))
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
		require.ErrorIs(t, err, envelope.ErrFutureVersion)
	}
}

// A segment whose header names another checksum for a record does not continue from it.
func TestHeaderOfAnotherPast(t *testing.T) {
	t.Parallel()
	dir := open(t)
	create(t, dir, 3)
	put(t, dir, "journal-2-1.jsonl", []byte(
		sealed(`{"journal":1,"session":"`+id+`","epoch":2,"segment":1,"after":{"epoch":1,"seq":3,"crc":"00000000"}`)+
			sealed(`{"seq":4,"epoch":2,"synced":1,"prior":3,"n":4`)))
	log := read(t, dir, 0)
	require.EqualValues(t, 3, log.Lost)
	require.Contains(t, kinds(log), journal.Damaged)
	require.Equal(t, []int{1, 2, 4}, bodies(t, log, log.Records))
	require.Equal(t, []journal.Gap{{First: 3, Last: 3}}, log.Gaps())
	require.Zero(t, read(t, dir, 3).Lost)
}

func TestHeaderNumbersThatOverflow(t *testing.T) {
	t.Parallel()
	for _, after := range []string{`"after":{"epoch":1,"seq":18446744073709551615}`, `"after":{"epoch":1,"seq":3},"copied":9223372036854775807`} {
		dir := open(t)
		create(t, dir, 3)
		put(t, dir, "journal-2-1.jsonl", []byte(sealed(`{"journal":1,"session":"`+id+`","epoch":2,"segment":1,`+after)+
			sealed(`{"seq":0,"epoch":2,"synced":1,"prior":0,"n":0`)))
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
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	require.Equal(t, 1, n)
	put(t, dir, "journal-1-1.jsonl", content(t, dir, "journal-1-1.jsonl")[:ref(t, log, 3).Offset])
	require.ErrorIs(t, log.Lines(log.Above(2), func(*journal.Ref, []byte) error { return nil }), envelope.ErrCorrupt)
	require.NoError(t, os.Remove(filepath.Join(dir.Name(), "journal-1-1.jsonl")))
	require.ErrorIs(t, log.Lines(log.Records, func(*journal.Ref, []byte) error { return nil }), fs.ErrNotExist)
}
