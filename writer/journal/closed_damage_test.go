package journal_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
	"github.com/lopen-dev/lopen/writer/envelope"
	"github.com/lopen-dev/lopen/writer/journal"
)

// TestEveryByteOfAPackedSegment flips each byte, or without -deep each third one. Only the
// records of one frame are lost, and the faults report them.
func TestEveryByteOfAPackedSegment(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		drop, how := i%2 == 1, []codec.Codec{codec.Zstd, codec.Gzip}[i/2]
		t.Run(fmt.Sprintf("drop=%v %s", drop, how), func(t *testing.T) {
			t.Parallel()
			dir := crashfs.New(crashfs.Ext4).FS()
			p := newPast(t, dir)
			p.w.Limit, p.w.Compression.Codec = 1<<20, string(how)
			rng := rand.New(rand.NewPCG(1, 1))
			for i := range 30 {
				text := ""
				for range 20 {
					text += strings.Repeat(fmt.Sprintf("%x", rng.Uint64()), 16)
				}
				_, err := p.w.Append(journal.Record{Body: fmt.Appendf(nil, `"message":%q`, text), Entry: i%2 == 0})
				require.NoError(t, err)
			}
			p.w.Full()
			p.work(1)
			_, err := p.w.Pack(1, held)
			require.NoError(t, err)
			if drop {
				require.NoError(t, p.drop(1))
			}
			want, log := linesOf(t, dir)
			require.Empty(t, log.Faults)
			file := "journal-1-1.jsonl" + how.Suffix()
			data, err := writer.ReadFile(dir, file, 1<<20)
			require.NoError(t, err)
			frames := bytes.Count(data, how.LeadMark())
			f, err := dir.OpenFile(file, os.O_RDWR, 0)
			require.NoError(t, err)
			zeros := 0
			lost := map[string]bool{} // the sets of records that one flip costs
			for at := range data {
				if !*deep && at%3 > 0 {
					continue
				}
				_, err = f.WriteAt([]byte{data[at] ^ 1<<(at%8)}, int64(at))
				require.NoError(t, err)
				log, err := journal.Read(dir, 0, true)
				require.NoError(t, err)
				_, err = f.WriteAt(data[at:at+1], int64(at))
				require.NoError(t, err)
				missing := maps.Clone(want)
				for _, r := range log.Records {
					require.Contains(t, missing[r.Seq], `"crc":"`+r.CRC, "byte %d", at)
					delete(missing, r.Seq)
				}
				requireGaps(t, log, slices.Sorted(maps.Keys(missing)), "byte %d", at)
				if len(log.Faults) == 0 {
					zeros++ // the flip hit the zeros behind a mark, which mean nothing
					require.Empty(t, missing, "byte %d", at)
					continue
				}
				require.Len(t, log.Faults, 1, "byte %d", at)
				require.Equal(t, journal.Damaged, log.Faults[0].Kind)
				require.Equal(t, file, log.Faults[0].Segment)
				if len(missing) > 0 {
					require.Equal(t, drop, log.Lost == 0, "byte %d", at) // the State needs no reduced record
					lost[fmt.Sprint(slices.Sorted(maps.Keys(missing)))] = true
				}
			}
			require.Less(t, zeros, 1000, "of the header")
			require.Len(t, lost, frames-1, "%v", lost)
			all := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(fmt.Sprint(slices.Collect(maps.Keys(lost)))))
			if require.Greater(t, frames, 1); !drop {
				require.Equal(t, 3, frames)
				require.Len(t, all, 30, "each record is in one frame")
			}
		})
	}
}

// TestDamagedSegmentsStay shows that damaged segments are not rewritten: there is no other
// copy of their records.
func TestDamagedSegmentsStay(t *testing.T) {
	t.Parallel()
	p := newPast(t, crashfs.New(crashfs.Ext4).FS())
	p.work(20)
	const file = "journal-1-2.jsonl"
	data, err := writer.ReadFile(p.dir, file, 1<<20)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, writer.ReplaceFile(p.dir, file, data, 0o600))
	want, before := linesOf(t, p.dir)
	require.NotZero(t, before.Lost)
	p.packAll()
	require.Contains(t, segmentNames(t, p.dir), file)
	require.Contains(t, segmentNames(t, p.dir), "journal-1-1.jsonl.zst")
	got, log := linesOf(t, p.dir)
	require.Equal(t, want, got)
	require.Equal(t, before.Lost, log.Lost)
	require.Equal(t, before.Faults, log.Faults)
	require.ErrorIs(t, p.drop(1), envelope.ErrCorrupt)
	got, _ = linesOf(t, p.dir)
	require.Equal(t, want, got)
}

// TestForeignPackedSegment reads a small segment that would decompress to gigabytes.
func TestForeignPackedSegment(t *testing.T) {
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	pair := func(content []byte, size int) []byte {
		frame := z.EncodeAll(content, nil)
		var out []byte
		for _, n := range []uint32{0x184D2A5B, 16, uint32(len(frame)), uint32(size), crc32.Checksum(frame, crc32.MakeTable(crc32.Castagnoli))} {
			out = binary.LittleEndian.AppendUint32(out, n)
		}
		return append(binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli))), frame...)
	}
	zeros := make([]byte, 16<<20)
	gzips := codec.Options{Codec: "gzip"}.Encoder()
	var bomb bytes.Buffer
	w := gzips.Writer(&bomb)
	_, _ = w.Write(zeros)
	require.NoError(t, w.Close())
	member := func(size int) []byte { // a pair of gzip
		out := gzips.Codec.Lead(16)
		for _, n := range []uint32{uint32(bomb.Len()), uint32(size), envelope.Sum(bomb.Bytes())} {
			out = binary.LittleEndian.AppendUint32(out, n)
		}
		return slices.Concat(envelope.LittleEndian.Append(out), gzips.Codec.Tail(), bomb.Bytes())
	}
	for name, data := range map[string][]byte{
		"bombs.gz":               bytes.Repeat(member(len(zeros)), 50),
		"bombs that say less.gz": bytes.Repeat(member(100), 50),
		"no marks.gz":            bytes.Repeat(gzips.Codec.LeadMark(), 1<<17),
		"zeros.gz":               make([]byte, 1<<20),
		"bombs":                  bytes.Repeat(pair(zeros, len(zeros)), 1000),
		"bombs that say less":    bytes.Repeat(pair(zeros, 100), 1000),
		"marks alone":            bytes.Repeat(pair(nil, 0), 100_000),
		"marks of frames that are not there": bytes.Repeat(func() []byte {
			mark := pair(nil, 0)[:24]
			binary.LittleEndian.PutUint32(mark[8:], 20<<20)
			return mark
		}(), 100_000),
		"no marks": bytes.Repeat([]byte{0x5b, 0x2a, 0x4d, 0x18}, 1<<18),
		"zeros":    make([]byte, 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashfs.New(crashfs.Ext4).FS()
			newPast(t, dir).work(1)
			suffix := codec.Zstd.Suffix()
			if strings.HasSuffix(name, codec.Gzip.Suffix()) {
				suffix = codec.Gzip.Suffix()
			}
			require.NoError(t, writer.ReplaceFile(dir, "journal-1-1.jsonl"+suffix, data, 0o600))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			log, err := journal.Read(dir, 0, true)
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
			require.Empty(t, log.Records[2:])
			for _, f := range log.Faults {
				require.LessOrEqual(t, f.Length, int64(len(data)+1000), "what comes of it is no longer")
			}
		})
	}
}

// TestPackedSegmentIsAllThatIsLeft shows that the header of a packed segment suffices to
// find out whether records of the State are lost.
func TestPackedSegmentIsAllThatIsLeft(t *testing.T) {
	t.Parallel()
	p := newPast(t, crashfs.New(crashfs.Ext4).FS())
	p.work(20)
	done, err := p.w.Pack(3*smallSegment, held)
	require.NoError(t, err)
	require.True(t, done)
	packed := ""
	for _, n := range segmentNames(t, p.dir) {
		if strings.HasSuffix(n, ".zst") {
			packed = n
			continue
		}
		require.NoError(t, p.dir.Remove(n))
	}
	whole, _ := linesOf(t, p.dir)
	data, err := writer.ReadFile(p.dir, packed, 1<<20)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	require.NoError(t, writer.ReplaceFile(p.dir, packed, data, 0o600))
	got, log := linesOf(t, p.dir)
	require.Less(t, len(got), len(whole))
	require.EqualValues(t, len(got)+1, log.Lost)
	require.EqualValues(t, len(whole), log.Last(), "their numbers are taken")
}

// TestDamagedPackedSegmentTakesNoPlace shows that the originals stay while the packed
// segment is damaged.
func TestDamagedPackedSegmentTakesNoPlace(t *testing.T) {
	t.Parallel()
	p := newPast(t, crashfs.New(crashfs.Ext4).FS())
	p.work(20)
	const file = "journal-1-1.jsonl"
	plain, err := writer.ReadFile(p.dir, file, 1<<20)
	require.NoError(t, err)
	done, err := p.w.Pack(smallSegment, held)
	require.NoError(t, err)
	require.True(t, done)
	packed, err := writer.ReadFile(p.dir, file+".zst", 1<<20)
	require.NoError(t, err)
	require.NoError(t, writer.ReplaceFile(p.dir, file, plain, 0o600)) // as if a crash came before its removal
	packed[len(packed)-1] ^= 1
	require.NoError(t, writer.ReplaceFile(p.dir, file+".zst", packed, 0o600))
	p.packAll()
	require.Contains(t, segmentNames(t, p.dir), file)
	log, err := journal.Salvage(p.dir, "auth-20260214-1")
	require.NoError(t, err)
	require.Len(t, log.Records, 2*p.n)

	packed[len(packed)-1] ^= 1
	require.NoError(t, writer.ReplaceFile(p.dir, file+".zst", packed, 0o600))
	p.packAll()
	require.NotContains(t, segmentNames(t, p.dir), file)
	_, log = linesOf(t, p.dir)
	require.Empty(t, log.Faults)
	require.Len(t, log.Records, 2*p.n)
}
