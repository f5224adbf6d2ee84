package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// text compresses, noise does not.
var text = strings.Repeat("a line of a file that is worth compressing\n", 5000)

func noise(n int) string {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
	return string(data)
}

var ways = map[string]codec.Options{"zstd": {Codec: "zstd"}, "gzip": {Codec: "gzip"}}

// fileOf is the one file that a content has.
func fileOf(t *testing.T, dir writer.FS, h Hash) (name string, size int64) {
	for _, c := range codec.All {
		if info, err := dir.Lstat(h.file(c)); err == nil {
			require.Empty(t, name, "there are two")
			name, size = h.file(c), info.Size()
		}
	}
	return name, size
}

// TestCompressed stores what gets smaller compressed and everything else as it is, and reads all
// of it with any options.
func TestCompressed(t *testing.T) {
	t.Parallel()
	for way, by := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			dir := openTemp(t)
			s := New(dir).Compressing(by)
			for name, c := range map[string]struct {
				content string
				by      codec.Options
				packed  bool
			}{
				"text":                               {text, by, true},
				"noise":                              {noise(200_000), by, false},
				"zeros, which are a hole":            {string(make([]byte, 1<<20)), by, false},
				"text below the threshold":           {text[1:], codec.Options{Codec: way, Threshold: 1 << 20}, false},
				"text above the threshold":           {text[2:], codec.Options{Codec: way, Threshold: 100_000}, true},
				"much comes of it":                   {strings.Repeat("a", 8<<20), by, true},
				"what looks like a compressed file":  {string(codec.Options{Codec: way}.Encoder().Frame([]byte(noise(100_000)))), by, false},
				"small":                              {"x", by, false},
				"text that is not to be compressed":  {text[3:], codec.Options{Codec: "none"}, false},
				"text that begins as if it were not": {noise(70_000) + text, by, false},
			} {
				s.Compressing(c.by)
				h := put(t, s, c.content)
				for _, s := range []*Store{s, New(dir), New(dir).Compressing(codec.Options{})} {
					r, err := s.Open(h)
					require.NoError(t, err, name)
					got, err := io.ReadAll(r)
					require.NoError(t, errors.Join(err, r.Close()), name)
					require.True(t, c.content == string(got), name)
					got, err = s.Read(h, int64(len(c.content)))
					require.NoError(t, err, name)
					require.True(t, c.content == string(got), name)
					_, err = s.Read(h, int64(len(c.content)-1))
					require.ErrorIs(t, err, writer.ErrInvalid, name)
					size, err := s.Size(h)
					require.NoError(t, err, name)
					require.EqualValues(t, len(c.content), size, name)
					require.NoError(t, s.Verify(h), name)
				}
				file, size := fileOf(t, dir, h)
				taken, err := s.Sizes()
				require.NoError(t, err)
				require.Equal(t, max(size, 1), taken[h], name)
				_, how := codec.Cut(file)
				require.Equal(t, c.packed, how != codec.None, "%s: %s", name, file)
				if c.packed {
					require.Less(t, size, int64(len(c.content)/8), name)
				}
			}
			require.Empty(t, temps(t, dir))
			all := 0
			for _, err := range s.All() {
				require.NoError(t, err)
				all++
			}
			require.Equal(t, 10, all)
			swept, err := s.Sweep(func() (map[Hash]struct{}, error) { return nil, nil })
			require.NoError(t, err)
			require.Len(t, swept.Hashes, 10)
			left, err := s.Usage()
			require.NoError(t, err)
			require.Less(t, left, int64(200), "the lock")
		})
	}
}

// TestNoSmaller stores as it is what shrinks at its begin alone.
func TestNoSmaller(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	by := codec.Options{Codec: "gzip"}
	s := New(dir).Compressing(by)
	s.packMax = 1000 // so that it is judged by 1,001 bytes
	content := strings.Repeat("a", 500) + noise(501)
	require.True(t, shrinks(by.Encoder(), []byte(content)))
	content += noise(12 << 20)
	h := put(t, s, content)
	file, size := fileOf(t, dir, h)
	require.Equal(t, h.name(), file)
	require.EqualValues(t, len(content), size)
	require.Empty(t, temps(t, dir))
}

// TestStoredAgainWithAnotherCodec damages a file. It is stored again, and the intact one is read,
// whichever name comes first.
func TestStoredAgainWithAnotherCodec(t *testing.T) {
	t.Parallel()
	ways := []codec.Options{{Codec: "none"}, {Codec: "zstd"}, {Codec: "gzip"}}
	for _, first := range ways {
		for _, second := range ways {
			t.Run(fmt.Sprintf("%s, %s", first.Codec, second.Codec), func(t *testing.T) {
				t.Parallel()
				dir := crashfs.New(crashfs.Ext4).FS()
				h := put(t, New(dir).Compressing(first), text)
				file, size := fileOf(t, dir, h)
				f, err := dir.OpenFile(file, 2, 0)
				require.NoError(t, err)
				_, err = f.WriteAt([]byte("!!"), size/2)
				require.NoError(t, err)
				require.NoError(t, f.Close())
				s := New(dir).Compressing(second)
				err = s.Verify(h)
				require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err))
				require.ErrorContains(t, err, file)
				put(t, s, text)
				require.NoError(t, s.Verify(h))
				got, err := New(dir).Read(h, 1<<20)
				require.NoError(t, err)
				require.True(t, text == string(got))
				n, err := s.Size(h)
				require.NoError(t, err)
				require.EqualValues(t, len(text), n)
				swept, err := s.Sweep(func() (map[Hash]struct{}, error) { return nil, nil })
				require.NoError(t, err)
				require.Equal(t, []Hash{h}, swept.Hashes)
				_, err = s.Open(h)
				require.ErrorIs(t, err, fs.ErrNotExist)
			})
		}
	}
}

// TestEveryByteOfACompressedBlob flips each byte: the content is intact or the blob is damaged.
func TestEveryByteOfACompressedBlob(t *testing.T) {
	t.Parallel()
	for way, by := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			dir := crashfs.New(crashfs.Ext4).FS()
			s := New(dir).Compressing(by)
			h := put(t, s, text[:66_000])
			file, _ := fileOf(t, dir, h)
			data, err := writer.ReadFile(dir, file, 1<<20)
			require.NoError(t, err)
			for i := range data {
				if i > 200 && i < len(data)-200 && i%5 > 0 {
					continue
				}
				bad := bytes.Clone(data)
				bad[i] ^= 1 << (i % 8)
				require.NoError(t, writer.ReplaceUnsynced(dir, file, bad, 0o600))
				if got, err := s.Read(h, 1<<20); err == nil {
					require.True(t, text[:66_000] == string(got))
				} else {
					require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "byte %d: %v", i, err)
				}
				require.NoError(t, writer.ReplaceUnsynced(dir, file, data[:i], 0o600))
				_, err = s.Read(h, 1<<20)
				require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "%d bytes", i)
			}
		})
	}
}

// What is read again, since it got no smaller, has to be what was written.
func TestNoSmallerAndDamaged(t *testing.T) {
	t.Parallel()
	disk := crashfs.New(crashfs.Ext4)
	dir := disk.FS()
	by := codec.Options{Codec: "gzip"}
	s := New(dir).Compressing(by)
	s.packMax = 1000
	disk.SetHook(func(op crashfs.Op) crashfs.Fault {
		if op.Call == "open" && strings.HasPrefix(op.Name, ".tmp-blob") {
			disk.SetHook(nil)
			f, err := dir.OpenFile(op.Name, os.O_WRONLY|os.O_TRUNC, 0)
			require.NoError(t, err)
			w := by.Encoder().Create(f)
			_, err = w.Write([]byte("what somebody else wrote"))
			require.NoError(t, err)
			_, _, err = w.End()
			require.NoError(t, errors.Join(err, f.Close()))
		}
		return crashfs.Fault{}
	})
	hold, err := s.Hold(t.Context())
	require.NoError(t, err)
	b := hold.Batch()
	defer b.Discard()
	_, _, err = b.Put(strings.NewReader(strings.Repeat("a", 500)+noise(501)), Hash{})
	require.Equal(t, writer.ClassCorrupt, writer.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "it has another hash")
	require.NoError(t, hold.Release())
	left, err := writer.Temps(dir, ".")
	require.NoError(t, err)
	require.Empty(t, left)
}
