package journal_test

import (
	"bytes"
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

var seal = regexp.MustCompile(`,"crc":"[0-9a-f]{8}"\}$`)

// reseal corrects the checksum of every line that has one, so that a line that the fuzzer
// changed is not refused for its checksum alone.
func reseal(data []byte) []byte {
	var all []byte
	for line := range bytes.Lines(data) {
		whole := bytes.TrimSuffix(line, []byte("\n"))
		if at := seal.FindIndex(whole); at != nil && len(whole) < len(line) {
			line = []byte(sealed(string(whole[:at[0]])))
		}
		all = append(all, line...)
	}
	return all
}

func FuzzRead(f *testing.F) {
	src := open(f)
	w := create(f, src, 3)
	_, err := w.Append(body(4), body(5))
	require.NoError(f, err)
	stale := w
	w = reopen(f, src)
	add(f, w, 6, 7)
	_, err = stale.Append(body(106))
	require.NoError(f, err)
	one, two := text(f, src, "journal-1-1.jsonl"), text(f, src, "journal-2-1.jsonl")
	for _, base := range []uint64{0, 2, 4, 9} {
		f.Add(one, two, base, base%4 == 0, false)
		f.Add(one, two, base, base%4 != 0, true)
	}
	for _, n := range []int{1, 5, 60, 200, 300} {
		f.Add(one[:len(one)-n], two, uint64(0), true, false)
		f.Add(one, two[:len(two)-n], uint64(2), false, false)
		f.Add(flippedAt(one, int64(len(one)-n)), two, uint64(2), true, false)
		f.Add(one, flippedAt(two, int64(len(two)-n)), uint64(1), true, false)
		f.Add(one, append(bytes.Clone(two), make([]byte, n)...), uint64(1), true, false)
	}
	f.Add([]byte{}, two, uint64(0), true, false)
	f.Add(one, []byte{}, uint64(0), true, false)
	f.Add(two, one, uint64(0), true, false)
	f.Add([]byte("\n\n{}\n"), []byte(sealed(`{"journal":2`)), uint64(0), true, false)

	f.Fuzz(func(t *testing.T, one, two []byte, base uint64, all, whole bool) {
		if whole {
			one, two = reseal(one), reseal(two)
		}
		dir := open(t)
		size := map[string]int64{"journal-1-1.jsonl": int64(len(one)), "journal-2-1.jsonl": int64(len(two))}
		put(t, dir, "journal-1-1.jsonl", one)
		put(t, dir, "journal-2-1.jsonl", two)
		log, err := journal.Read(dir, base, all)
		if err != nil {
			require.True(t, errors.Is(err, envelope.ErrFutureVersion), "%v", err)
			return
		}
		last, total := uint64(0), int64(0)
		for i := range log.Records {
			r := &log.Records[i]
			require.Greater(t, r.Seq, last, "ascending, and none is 0")
			require.Positive(t, r.Length)
			require.LessOrEqual(t, r.Offset+r.Length, size[r.Segment()])
			last, total = r.Seq, total+r.Length
		}
		require.LessOrEqual(t, total, int64(len(one)+len(two)), "no bytes count twice")
		require.LessOrEqual(t, len(log.Faults), len(one)+len(two)+2)
		n := 0
		require.NoError(t, log.Lines(log.Records, func(r *journal.Ref, line []byte) error {
			require.EqualValues(t, r.Length, len(line))
			n++
			return nil
		}))
		require.Equal(t, len(log.Records), n)
		require.True(t, log.Lost == 0 || log.Lost > base)
		require.GreaterOrEqual(t, log.Last(), last)
		for _, fault := range log.Faults {
			require.NotEmpty(t, fault.String())
			require.LessOrEqual(t, fault.Offset, size[fault.Segment])
		}
		require.True(t, bytes.Equal(one, content(t, dir, "journal-1-1.jsonl")), "reading changes nothing")

		// A new epoch continues from whatever was there.
		if log.Lost != 0 || base > 1<<62 || last > 1<<62 || log.Last() > 1<<62 {
			return
		}
		w, err := journal.Open(dir, id, log)
		require.NoError(t, err)
		defer w.Close()
		at, err := w.Append(body(1))
		require.NoError(t, err)
		if log.Session != id && log.Session != "" {
			return // the callers of journal refuse another session
		}
		again, err := journal.Read(dir, base, false)
		require.NoError(t, err)
		require.Zero(t, again.Lost)
		require.Equal(t, at.Seq, again.Last())
		require.Equal(t, at, again.Records[len(again.Records)-1].Position)
	})
}

func FuzzAppendRead(f *testing.F) {
	f.Add([]byte(`"n":1`), []byte(`"what":"a","x":[{}]`), uint8(3))
	f.Add([]byte(``), []byte(`"crc":"00000000"}`), uint8(0))
	f.Add([]byte("\x00\xff"), bytes.Repeat([]byte("x"), 70<<10), uint8(9))
	f.Fuzz(func(t *testing.T, a, b []byte, rotate uint8) {
		a, b = bytes.ReplaceAll(a, []byte("\n"), nil), bytes.ReplaceAll(b, []byte("\n"), nil)
		dir := open(t)
		w := create(t, dir, 0)
		w.Limit = int64(rotate) << 6
		want := []journal.Record{{Body: a}, {Body: b, Entry: true}, {Body: a, Entry: true}, {Body: b}, {Body: b}}
		for _, group := range [][]journal.Record{want[:1], want[1:4], want[4:]} {
			_, err := w.Append(group...)
			require.NoError(t, err)
		}
		w = reopen(t, dir)
		require.EqualValues(t, len(want), w.Last().Seq)
		for _, all := range []bool{true, false} {
			log, err := journal.Read(dir, 0, all)
			require.NoError(t, err)
			require.Empty(t, log.Faults)
			require.Len(t, log.Records, len(want))
			i := 0
			require.NoError(t, log.Lines(log.Records, func(r *journal.Ref, line []byte) error {
				_, rest, _ := bytes.Cut(line, []byte(`"synced":`))
				_, rest, _ = bytes.Cut(rest, []byte(","))
				require.Equal(t, want[i].Entry, r.Entry)
				_, rest, _ = bytes.Cut(rest, []byte(","))
				require.Equal(t, string(want[i].Body), string(rest[:len(rest)-len(`,"crc":"00000000"}`)-1]))
				i++
				return nil
			}))
			require.Equal(t, len(want), i)
		}
	})
}
