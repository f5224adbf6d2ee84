package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// shipped returns the lines that a Tail gives of a journal, and its begin.
func shipped(t require.TestingT, dir writer.FS, upto uint64) (lines [][]byte, begin uint64) {
	tail := journal.NewTail(dir, 0)
	for _, g := range follow(t, tail, upto) {
		lines = append(lines, []byte(g.line))
	}
	return lines, max(tail.Begin(), 1)
}

// yielding yields lines, and then an error unless it is nil. Each line is overwritten when the next
// one comes.
func yielding(lines [][]byte, err error) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, line := range lines {
			own := bytes.Clone(line)
			if !yield(own, nil) {
				return
			}
			clear(own)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// requireComposed says that a composed journal is the one that its lines are from.
func requireComposed(t require.TestingT, from, to writer.FS, upto uint64) {
	want, before := linesOf(t, from)
	got, log := linesOf(t, to)
	for seq := range want {
		if seq > upto {
			delete(want, seq)
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, id, log.Session)
	require.Empty(t, log.Faults)
	require.Empty(t, log.Gaps())
	require.NoError(t, log.ListErr)
	require.Zero(t, log.Lost)
	require.Equal(t, before.Begin(), log.Begin())
	require.Equal(t, upto, log.Last())
	require.Equal(t, log.End(), log.Durable())
	for seq := log.Begin(); seq <= upto; seq++ {
		for epoch := range uint64(6) {
			require.Equal(t, before.Holds(epoch, seq), log.Holds(epoch, seq), "record %d in epoch %d", seq, epoch)
		}
	}
	for base := uint64(0); base <= upto; base += 7 {
		log, err := journal.Read(to, base, false)
		require.NoError(t, err)
		require.Zero(t, log.Lost)
		require.Empty(t, log.Faults)
	}
}

// TestComposedJournals composes what a Tail gave of random journals. The result is the same log, and is
// continued: by a Writer, and by a Tail that began with the original.
func TestComposedJournals(t *testing.T) {
	t.Parallel()
	seeds := uint64(25)
	if *deep {
		seeds = 2000
	}
	for seed := range seeds {
		j := newTailed(t, seed)
		j.work(1)
		for range 1 + j.rng.IntN(12) {
			j.step()
		}
		last := j.w.Last().Seq
		lines, begin := shipped(t, j.dir, last)
		upto := last
		if j.rng.IntN(2) == 0 && begin < last { // it came in the middle of a shipment
			upto = begin + j.rng.Uint64N(last-begin)
			lines, _ = shipped(t, j.dir, upto)
			if _, now := shipped(t, j.dir, last); now != begin {
				continue
			}
		}
		disk := crashfs.New(crashfs.XFS)
		to := disk.FS()
		require.NoError(t, journal.Compose(to, id, begin, yielding(lines, nil)), "seed %d", seed)
		requireComposed(t, j.dir, to, upto)
		for _, v := range disk.Variants(j.rng, 2) {
			requireComposed(t, j.dir, disk.Crash(v).FS(), upto)
		}
		again, _ := shipped(t, to, upto)
		require.Equal(t, lines, again)

		log := read(t, to, 0)
		tail := journal.NewTail(to, upto)
		w, err := journal.Open(to, id, log)
		require.NoError(t, err)
		require.Greater(t, w.Epoch(), log.End().Epoch)
		w.Limit = smallSegment
		q := &past{t: t, dir: to, w: w, n: j.n}
		q.work(8)
		for _, g := range follow(t, tail, upto+16) {
			upto++
			require.Equal(t, upto, g.seq)
		}
		q.packAll()
		require.NoError(t, q.drop(1))
		q.resume()
		require.NoError(t, w.Close())
		now := read(t, to, 0)
		require.Empty(t, now.Faults)
		require.Zero(t, now.Lost)
		require.Equal(t, upto, now.Last())
	}
}

// A log of more than a segment gets several.
func TestComposeOfALargeLog(t *testing.T) {
	t.Parallel()
	dir := crashfs.New(crashfs.Ext4).FS()
	p := newPast(t, dir)
	p.w.Limit = 64 << 20
	for n := range 5 {
		_, err := p.w.Append(journal.Record{Body: fmt.Appendf(nil, `"n":%d,"pad":"%s"`, n, strings.Repeat(string(rune('a'+n)), 5<<20))})
		require.NoError(t, err)
	}
	lines, begin := shipped(t, dir, 5)
	to := crashfs.New(crashfs.Ext4).FS()
	require.NoError(t, journal.Compose(to, id, begin, yielding(lines, nil)))
	requireComposed(t, dir, to, 5)
	require.Len(t, segmentNames(t, to), 4, "three segments and the list")
}

// What is lost of a composed log by damage is judged as in any other one.
func TestDamageInAComposedLog(t *testing.T) {
	t.Parallel()
	for _, entries := range []bool{false, true} {
		dir := open(t)
		create(t, dir, 2)
		add := []journal.Record{entry(3), entry(4)}
		if !entries {
			add[0] = body(3)
		}
		w := reopen(t, dir)
		_, err := w.Append(add...)
		require.NoError(t, err)
		lines, begin := shipped(t, dir, 4)
		to := open(t)
		require.NoError(t, journal.Compose(to, id, begin, yielding(lines, nil)))
		const last = "journal-2-1.jsonl.zst"
		data := content(t, to, last)
		require.NoError(t, writer.ReplaceFile(to, last, flippedAt(data, int64(len(data))-20), 0o600))
		log := read(t, to, 0)
		require.NotEmpty(t, log.Gaps())
		require.Equal(t, entries, log.Lost == 0, "record %d is lost", log.Lost)
	}
}

// TestComposeOnABadDisk fails each call: the error says so.
func TestComposeOnABadDisk(t *testing.T) {
	t.Parallel()
	p := pastOf(t, crashfs.New(crashfs.Ext4).FS())
	lines, begin := shipped(t, p.dir, p.w.Last().Seq)
	for k := 1; ; k++ {
		disk := crashfs.New(crashfs.XFS)
		n, hit := 0, ""
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if n++; n == k {
				hit = op.Call
				return crashfs.Fault{Err: syscall.EIO}
			}
			return crashfs.Fault{}
		})
		err := journal.Compose(disk.FS(), id, begin, yielding(lines, nil))
		if n < k {
			require.NoError(t, err)
			return
		}
		if hit != "remove" {
			require.ErrorIs(t, err, syscall.EIO, "call %d, %s", k, hit)
		}
	}
}

// TestComposeRefuses composes lines of which one is not as it should be.
func TestComposeRefuses(t *testing.T) {
	t.Parallel()
	line := func(seq, epoch, state int, entry bool) []byte {
		key := "prior"
		if entry {
			key = "state"
		}
		return []byte(sealed(fmt.Sprintf(`{"seq":%d,"epoch":%d,"synced":1,"%s":%d,"n":1`, seq, epoch, key, state)))
	}
	record := func(seq int) []byte { return line(seq, 1, seq-1, false) }
	entry := func(seq int) []byte { return line(seq, 1, 0, true) }
	flipped := flippedAt(record(2), 20)
	for name, c := range map[string]struct {
		begin uint64
		lines [][]byte
	}{
		"damaged":                            {1, [][]byte{record(1), flipped, record(3)}},
		"damaged first":                      {1, [][]byte{flippedAt(record(1), 20), record(2)}},
		"cut":                                {1, [][]byte{record(1), record(2)[:40]}},
		"without a line feed":                {1, [][]byte{record(1), bytes.TrimSpace(record(2))}},
		"empty":                              {1, [][]byte{record(1), {}}},
		"two in one":                         {1, [][]byte{record(1), slices.Concat(record(2), record(3))}},
		"with a line feed in it":             {1, [][]byte{record(1), []byte(sealed("{\"seq\":2,\"epoch\":1,\"synced\":1,\"prior\":1,\"n\":\n1"))}},
		"sealed twice":                       {1, [][]byte{record(1), []byte(sealed(string(record(2))))}},
		"a note":                             {1, [][]byte{record(1), []byte(sealed(`{"note":1,"epoch":1,"synced":1,"state":1,"named":[]`)), record(2)}},
		"a header":                           {1, [][]byte{[]byte(sealed(`{"journal":1,"session":"x","epoch":1,"segment":1`)), record(1)}},
		"a gap":                              {1, [][]byte{record(1), record(3)}},
		"a gap of entries":                   {1, [][]byte{record(1), entry(3)}},
		"a gap at the begin":                 {1, [][]byte{record(2)}},
		"twice":                              {1, [][]byte{record(1), record(1)}},
		"out of order":                       {1, [][]byte{record(1), record(2), record(1)}},
		"an earlier epoch":                   {1, [][]byte{line(1, 2, 0, false), line(2, 1, 1, false)}},
		"no epoch":                           {1, [][]byte{line(1, 0, 0, false)}},
		"no number":                          {1, [][]byte{line(0, 1, 0, true), record(1)}},
		"a State that is to come":            {1, [][]byte{line(1, 1, 2, true)}},
		"a change below the begin":           {4, [][]byte{record(2), record(4)}},
		"entries out of order below":         {5, [][]byte{entry(2), entry(1), record(5)}},
		"an entry twice below":               {5, [][]byte{entry(2), entry(2), record(5)}},
		"a gap at a later begin":             {4, [][]byte{entry(2), record(5)}},
		"an entry below the begin behind it": {4, [][]byte{entry(2), record(4), entry(3)}},
		"an epoch that is too large":         {1, [][]byte{line(1, 1<<62+1, 0, false)}},
		"no begin":                           {1 << 63, [][]byte{entry(1)}},
		"too long":                           {1, [][]byte{[]byte(sealed(`{"seq":1,"epoch":1,"synced":1,"prior":0,"n":"` + strings.Repeat("x", 17<<20) + `"`))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := crashfs.New(crashfs.Ext4).FS()
			err := journal.Compose(to, id, c.begin, yielding(c.lines, nil))
			require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, to.Name())
		})
	}
	broken := errors.New("the other side is gone")
	require.ErrorIs(t, journal.Compose(open(t), id, 1, yielding([][]byte{record(1)}, broken)), broken)
	require.ErrorIs(t, journal.Compose(open(t), id, 1, yielding(nil, broken)), broken)
	require.NoError(t, journal.Compose(open(t), id, 4, yielding([][]byte{entry(2), record(4)}, nil)))
}

// FuzzCompose composes what comes from elsewhere. It is refused, or it is what is read.
func FuzzCompose(f *testing.F) {
	p := newPast(f, open(f))
	p.work(4)
	p.resume()
	p.work(3)
	lines, _ := shipped(f, p.dir, p.w.Last().Seq)
	f.Add(bytes.Join(lines, nil), uint64(1), true)
	p.packAll()
	require.NoError(f, p.drop(1))
	lines, begin := shipped(f, p.dir, p.w.Last().Seq)
	whole := bytes.Join(lines, nil)
	f.Add(whole, begin, true)
	f.Add(whole, begin-1, false)
	f.Add(whole[:len(whole)-7], begin, true)
	f.Add(slices.Concat(lines[3:]...), begin, true)
	f.Add([]byte{}, uint64(9), false)
	f.Add([]byte(sealed(`{"seq":1,"epoch":0,"synced":0,"prior":0,"n":1`)), uint64(1), false)
	f.Fuzz(func(t *testing.T, data []byte, begin uint64, whole bool) {
		if whole {
			data = reseal(data)
		}
		lines := slices.Collect(bytes.Lines(data))
		to := crashfs.New(crashfs.Ext4).FS()
		err := journal.Compose(to, id, begin, yielding(lines, nil))
		if err != nil {
			require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "%v", err)
			return
		}
		log := read(t, to, 0)
		require.Empty(t, log.Faults)
		require.Zero(t, log.Lost)
		require.Equal(t, max(begin, 1), log.Begin())
		var got [][]byte
		require.NoError(t, log.Lines(log.Records, func(_ *journal.Ref, line []byte) error {
			got = append(got, bytes.Clone(line))
			return nil
		}))
		require.Equal(t, len(lines), len(got))
		for i := range got {
			require.Equal(t, string(lines[i]), string(got[i]))
		}
		if len(lines) == 0 || log.Last() > 1<<61 || log.End().Epoch > 1<<61 {
			return
		}
		w, err := journal.Open(to, id, log)
		require.NoError(t, err)
		at, err := w.Append(body(1))
		require.NoError(t, err)
		require.Equal(t, log.Last()+1, at.Seq)
		require.NoError(t, w.Close())
	})
}
