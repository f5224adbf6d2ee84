package journal_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/journal"
)

// smallSegment is the limit of segments in these tests, in bytes.
const smallSegment = 3000

func held() error { return nil }

// A past is a journal that is written in several epochs.
type past struct {
	t     require.TestingT
	how   codec.Options // of packAll
	dir   writer.FS
	w     *journal.Writer
	n     int
	named []journal.Named
}

func newPast(t require.TestingT, dir writer.FS) *past {
	w, err := journal.Create(dir, "auth-20260214-1")
	require.NoError(t, err)
	w.Limit = smallSegment
	return &past{t: t, dir: dir, w: w}
}

// work appends messages, changes and notes.
func (p *past) work(times int) {
	for range times {
		p.n++
		at, err := p.w.Append(
			journal.Record{Body: fmt.Appendf(nil, `"message":"%d %x"`, p.n, rand.New(rand.NewPCG(7, uint64(p.n))).Uint64()), Entry: true},
			journal.Record{Body: fmt.Appendf(nil, `"attempt":%d,"change":"%s"`, p.n, strings.Repeat("x", 300))})
		require.NoError(p.t, err)
		if p.n%3 == 0 {
			n := journal.Named{File: fmt.Sprint(p.n), Epoch: at.Epoch, Seq: at.Seq, SHA256: fmt.Sprintf("%064x", p.n)}
			p.named = append(p.named, n)
			require.NoError(p.t, p.w.Note(n))
		}
	}
}

// resume opens the journal again, as the next process does.
func (p *past) resume() {
	log, err := journal.Read(p.dir, 0, true)
	require.NoError(p.t, err)
	p.w, err = journal.Open(p.dir, "auth-20260214-1", log)
	require.NoError(p.t, err)
	p.w.Limit = smallSegment
}

func (p *past) packAll() {
	p.w.Compression = p.how
	for done := true; done; {
		var err error
		done, err = p.w.Pack(smallSegment, held)
		require.NoError(p.t, err)
	}
}

// drop drops everything before the last fromEnd segments.
func (p *past) drop(fromEnd int) error {
	all, err := p.w.Segments(held)
	require.NoError(p.t, err)
	return p.w.Drop(all[max(len(all)-fromEnd, 0)], keepAttempts, held)
}

// keepAttempts keeps only the number of an attempt, and drops other records.
func keepAttempts(line []byte) ([]byte, error) {
	_, rest, ok := bytes.Cut(line, []byte(`"attempt":`))
	if !ok {
		return nil, nil
	}
	number, _, _ := bytes.Cut(rest, []byte(","))
	return fmt.Appendf(nil, `"attempt":%s`, number), nil
}

// linesOf returns the lines of all records that count, by number.
func linesOf(t require.TestingT, dir writer.FS) (map[uint64]string, *journal.Log) {
	log, err := journal.Read(dir, 0, true)
	require.NoError(t, err)
	all := map[uint64]string{}
	require.NoError(t, log.Lines(log.Records, func(r *journal.Ref, line []byte) error {
		all[r.Seq] = string(line)
		return nil
	}))
	return all, log
}

// reducedLine returns what Drop leaves of a line.
func reducedLine(line string) string {
	for _, part := range []string{`"message":"`, `"attempt":`} {
		if _, rest, ok := strings.Cut(line, part); ok {
			value, _, _ := strings.Cut(rest, ",")
			return part + value
		}
	}
	return line
}

// same returns an error unless all records are there. Those below begin may be reduced, as
// Drop leaves them.
func same(want, got map[uint64]string, begin uint64) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d records in place of %d", len(got), len(want))
	}
	for seq, line := range want {
		if has := got[seq]; has != line && (seq >= begin || reducedLine(has) != reducedLine(line) || strings.Contains(has, "change")) {
			return fmt.Errorf("record %d is %s, not %s", seq, has, line)
		}
	}
	return nil
}

func segmentNames(t require.TestingT, dir writer.FS) (all []string) {
	entries, err := dir.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func pastOf(t require.TestingT, dir writer.FS) *past {
	p := newPast(t, dir)
	p.work(30)
	p.resume()
	p.work(2)
	p.resume()
	p.work(20)
	return p
}

func TestPackedSegmentsHoldTheSame(t *testing.T) {
	t.Parallel()
	for how, suffix := range map[string]string{"": ".zst", "zstd": ".zst", "gzip": ".gz", "none": ".gz"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			packedSegmentsHoldTheSame(t, codec.Options{Codec: how}, suffix)
		})
	}
}

func packedSegmentsHoldTheSame(t *testing.T, how codec.Options, suffix string) {
	disk := crashfs.New(crashfs.Ext4)
	p := pastOf(t, disk.FS())
	p.how = how
	want, before := linesOf(t, p.dir)
	require.Empty(t, before.Faults)
	p.packAll()
	got, log := linesOf(t, p.dir)
	require.Equal(t, want, got)
	require.Empty(t, log.Faults)
	require.NoError(t, log.ListErr)
	require.Zero(t, log.Lost)
	require.EqualValues(t, 1, log.Begin())
	for _, n := range p.named {
		require.True(t, log.Named(n), "%v", n)
	}
	plain, packed := 0, 0
	for _, n := range segmentNames(t, p.dir) {
		switch {
		case strings.HasSuffix(n, suffix):
			packed++
		case journal.IsSegment(n):
			plain++
		default:
			require.Equal(t, journal.ListFile, n)
		}
	}
	require.Greater(t, packed, 2)
	require.LessOrEqual(t, plain, 2, "the current one, and what is not half a segment")
	require.Equal(t, before.Last(), log.Last())
	require.Equal(t, before.Durable(), log.Durable())
	for base := range before.Last() + 1 { // reading from any base gives the same records
		log, err := journal.Read(p.dir, base, false)
		require.NoError(t, err)
		require.Zero(t, log.Lost)
		require.Len(t, log.Above(base), int(before.Last()-base), "base %d", base)
	}

	p.work(3)
	p.resume()
	p.work(20)
	p.packAll()
	got, log = linesOf(t, p.dir)
	require.Len(t, got, 2*p.n)
	require.Empty(t, log.Faults)
	require.NoError(t, same(want, maps.Collect(func(yield func(uint64, string) bool) {
		for seq := range want {
			yield(seq, got[seq])
		}
	}), 0))
}

func TestDroppedRecordsLeaveTheirEntries(t *testing.T) {
	t.Parallel()
	p := pastOf(t, crashfs.New(crashfs.Ext4).FS())
	want, before := linesOf(t, p.dir)
	p.packAll()
	require.NoError(t, p.drop(4))
	begin := uint64(0)
	for range 2 {
		got, log := linesOf(t, p.dir)
		require.Greater(t, log.Begin(), begin)
		begin = log.Begin()
		require.NoError(t, same(want, got, begin))
		require.Empty(t, log.Faults)
		require.NoError(t, log.ListErr)
		require.Zero(t, log.Lost)
		require.Equal(t, before.Last(), log.Last())
		require.EqualValues(t, 1, log.Records[0].Seq)
		p.packAll()
		require.NoError(t, p.drop(1)) // makes a second reduced segment
	}
	all, err := p.w.Segments(held)
	require.NoError(t, err)
	require.Len(t, all, 3)
	require.True(t, all[0].Reduced() && all[1].Reduced())
	require.NoError(t, p.drop(1), "nothing is left to drop")
	p.resume()
	p.work(1)
	got, log := linesOf(t, p.dir)
	require.Len(t, got, 2*p.n)
	require.Equal(t, begin, log.Begin())
	require.Empty(t, log.Faults)
}

// TestDropKeepsTheCodecOfAName drops records in the way that is not the one in which they were
// compressed. The rename replaces the newest of the files: else two would have one number.
func TestDropKeepsTheCodecOfAName(t *testing.T) {
	t.Parallel()
	for was, now := range map[string]string{"gzip": "zstd", "zstd": "none"} {
		disk := crashfs.New(crashfs.Ext4)
		p := pastOf(t, disk.FS())
		p.how.Codec = was
		p.packAll()
		want, _ := linesOf(t, p.dir)
		p.w.Compression.Codec = now
		disk.SetHook(func(op crashfs.Op) crashfs.Fault {
			if op.N == 0 || op.Call == "write" {
				return crashfs.Fault{}
			}
			for _, v := range disk.Variants(nil, 0) {
				got, log := linesOf(t, disk.Crash(v).FS())
				require.NoError(t, same(want, got, log.Begin()), "%s %s, %s", op.Call, op.Name, v.Name)
				require.Empty(t, log.Faults, "%s %s, %s", op.Call, op.Name, v.Name)
			}
			return crashfs.Fault{}
		})
		require.NoError(t, p.drop(3))
		disk.SetHook(nil)
		seen := map[string]bool{}
		for _, n := range segmentNames(t, p.dir) {
			plain, c := codec.Cut(n)
			require.False(t, seen[plain], n)
			seen[plain] = true
			require.NotEqual(t, now, string(c), n)
		}
	}
}

// TestPowerCutWhileSegmentsAreRewritten cuts the power before every call, in every variant,
// and resumes from what is left.
func TestPowerCutWhileSegmentsAreRewritten(t *testing.T) {
	t.Parallel()
	for _, mode := range []crashfs.Mode{crashfs.Ext4, crashfs.XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			disk := crashfs.New(mode)
			p := newPast(t, disk.FS())
			// Who resumes after the cut compresses in another way than who was cut off.
			how, other := codec.Options{}, codec.Options{Codec: "gzip"}
			if mode == crashfs.XFS {
				how, other = other, how
			}
			p.how = how
			p.work(8)
			p.resume()
			p.work(2)
			p.resume()
			p.work(9)
			want, _ := linesOf(t, p.dir)
			images := 0
			check := func(at string) {
				for _, v := range disk.Variants(nil, 0) {
					images++
					left := &past{t: t, how: other, dir: disk.Crash(v).FS(), n: p.n}
					look := func() {
						got, log := linesOf(t, left.dir)
						require.NoError(t, same(want, got, log.Begin()), "%s, %s", at, v.Name)
						require.Zero(t, log.Lost)
						for _, f := range log.Faults { // a torn note is no damage
							require.NotEqual(t, journal.Damaged, f.Kind, "%s, %s: %s", at, v.Name, f)
						}
						require.NoError(t, log.ListErr)
						seen := uint64(0)
						for part, err := range journal.Parts(left.dir) {
							require.NoError(t, err)
							for _, r := range part.Records {
								require.Greater(t, r.Seq, seen, "%s, %s: each record is in one part", at, v.Name)
								seen = r.Seq
							}
						}
						require.Equal(t, log.Last(), seen)
					}
					look()
					left.resume()
					left.packAll()
					look()
					seen := map[string]bool{}
					for _, n := range segmentNames(t, left.dir) {
						plain, _ := codec.Cut(n)
						require.False(t, seen[plain], "%s, %s: %s is there twice", at, v.Name, plain)
						seen[plain] = true
					}
				}
			}
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				if op.N > 0 {
					check(fmt.Sprintf("before %d %s %s", op.N, op.Call, op.Name))
				}
				return crashfs.Fault{}
			})
			p.w.Compression = how
			done, err := p.w.Pack(5*smallSegment, held)
			require.NoError(t, err)
			require.True(t, done, "several become one")
			p.packAll()
			p.w.Compression = other // the newest segment that Drop replaces keeps its name
			require.NoError(t, p.drop(2))
			disk.SetHook(nil)
			check("at the end")
			t.Log(images, "images")
		})
	}
}

// TestFailedRewrite fails each call once. Nothing is lost, and the next rewrite succeeds.
func TestFailedRewrite(t *testing.T) {
	t.Parallel()
	for i, fault := range []crashfs.Fault{{Err: syscall.EIO}, {Err: syscall.ENOSPC, Partial: 30}, {Partial: 30}} {
		for k := 1 + i%2; ; k += 2 { // the second fault hits the calls that the others skip
			disk := crashfs.New(crashfs.XFS)
			p := newPast(t, disk.FS())
			p.work(20)
			want, _ := linesOf(t, p.dir)
			hit, n := "", 0
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				if n++; n != k || fault.Err == nil && op.Call != "write" {
					return crashfs.Fault{}
				}
				hit = op.Call
				return fault
			})
			done, err := p.w.Pack(smallSegment, held)
			for done && err == nil {
				done, err = p.w.Pack(smallSegment, held)
			}
			if err == nil {
				err = p.drop2(disk)
			}
			disk.SetHook(nil)
			if hit != "" && fault.Err != nil && hit != "close" && hit != "remove" && hit != "read" && hit != "lstat" {
				require.Error(t, err, "call %d, %s", k, hit)
			}
			got, log := linesOf(t, p.dir)
			require.NoError(t, same(want, got, log.Begin()), "call %d, %s", k, hit)
			require.Empty(t, log.Faults)
			p.packAll()
			p.work(1)
			_, log = linesOf(t, p.dir)
			require.Empty(t, log.Faults)
			if n < k {
				break
			}
		}
	}
}

// drop2 is drop that returns every error, because a hook may fail the calls.
func (p *past) drop2(*crashfs.Disk) error {
	all, err := p.w.Segments(held)
	if err != nil {
		return err
	}
	return p.w.Drop(all[len(all)-1], keepAttempts, held)
}
