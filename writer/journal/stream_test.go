package journal_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

const stream = "messages"

func say(n int) []byte { return fmt.Appendf(nil, `"say":"<%d>"`, n) }

// says appends and accepts messages first to last as one batch.
func says(t require.TestingT, s *journal.Stream, first, last int) journal.Tail {
	var all [][]byte
	for i := first; i <= last; i++ {
		all = append(all, say(i))
	}
	at, err := s.Append(7, all)
	require.NoError(t, err)
	s.Accept()
	require.Equal(t, at, s.Tail())
	return at
}

// holder goes on from a Tail as the next holder of the session.
func holder(t testing.TB, dir writer.FS, epoch uint64, at journal.Tail) *journal.Stream {
	s := journal.NewStream(dir, stream, id, epoch, at)
	t.Cleanup(func() { s.Close() })
	return s
}

// hear returns the numbers of what was said, with -1 for a place where some are lost.
func hear(t require.TestingT, dir writer.FS, to journal.Tail) []int {
	got := []int{}
	last := uint64(0)
	for e, err := range journal.ReadStream(dir, stream, to) {
		if errors.Is(err, journal.ErrDamaged) {
			got = append(got, -1)
			continue
		}
		require.NoError(t, err)
		require.Greater(t, e.N, last)
		last = e.N
		_, rest, _ := strings.Cut(string(e.Line), "<")
		n := 0
		_, err = fmt.Sscan(strings.TrimRight(strings.SplitN(rest, ">", 2)[0], ">"), &n)
		require.NoError(t, err)
		require.Equal(t, e.N, e.Tail.Count)
		got = append(got, n)
	}
	return got
}

func TestStream(t *testing.T) {
	t.Parallel()
	dir := open(t)
	one := holder(t, dir, 1, journal.Tail{})
	require.Empty(t, names(t, dir), "nothing is touched before the first record")
	require.Empty(t, hear(t, dir, one.Tail()))
	first := says(t, one, 1, 3)
	says(t, one, 4, 4)
	require.Equal(t, []string{"messages.jsonl"}, names(t, dir))
	one.GiveUp()
	says(t, one, 5, 6)
	require.NoError(t, one.Close())
	require.NoError(t, one.Close())
	two := holder(t, dir, 2, one.Tail())
	says(t, two, 7, 7)
	two.GiveUp()
	says(t, two, 8, 9)
	require.Equal(t, []string{"messages-1-1.jsonl", "messages-2-1.jsonl", "messages-2-2.jsonl", "messages.jsonl"}, names(t, dir))
	require.Equal(t, count(1, 9), hear(t, dir, two.Tail()))
	require.Equal(t, count(1, 3), hear(t, dir, first))
	files, err := journal.StreamFiles(dir, stream, two.Tail())
	require.NoError(t, err)
	require.Equal(t, []string{"messages.jsonl", "messages-1-1.jsonl", "messages-2-1.jsonl", "messages-2-2.jsonl"}, files)

	var tails []journal.Tail
	for e, err := range journal.ReadStream(dir, stream, two.Tail()) {
		require.NoError(t, err)
		require.EqualValues(t, 7, e.Seq)
		tails = append(tails, e.Tail)
	}
	for i, at := range tails { // a fork may go on from any record
		require.Equal(t, count(1, i+1), hear(t, dir, at))
	}
	for range journal.ReadStream(dir, stream, two.Tail()) {
		break
	}
}

// A name that is taken is somebody else's file, which stays as it is.
func TestStreamNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	dir := open(t)
	for _, n := range []string{"messages.jsonl", "messages-3-1.jsonl", "messages-3-2.jsonl"} {
		put(t, dir, n, []byte("another"))
	}
	s := holder(t, dir, 3, journal.Tail{})
	says(t, s, 1, 2)
	require.Equal(t, "messages-3-3.jsonl", s.Tail().File)
	require.Equal(t, count(1, 2), hear(t, dir, s.Tail()))
	require.Equal(t, "another", string(content(t, dir, "messages-3-1.jsonl")))
}

func TestStreamBodyThatIsTooLong(t *testing.T) {
	t.Parallel()
	dir := open(t)
	s := holder(t, dir, 1, journal.Tail{})
	_, err := s.Append(1, [][]byte{say(1), make([]byte, journal.MaxBody+1)})
	require.ErrorIs(t, err, writer.ErrInvalid)
	require.Empty(t, names(t, dir))
	says(t, s, 1, 1)
	require.Equal(t, []int{1}, hear(t, dir, s.Tail()))
}

// What a Tail names is never opened outside the folder, nor what a link leads to.
func TestStreamTailThatLeadsOutside(t *testing.T) {
	t.Parallel()
	dir := open(t)
	for _, file := range []string{"../messages.jsonl", "/etc/passwd", "messages-1-1.jsonl/../../x.jsonl", "messages/../x.jsonl", "journal-1-1.jsonl", "messages-01-1.jsonl", "transcript.jsonl", "", "messages"} {
		to := journal.Tail{File: file, Bytes: 9, Count: 1}
		n := 0
		for _, err := range journal.ReadStream(dir, stream, to) {
			require.ErrorIs(t, err, writer.ErrCorrupt, file)
			n++
		}
		require.Equal(t, 1, n)
		_, err := journal.StreamFiles(dir, stream, to)
		require.ErrorIs(t, err, writer.ErrCorrupt, file)
	}
	for _, to := range []journal.Tail{{File: "messages.jsonl", Bytes: -1}, {File: "messages.jsonl", Bytes: 1<<62 + 1}, {File: "messages.jsonl", Count: 1<<62 + 1}} {
		_, err := journal.StreamFiles(dir, stream, to)
		require.ErrorIs(t, err, writer.ErrCorrupt)
	}
	// The same in a header: it is none, and the record is what is left.
	head := sealed(`{"stream":1,"name":"messages","session":"x","epoch":1,"after":{"file":"../x.jsonl","bytes":9,"count":1}`)
	put(t, dir, "messages.jsonl", []byte(head+sealed(`{"seq":1,"epoch":1,"synced":0,"n":2,"say":"<2>"`)))
	require.Equal(t, []int{-1, 2}, hear(t, dir, journal.Tail{File: "messages.jsonl", Bytes: 1000, Count: 2}))

	put(t, dir, "secret", []byte(sealed(`{"seq":1,"epoch":1,"synced":0,"n":1,"say":"<1>"`)))
	require.NoError(t, os.Symlink("secret", filepath.Join(dir.Name(), "messages-2-1.jsonl")))
	for e, err := range journal.ReadStream(dir, stream, journal.Tail{File: "messages-2-1.jsonl", Bytes: 1000, Count: 1}) {
		require.Error(t, err, "%s", e.Line)
	}
}

// Headers that name each other end, and give each record once.
func TestStreamCycle(t *testing.T) {
	t.Parallel()
	dir := open(t)
	for n, after := range map[int]int{1: 2, 2: 1} {
		put(t, dir, fmt.Sprintf("messages-1-%d.jsonl", n), []byte(
			sealed(fmt.Sprintf(`{"stream":1,"name":"messages","session":"x","epoch":1,"after":{"file":"messages-1-%d.jsonl","bytes":999,"count":%d}`, after, after))+
				sealed(fmt.Sprintf(`{"seq":1,"epoch":1,"synced":0,"n":%d,"say":"<%d>"`, n, n))))
	}
	require.Equal(t, count(1, 2), hear(t, dir, journal.Tail{File: "messages-1-2.jsonl", Bytes: 999, Count: 2}))
	require.Equal(t, []int{1}, hear(t, dir, journal.Tail{File: "messages-1-1.jsonl", Bytes: 999, Count: 1}))
	require.Contains(t, []string{"[1 -1]", "[1 2]"}, fmt.Sprint(hear(t, dir, journal.Tail{File: "messages-1-1.jsonl", Bytes: 999, Count: 2})))
}

func TestStreamOfANewerVersion(t *testing.T) {
	t.Parallel()
	dir := open(t)
	put(t, dir, "messages.jsonl", []byte(sealed(`{"stream":2,"unknown":[1]`)))
	for _, err := range journal.ReadStream(dir, stream, journal.Tail{File: "messages.jsonl", Bytes: 99, Count: 1}) {
		require.ErrorIs(t, err, writer.ErrFutureVersion)
	}
}

// One call fails, whichever it is: what was accepted is there, what was not is
// never read, and the stream goes on.
func TestStreamCallsFail(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		for _, fault := range []crashfs.Fault{{Err: syscall.EIO}, {Err: syscall.ENOSPC, Partial: 40}, {Partial: 40}} {
			for k := 1; ; k++ {
				disk := crashfs.New(mode)
				hit := ""
				disk.SetHook(func(op crashfs.Op) crashfs.Fault {
					if op.N != k || fault.Err == nil && op.Call != "write" || op.Call == "close" {
						return crashfs.Fault{}
					}
					hit = op.Call
					return fault
				})
				s := journal.NewStream(disk.FS(), stream, id, 1, journal.Tail{})
				said := []int{}
				for i := 1; i <= 6; i++ {
					if i == 4 { // the journal refused: nothing of it counts
						_, err := s.Append(1, [][]byte{say(100), say(101)})
						_ = err
						s.GiveUp()
					}
					tail, err := s.Append(1, [][]byte{say(i)})
					if err != nil {
						require.NotEmpty(t, hit)
						require.Equal(t, s.Tail(), tail)
						continue
					}
					s.Accept()
					said = append(said, i)
				}
				if hit != "" {
					require.GreaterOrEqual(t, len(said), 5, hit)
				}
				disk.SetHook(nil)
				require.Equal(t, said, hear(t, disk.FS(), s.Tail()), hit)
				for _, v := range disk.Variants(nil, 0) {
					require.Equal(t, said, hear(t, disk.Crash(v).FS(), s.Tail()), "%s: %s", hit, v.Name)
				}
				if k > 40 {
					break
				}
			}
		}
	}
}

// What was appended and not accepted is void, though it is whole in its file.
func TestStreamIsReadAsFarAsItCounts(t *testing.T) {
	t.Parallel()
	for _, damaged := range []bool{false, true} {
		dir := open(t)
		s := holder(t, dir, 1, journal.Tail{})
		says(t, s, 1, 2)
		_, err := s.Append(2, [][]byte{say(103), say(104), say(105), say(106), say(107)})
		require.NoError(t, err)
		s.GiveUp()
		says(t, s, 3, 4)
		if damaged { // where its file ended is told by the records behind it
			put(t, dir, "messages-1-1.jsonl", flippedAt(content(t, dir, "messages-1-1.jsonl"), 5))
		}
		require.Equal(t, count(1, 4), hear(t, dir, s.Tail()))
	}
}

// The files of a fork are not in the order of their names.
func TestDamagedHeadersInAFork(t *testing.T) {
	t.Parallel()
	src := open(t)
	one := holder(t, src, 1, journal.Tail{})
	says(t, one, 1, 2)
	two := holder(t, src, 2, one.Tail())
	says(t, two, 3, 4)
	fork := journal.NewStream(src, stream, "fork", 1, two.Tail())
	says(t, fork, 5, 6)
	require.NoError(t, fork.Close())
	again := journal.NewStream(src, stream, "fork", 2, fork.Tail())
	to := says(t, again, 7, 8)
	require.NoError(t, again.Close())
	for _, name := range names(t, src) {
		whole := content(t, src, name)
		put(t, src, name, flippedAt(whole, 5))
		require.Equal(t, count(1, 8), hear(t, src, to), name)
		put(t, src, name, nil)
		want := map[string][]int{
			"messages.jsonl":     {-1, 3, 4, 5, 6, 7, 8},
			"messages-2-1.jsonl": {1, 2, -1, 5, 6, 7, 8},
			"messages-1-1.jsonl": {1, 2, 3, 4, -1, 7, 8},
			"messages-2-2.jsonl": {1, 2, 3, 4, 5, 6, -1},
		}[name]
		require.Equal(t, want, hear(t, src, to), name)
		require.NoError(t, os.Remove(filepath.Join(src.Name(), name)))
		require.Equal(t, want, hear(t, src, to), "missing: %s", name)
		put(t, src, name, whole)
	}
}

func TestDamagedRecordsOfAStream(t *testing.T) {
	t.Parallel()
	dir := open(t)
	s := holder(t, dir, 1, journal.Tail{})
	var at []journal.Tail
	for i := 1; i <= 5; i++ {
		tail, err := s.Append(1, [][]byte{fmt.Appendf(nil, `"say":"<%d>","in":[{"seq":1,"epoch":2},{"seq":2}]`, i)})
		require.NoError(t, err)
		s.Accept()
		at = append(at, tail)
	}
	whole := content(t, dir, "messages.jsonl")
	for i := range 5 {
		want := count(1, 5)
		want[i] = -1
		for what, data := range map[string][]byte{
			"line feed": flippedAt(whole, at[i].Bytes-1), // two lines become one
			"flipped":   flippedAt(whole, at[i].Bytes-40),
			"NULs":      append(append(whole[:at[i].Bytes-40:at[i].Bytes-40], make([]byte, 40)...), whole[at[i].Bytes:]...),
		} {
			put(t, dir, "messages.jsonl", data)
			require.Equal(t, want, hear(t, dir, s.Tail()), "%s of %d", what, i+1)
		}
	}
	put(t, dir, "messages.jsonl", append(whole, make([]byte, 100)...))
	require.Equal(t, count(1, 5), hear(t, dir, s.Tail()))
	put(t, dir, "messages.jsonl", whole[:at[2].Bytes])
	require.Equal(t, []int{1, 2, 3, -1}, hear(t, dir, s.Tail()))
}

// The memory for 64 MB of records, and a hole of 200 MB, is that of one line.
func TestLongStreamIsReadWithLittleMemory(t *testing.T) {
	dir := open(t)
	s := holder(t, dir, 1, journal.Tail{})
	pad := strings.Repeat("x", 1<<20)
	var to journal.Tail
	for range 4 {
		var all [][]byte
		for range 16 {
			all = append(all, fmt.Appendf(nil, `"pad":%q`, pad))
		}
		var err error
		to, err = s.Append(1, all)
		require.NoError(t, err)
		s.Accept()
	}
	require.NoError(t, s.Close())
	if !testing.Short() {
		require.NoError(t, os.Truncate(filepath.Join(dir.Name(), to.File), to.Bytes+200<<20))
		to.Bytes, to.Count = to.Bytes+200<<20, to.Count+1
	}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	n, worst := 0, uint64(0)
	for _, err := range journal.ReadStream(dir, stream, to) {
		require.True(t, err == nil || errors.Is(err, journal.ErrDamaged))
		n++
		if n%16 == 0 || err != nil {
			runtime.GC()
			runtime.ReadMemStats(&now)
			worst = max(worst, now.HeapAlloc)
		}
	}
	require.EqualValues(t, to.Count, n)
	require.Less(t, int64(worst)-int64(before.HeapAlloc), int64(48<<20))
}

// TestStreamAgainstModel does what holders, a journal and forks do, in any order.
func TestStreamAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type line struct { // a session: what counts of it, and how far that goes
			s     *journal.Stream
			epoch uint64
			said  []int
			at    []journal.Tail
		}
		dir := crashfs.New(crashfs.Ext4).FS()
		all := []*line{{s: journal.NewStream(dir, stream, "s0", 1, journal.Tail{}), epoch: 1, at: []journal.Tail{{}}}}
		n := 0
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			l := rapid.SampledFrom(all).Draw(t, "session")
			switch step := rapid.IntRange(0, 5).Draw(t, "step"); step {
			case 0, 1, 2:
				var bodies [][]byte
				said := l.said[:len(l.said):len(l.said)]
				for range rapid.IntRange(1, 3).Draw(t, "records") {
					n++
					bodies, said = append(bodies, say(n)), append(said, n)
				}
				at, err := l.s.Append(1, bodies)
				require.NoError(t, err)
				if step == 2 {
					l.s.GiveUp()
					break
				}
				l.s.Accept()
				l.said = said
				for len(l.at) < len(said) {
					l.at = append(l.at, journal.Tail{})
				}
				l.at = append(l.at, at)
			case 3:
				l.s.GiveUp()
			case 4:
				l.epoch++
				l.s = journal.NewStream(dir, stream, "s", l.epoch, l.s.Tail())
			case 5:
				k := rapid.IntRange(0, len(l.at)-1).Draw(t, "fork")
				if k > 0 && l.at[k] == (journal.Tail{}) {
					break
				}
				// Sessions share a folder here: what is a link elsewhere, and names collide.
				all = append(all, &line{s: journal.NewStream(dir, stream, "f", 1, l.at[k]), epoch: 1, said: l.said[:k:k], at: l.at[: k+1 : k+1]})
			}
			for _, l := range all {
				require.Equal(t, append([]int{}, l.said...), hear(t, dir, l.s.Tail()))
			}
		}
	})
}

// Bytes of any kind: no panic, ascending numbers, and every record that is whole
// comes back where the headers are.
func FuzzReadStream(f *testing.F) {
	src := open(f)
	s := holder(f, src, 1, journal.Tail{})
	says(f, s, 1, 3)
	two := holder(f, src, 2, s.Tail())
	to := says(f, two, 4, 5)
	a, b := content(f, src, "messages.jsonl"), content(f, src, "messages-2-1.jsonl")
	for _, whole := range []bool{true, false} {
		f.Add(a, b, to.Bytes, to.Count, whole)
		f.Add(a[:len(a)-30], b, to.Bytes, to.Count, whole)
		f.Add(a, b[:90], to.Bytes, to.Count, whole)
		f.Add(b, a, int64(1)<<40, uint64(1)<<40, whole)
		f.Add(make([]byte, 100), b[1:], int64(-1), uint64(9), whole)
		f.Add([]byte{}, []byte("\n\n"), int64(0), uint64(0), whole)
	}
	f.Fuzz(func(t *testing.T, one, two []byte, length int64, upto uint64, whole bool) {
		if whole {
			one, two = reseal(one), reseal(two)
		}
		dir := open(t)
		put(t, dir, "messages.jsonl", one)
		put(t, dir, "messages-2-1.jsonl", two)
		last, holes := uint64(0), 0
		for e, err := range journal.ReadStream(dir, stream, journal.Tail{File: "messages-2-1.jsonl", Bytes: length, Count: upto}) {
			if err != nil {
				require.True(t, errors.Is(err, journal.ErrDamaged) || errors.Is(err, writer.ErrFutureVersion) || errors.Is(err, writer.ErrCorrupt), "%v", err)
				holes++
				continue
			}
			require.Greater(t, e.N, last)
			require.LessOrEqual(t, e.N, upto, "within the Tail")
			require.Equal(t, e.N, e.Tail.Count)
			last = e.N
		}
		require.LessOrEqual(t, holes, len(one)+len(two)+1)
		require.LessOrEqual(t, last, upto)
		_, err := journal.StreamFiles(dir, stream, journal.Tail{File: "messages-2-1.jsonl", Bytes: length, Count: upto})
		require.False(t, errors.Is(err, fs.ErrNotExist))

		// Whatever stands before and behind them, intact records of a file are all read.
		good := []byte(sealed(`{"stream":1,"name":"messages","session":"x","epoch":3`))
		for i := 1; i <= 3; i++ {
			good = append(good, sealed(fmt.Sprintf(`{"seq":1,"epoch":3,"synced":0,"n":%d,"say":"<%d>"`, i, i))...)
		}
		size := int64(len(good))
		put(t, dir, "messages-3-1.jsonl", append(good, one...))
		require.Equal(t, count(1, 3), hear(t, dir, journal.Tail{File: "messages-3-1.jsonl", Bytes: size, Count: 3}))
	})
}
