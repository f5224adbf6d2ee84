package blob

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// packOf returns the bytes of a pack with contents.
func packOf(t testing.TB, contents ...string) []byte {
	t.Helper()
	dir := openTemp(t)
	w, err := New(dir).newPack()
	require.NoError(t, err)
	for _, c := range contents {
		require.NoError(t, w.add(hashOf(c), []byte(c)))
	}
	_, err = w.end()
	require.NoError(t, err)
	require.NoError(t, w.f.Close())
	data, err := os.ReadFile(filepath.Join(dir.Name(), w.temp))
	require.NoError(t, err)
	return data
}

// packs returns the paths of the packs in a folder, the oldest first.
func packs(t testing.TB, dir writer.FS) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir.Name(), "packs", "*"))
	require.NoError(t, err)
	return all
}

// sealed corrects the checksum of a pack that the caller changed.
func sealed(data []byte) []byte {
	n := binary.BigEndian.Uint32(data[len(data)-trailerSize:])
	x := data[len(data)-trailerSize-int(n)*recordSize : len(data)-trailerSize]
	return append(data[:len(data)-trailerSize], packTrailer(x)...)
}

// The bytes of a pack are as pack.go says.
func TestPackFormat(t *testing.T) {
	t.Parallel()
	data := packOf(t, "second", "first")
	want := []byte("lopenpk\x01secondfirst")
	records := []record{newRecord(hashOf("second"), 8, 6), newRecord(hashOf("first"), 14, 5)}
	slices.SortFunc(records, func(a, b record) int { return bytes.Compare(a[:], b[:]) })
	want = append(append(want, records[0][:]...), records[1][:]...)
	require.Equal(t, want, data[:len(data)-trailerSize])
	require.Equal(t, uint32(2), binary.BigEndian.Uint32(data[len(data)-trailerSize:]))
	r := newRecord(hashOf("x"), 1<<46, PackMax)
	require.EqualValues(t, 1<<46, r.offset())
	require.Equal(t, PackMax, r.size())
	require.Equal(t, hashOf("x"), r.hash())

	x, err := readIndex(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Equal(t, 2, x.len())
	require.EqualValues(t, 14, x.find(hashOf("first")).offset())
	require.Nil(t, x.find(hashOf("third")))
}

// A pack that no writer makes is refused, even with the right checksum.
func TestPackRefused(t *testing.T) {
	t.Parallel()
	contents := []string{"first", "second", "third", strings.Repeat("x", 100)}
	whole := packOf(t, contents...)
	count := len(whole) - trailerSize
	at := func(data []byte, i int) []byte { return data[count-(len(contents)-i)*recordSize:][:recordSize] }
	place := func(data []byte, i int, offset, size uint64) []byte {
		binary.BigEndian.PutUint64(at(data, i)[len(Hash{}):], offset<<sizeBits|size)
		return sealed(data)
	}
	first := func(data []byte) *record { return (*record)(at(data, 0)) }
	for name, spoil := range map[string]func(data []byte) []byte{
		"empty":           func([]byte) []byte { return nil },
		"zeros":           func(data []byte) []byte { return make([]byte, len(data)) },
		"header only":     func(data []byte) []byte { return data[:headerSize] },
		"truncated":       func(data []byte) []byte { return data[:len(data)-1] },
		"half":            func(data []byte) []byte { return data[:len(data)/2] },
		"grown":           func(data []byte) []byte { return append(data, 0) },
		"other magic":     func(data []byte) []byte { data[0]++; return sealed(data) },
		"version 0":       func(data []byte) []byte { data[headerSize-1] = 0; return sealed(data) },
		"record flipped":  func(data []byte) []byte { at(data, 1)[3] ^= 1; return data },
		"count too large": func(data []byte) []byte { data[count]++; return data },
		"count lies":      func(data []byte) []byte { binary.BigEndian.PutUint32(data[count:], 1<<32-1); return data },
		"one record less": func(data []byte) []byte { binary.BigEndian.PutUint32(data[count:], 3); return sealed(data) },
		"order": func(data []byte) []byte {
			a, b := at(data, 1), at(data, 2)
			for i := range a {
				a[i], b[i] = b[i], a[i]
			}
			return sealed(data)
		},
		"twice":              func(data []byte) []byte { copy(at(data, 1), at(data, 2)); return sealed(data) },
		"offset in header":   func(data []byte) []byte { return place(data, 0, 7, uint64(first(data).size())) },
		"offset in index":    func(data []byte) []byte { return place(data, 0, uint64(count), uint64(first(data).size())) },
		"offset outside":     func(data []byte) []byte { return place(data, 0, 1<<46, uint64(first(data).size())) },
		"size outside":       func(data []byte) []byte { return place(data, 0, 8, 1000) },
		"size above the max": func(data []byte) []byte { return place(data, 0, 8, PackMax+1) },
		"overlap":            func(data []byte) []byte { return place(data, 0, 8, uint64(first(data).size()+1)) },
		"gap":                func(data []byte) []byte { return place(data, 0, 8, uint64(first(data).size()-1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := spoil(slices.Clone(whole))
			_, err := readIndex(bytes.NewReader(data), int64(len(data)))
			require.ErrorIs(t, err, envelope.ErrCorrupt)
		})
	}
	newer := slices.Clone(whole)
	newer[headerSize-1]++
	_, err := readIndex(bytes.NewReader(newer), int64(len(newer)))
	require.ErrorIs(t, err, envelope.ErrFutureVersion)
}

// A sparse file that claims to have many contents takes no more memory than the largest
// index.
func TestPackMemory(t *testing.T) {
	size := int64(1) << 40
	for _, n := range []uint32{maxObjects, maxObjects + 1, 1<<32 - 1} {
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		_, err := readIndex(hollow{size, n}, size)
		runtime.ReadMemStats(&end)
		require.ErrorIs(t, err, envelope.ErrCorrupt)
		require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(maxObjects*recordSize+1<<20))
	}
}

// hollow is a pack of zeros with a header and a trailer that claims count records.
type hollow struct {
	size  int64
	count uint32
}

func (h hollow) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off == 0 {
		copy(p, packHeader())
	}
	if off == h.size-trailerSize {
		binary.BigEndian.PutUint32(p, h.count)
	}
	return len(p), nil
}

func FuzzReadIndex(f *testing.F) {
	f.Add(packOf(f, "first", "second", "third"))
	f.Add(packOf(f, ""))
	f.Add(packOf(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, reseal(data)} {
			s := New(nil)
			x, err := readIndex(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				require.True(t, writer.ClassOf(err) == writer.ClassCorrupt || writer.ClassOf(err) == writer.ClassFutureVersion, err)
				continue
			}
			total := headerSize + trailerSize + len(x)
			for i := range x.len() {
				r := x.at(i)
				require.Equal(t, r, x.find(r.hash()))
				content, err := s.readObject(bytes.NewReader(data), r)
				if err == nil {
					require.EqualValues(t, r.hash(), sha256.Sum256(content))
				} else {
					require.ErrorIs(t, err, envelope.ErrCorrupt)
				}
				total += r.size()
			}
			require.Equal(t, len(data), total)
		}
	})
}

// reseal gives any bytes a header and, if they are long enough, the right checksum.
func reseal(data []byte) []byte {
	data = slices.Clone(data)
	copy(data, packHeader())
	if len(data) < headerSize+trailerSize {
		return data
	}
	if n := int(binary.BigEndian.Uint32(data[len(data)-trailerSize:])); n <= (len(data)-headerSize-trailerSize)/recordSize {
		return sealed(data)
	}
	return data
}

// Contents of every size around the bounds are stored in the right place, and every method
// of reading returns them.
func TestPackSizes(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	b := hold(t, s).Batch()
	sizes := []int{0, 1, 1000, PackMax - 1, PackMax, PackMax + 1, 3*PackMax + 5}
	var want []string
	for _, size := range sizes {
		want = append(want, strings.Repeat("abcdefg", size/7+1)[:size])
	}
	require.NoError(t, putAll(b, want))
	require.NoError(t, b.Commit())
	require.Len(t, packs(t, dir), 1)
	for _, again := range []*Store{s, New(dir)} {
		for _, c := range want {
			h := hashOf(c)
			_, err := os.Stat(filepath.Join(dir.Name(), h.name()))
			require.Equal(t, len(c) > PackMax, err == nil)
			r, err := again.Open(h)
			require.NoError(t, err)
			require.NoError(t, iotest.TestReader(r, []byte(c)))
			require.NoError(t, r.Close())
			require.NoError(t, again.Verify(h))
			size, err := again.Size(h)
			require.NoError(t, err)
			require.EqualValues(t, len(c), size)
			data, err := again.Read(h, int64(len(c)))
			require.NoError(t, err)
			require.Equal(t, c, string(data))
			if len(c) > 0 {
				_, err = again.Read(h, int64(len(c))-1)
				require.ErrorIs(t, err, writer.ErrInvalid)
			}
		}
		require.Len(t, list(t, again), len(want))
	}
}

// The index of a pack is bounded, so a large batch makes several packs.
func TestPackRollsOver(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	s.objects = 3
	b := hold(t, s).Batch()
	for i := range 10 {
		require.NoError(t, putAll(b, []string{fmt.Sprint(i)}))
	}
	require.NoError(t, b.Commit())
	require.Len(t, packs(t, dir), 4)
	require.Empty(t, temps(t, dir))
	for i := range 10 {
		require.NoError(t, New(dir).Verify(hashOf(fmt.Sprint(i))))
	}
}

// Only the index of a pack in progress is in memory.
func TestPackStreams(t *testing.T) {
	s := New(openTemp(t))
	b := hold(t, s).Batch()
	data := make([]byte, PackMax)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	for i := range 500 { // 32 MiB
		binary.BigEndian.PutUint64(data, uint64(i))
		_, _, err := b.Put(bytes.NewReader(data), Hash{})
		require.NoError(t, err)
	}
	require.NoError(t, b.Commit())
	runtime.ReadMemStats(&end)
	// Under the race detector a sync.Pool drops some buffers.
	require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(500*PackMax/2))
}

// A Store names contents only by its own hash function.
func TestKeyedHash(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	s.newHash = func() hash.Hash { return hmac.New(sha256.New, []byte("key")) }
	for _, c := range []string{content, strings.Repeat("large", chunk)} {
		h, _, err := s.put(strings.NewReader(c))
		require.NoError(t, err)
		sum := s.NewHash()
		sum.Write([]byte(c))
		require.Equal(t, h[:], sum.Sum(nil))
		require.NotEqual(t, hashOf(c), h)
		require.NoError(t, s.Verify(h))
		r, err := s.Open(h)
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, c, string(data))
		require.NoError(t, r.Close())
	}
	// A sweep rewrites one of two packs.
	b := (&Hold{Reading: Reading{s: s}, fl: noLock{}}).Batch()
	var keep Hash
	for i := range 20 {
		h, _, err := b.Put(strings.NewReader(fmt.Sprint(i, " and more")), Hash{})
		require.NoError(t, err)
		keep = h
	}
	require.NoError(t, b.Commit())
	_, err := s.Sweep(only(keep))
	require.NoError(t, err)
	require.NoError(t, s.Verify(keep))
	require.Equal(t, []Hash{keep}, list(t, s))
}

// Usage agrees with the files.
func TestUsage(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	b := hold(t, s).Batch()
	require.NoError(t, putAll(b, contents()))
	require.NoError(t, b.Commit())
	put(t, New(dir), "of another pack")
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), "packs", "README"), []byte("of a person"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), writer.TempName("blob")), []byte("of a dead writer"), 0o600))
	var want int64
	require.NoError(t, filepath.Walk(dir.Name(), func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			want += info.Size()
		}
		return err
	}))
	u, err := s.Usage()
	require.NoError(t, err)
	require.Equal(t, want, u)
	u, err = New(openTemp(t)).Usage()
	require.NoError(t, err)
	require.Zero(t, u)
}

// Sizes has every object with what it takes. Those of a damaged pack are missing, and a folder that
// cannot be read is an error.
func TestSizes(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	large := strings.Repeat("large", PackMax)
	putTogether(t, s, "one", "three", large)
	damaged := packs(t, dir)
	putTogether(t, s, "other")
	sizes, err := New(dir).Sizes()
	require.NoError(t, err)
	require.Equal(t, map[Hash]int64{hashOf("one"): 3, hashOf("three"): 5, hashOf("other"): 5, hashOf(large): int64(len(large))}, sizes)
	require.NoError(t, os.Truncate(damaged[0], 20))
	sizes, err = New(dir).Sizes()
	require.NoError(t, err)
	require.Equal(t, map[Hash]int64{hashOf("other"): 5, hashOf(large): int64(len(large))}, sizes)
	for _, call := range []string{"readdir .", "readdir packs", "readdir " + hashOf(large).shard(), "lstat " + hashOf(large).name(), "open packs/*.pack"} {
		_, err = New(&faultFS{FS: dir, decide: func(_ int, made string) fault {
			if made == call {
				return fault{err: syscall.EACCES}
			}
			return fault{}
		}}).Sizes()
		require.ErrorIs(t, err, syscall.EACCES, call)
	}
	sizes, err = New(openTemp(t)).Sizes()
	require.NoError(t, err)
	require.Empty(t, sizes)
}
