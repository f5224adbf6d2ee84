package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// A given line is one that a Tail gave.
type given struct {
	seq  uint64
	line string
}

// follow reads what a Tail has up to a record.
func follow(t require.TestingT, tail *journal.Tail, upto uint64) (all []given) {
	require.NoError(t, tail.Read(upto, func(r *journal.Ref, line []byte) error {
		all = append(all, given{r.Seq, string(line)})
		return nil
	}))
	require.GreaterOrEqual(t, tail.Last(), upto)
	return all
}

// A tailed journal is written at random while Tails read it.
type tailed struct {
	*past
	disk *crashfs.Disk
	rng  *rand.Rand
	want map[uint64]string // the line of each acknowledged record, as it was first read
}

func newTailed(t require.TestingT, seed uint64) *tailed {
	disk := crashfs.New(crashfs.Ext4)
	j := &tailed{past: newPast(t, disk.FS()), disk: disk, rng: rand.New(rand.NewPCG(seed, 1)), want: map[uint64]string{}}
	j.acknowledged()
	return j
}

// acknowledged remembers the lines that a Writer acknowledged. Each record has another content, so
// that one that was given up is never taken for the one that has its number.
func (j *tailed) acknowledged() {
	all, _ := linesOf(j.t, j.dir)
	for seq, line := range all {
		if _, known := j.want[seq]; !known && seq <= j.w.Last().Seq {
			j.want[seq] = line
		}
	}
}

// step changes the journal.
func (j *tailed) step() {
	switch j.rng.IntN(9) {
	case 0:
		j.packAll()
	case 1:
		require.NoError(j.t, j.drop(1+j.rng.IntN(5)))
	case 2:
		j.resume()
	case 3:
		j.w.Full()
	case 4, 5:
		j.givesUp(1 + j.rng.IntN(3))
		if j.rng.IntN(3) == 0 {
			j.resume() // which may find what was given up, and then it counts
		} else {
			require.NoError(j.t, j.w.Reopen())
		}
	default:
		j.work(1 + j.rng.IntN(12))
		if j.rng.IntN(2) == 0 {
			j.n++ // Drop leaves nothing of it
			_, err := j.w.Append(journal.Record{Body: fmt.Appendf(nil, `"plain":%d,"change":1`, j.n)})
			require.NoError(j.t, err)
		}
	}
	j.acknowledged()
}

// givesUp appends records of which the sync fails: they stay in the segment, and do not count.
func (j *tailed) givesUp(records int) {
	j.disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	})
	defer j.disk.SetHook(nil)
	var all []journal.Record
	for range records {
		j.n++
		all = append(all, journal.Record{Body: fmt.Appendf(nil, `"message":"void %d"`, j.n), Entry: true})
	}
	_, err := j.w.Append(all...)
	require.Error(j.t, err)
}

// requireFollowed says that a Tail gave what the journal has between two records.
func (j *tailed) requireFollowed(got []given, last, upto uint64) {
	now, log := linesOf(j.t, j.dir)
	maps.DeleteFunc(now, func(seq uint64, _ string) bool { return seq <= last || seq > upto })
	var want []given
	for _, seq := range slices.Sorted(maps.Keys(now)) {
		line := now[seq]
		if seq >= log.Begin() {
			line = j.want[seq]
		}
		want = append(want, given{seq, line})
	}
	require.Equal(j.t, want, got, "between record %d and %d; all are there from %d", last, upto, log.Begin())
}

// TestTail writes journals at random. Each of some Tails, which begin at any record, gives every
// record that was acknowledged once, in order and byte for byte.
func TestTail(t *testing.T) {
	t.Parallel()
	seeds := uint64(12)
	if *deep {
		seeds = 1000
	}
	for seed := range seeds {
		j := newTailed(t, seed)
		tails := []*journal.Tail{journal.NewTail(j.dir, 0), journal.NewTail(j.dir, 0)}
		for range 30 {
			j.step()
			end := j.w.Last().Seq
			if j.rng.IntN(6) == 0 {
				tails = append(tails, journal.NewTail(j.dir, j.rng.Uint64N(end+1)))
			}
			for i, tail := range tails {
				if i > 0 && j.rng.IntN(2) == 0 {
					continue
				}
				last, upto := tail.Last(), end
				if i > 1 && end > last {
					upto = last + j.rng.Uint64N(end-last+1)
				}
				got := follow(t, tail, upto)
				j.requireFollowed(got, last, upto)
			}
		}
	}
}

// What a failed sync left in the segment has the number of a record that is acknowledged in the next
// segment. A Tail that is in the middle of the first one does not give it.
func TestTailPassesWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	for _, records := range []int{1, 2} {
		j := newTailed(t, 1)
		j.work(2)
		tail := journal.NewTail(j.dir, 0)
		follow(t, tail, 3)
		j.givesUp(records)
		last := j.w.Last().Seq
		require.Len(t, follow(t, tail, last), 1, "it does not read beyond what was acknowledged")
		require.NoError(t, j.w.Reopen())
		require.Empty(t, follow(t, tail, last))
		j.work(1)
		j.acknowledged()
		got := follow(t, tail, j.w.Last().Seq)
		require.Len(t, got, 2)
		for _, g := range got {
			require.NotContains(t, g.line, "void")
			require.Equal(t, j.want[g.seq], g.line)
		}
	}
}

// A Tail reads on where it was, not from the begin of the segment or of the log.
func TestTailReadsWhatIsNew(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	p := newPast(t, disk.FS())
	p.w.Limit = 1 << 20
	p.work(1000)
	tail := journal.NewTail(p.dir, 0)
	follow(t, tail, p.w.Last().Seq)
	p.work(2)
	bytes := 0
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "read" {
			bytes += op.Bytes
		}
		return crashfs.Fault{}
	})
	require.Len(t, follow(t, tail, p.w.Last().Seq), 4)
	require.LessOrEqual(t, bytes, 256<<10, "of a segment of 400 KiB and more")
	bytes = 0
	require.Empty(t, follow(t, tail, p.w.Last().Seq))
	require.Zero(t, bytes)
}

// A record that was refused counts as not read.
func TestTailGivesAgainWhatWasRefused(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		p := newPast(t, crashfs.New(crashfs.Ext4).FS())
		p.work(2)
		tail := journal.NewTail(p.dir, 0)
		if again { // in the middle of a segment
			follow(t, tail, 1)
		}
		full := errors.New("full")
		err := tail.Read(4, func(r *journal.Ref, _ []byte) error {
			if r.Seq == 3 {
				return full
			}
			return nil
		})
		require.ErrorIs(t, err, full)
		require.EqualValues(t, 2, tail.Last())
		got := follow(t, tail, 4)
		require.EqualValues(t, 3, got[0].seq)
		require.Len(t, got, 2)
	}
}

// TestTailOfADamagedLog damages each record that is to come, with some before it, or takes their lines
// away. What is before them may be given, nothing behind them is.
func TestTailOfADamagedLog(t *testing.T) {
	t.Parallel()
	const end = 10 // with no note behind it
	for lost := uint64(3); lost <= end; lost++ {
		for many := range uint64(3) {
			for _, last := range []uint64{0, 2, lost - many - 1, lost - 1} {
				for _, gone := range []bool{false, true} {
					p := newPast(t, open(t))
					p.work(end / 2)
					if lost%3 == 0 {
						p.resume()
					}
					tail := journal.NewTail(p.dir, last)
					if last > 2 {
						tail = journal.NewTail(p.dir, 0)
						follow(t, tail, last)
					}
					for seq := lost - many; seq <= lost; seq++ {
						damage(t, p.dir, seq, gone)
					}
					got := []uint64{}
					err := tail.Read(end, func(r *journal.Ref, _ []byte) error {
						got = append(got, r.Seq)
						return nil
					})
					about := fmt.Sprintf("above record %d, %d to %d are lost (%v)", last, lost-many, lost, gone)
					require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "%s: gave %d, %v", about, got, err)
					for i, seq := range got {
						require.Equal(t, last+uint64(i)+1, seq, about)
						require.Less(t, seq, lost-many, about)
					}
				}
			}
		}
	}
}

// damage damages a record in each segment that has it, or takes its line away.
func damage(t *testing.T, dir writer.FS, seq uint64, gone bool) {
	t.Helper()
	for _, name := range segmentNames(t, dir) {
		if !journal.IsSegment(name) {
			continue
		}
		lines := bytes.SplitAfter(text(t, dir, name), []byte("\n"))
		for i, line := range lines {
			switch {
			case !bytes.HasPrefix(line, fmt.Appendf(nil, `{"seq":%d,`, seq)):
			case gone:
				lines[i] = nil
			default:
				lines[i] = flippedAt(line, 30)
			}
		}
		put(t, dir, name, bytes.Join(lines, nil))
	}
}

// An entry that is damaged below what was dropped is left out: others are as well.
func TestTailOfDamageBelowTheBegin(t *testing.T) {
	t.Parallel()
	p := newPast(t, open(t))
	p.work(20)
	require.NoError(t, p.drop(1))
	begin := read(t, p.dir, 0).Begin()
	require.Greater(t, begin, uint64(4))
	names := segmentNames(t, p.dir)
	name := names[slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, ".zst") })]
	data := content(t, p.dir, name)
	require.NoError(t, writer.ReplaceFile(p.dir, name, flippedAt(data, int64(len(data))-20), 0o600))
	require.NotEmpty(t, read(t, p.dir, 0).Faults)
	tail := journal.NewTail(p.dir, 0)
	got := follow(t, tail, 40)
	require.Equal(t, begin, tail.Begin())
	require.Equal(t, begin, got[0].seq)
	require.Len(t, got, int(41-begin))
}

// The segment that has the records is gone.
func TestTailOfAMissingSegment(t *testing.T) {
	t.Parallel()
	dir := open(t)
	p := newPast(t, dir)
	p.work(20)
	tail := journal.NewTail(dir, 0)
	follow(t, tail, 2)
	require.NoError(t, dir.Remove("journal-1-2.jsonl"))
	err := tail.Read(40, func(*journal.Ref, []byte) error { return nil })
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
}

// TestTailMeanwhile has a Tail read while one goroutine appends, with syncs that fail, and another
// one packs.
func TestTailMeanwhile(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	w, err := journal.Create(disk.FS(), id)
	require.NoError(t, err)
	w.Limit = smallSegment
	var acked atomic.Uint64
	var syncs atomic.Int64
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "datasync" && syncs.Add(1)%7 == 0 {
			return crashfs.Fault{Err: syscall.EIO}
		}
		return crashfs.Fault{}
	})
	const last = 1500
	stop := make(chan struct{})
	var others sync.WaitGroup
	var failed [2]error
	want := map[uint64]string{} // the content of each record. Owned by the first goroutine until it ends.
	others.Go(func() {
		defer close(stop)
		rng := rand.New(rand.NewPCG(1, 2))
		for n := 0; acked.Load() < last && failed[0] == nil; {
			var all []journal.Record
			var texts []string
			for range 1 + rng.IntN(5) {
				n++
				texts = append(texts, fmt.Sprintf(`"message":"%d %0100d"`, n, n))
				all = append(all, journal.Record{Body: []byte(texts[len(texts)-1]), Entry: true})
			}
			first := w.Last().Seq + 1
			at, err := w.Append(all...)
			if err != nil {
				for w.Reopen() != nil {
				}
				continue
			}
			for i, text := range texts {
				want[first+uint64(i)] = text
			}
			acked.Store(at.Seq)
		}
	})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := w.Pack(smallSegment, held); err != nil {
				failed[1] = err
				return
			}
		}
	})
	got := map[uint64]string{}
	tail := journal.NewTail(disk.FS(), 0)
	for tail.Last() < last {
		for _, g := range follow(t, tail, acked.Load()) {
			require.NotContains(t, got, g.seq)
			got[g.seq] = g.line
		}
	}
	others.Wait()
	require.Equal(t, [2]error{}, failed)
	for seq := range got {
		require.Contains(t, got[seq], want[seq], "record %d", seq)
		require.NotEmpty(t, want[seq])
	}
	require.GreaterOrEqual(t, len(got), last)
	require.EqualValues(t, len(got), tail.Last())
}
