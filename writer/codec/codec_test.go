package codec_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
)

func random(n int) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data)
	return data
}

var contents = map[string][]byte{
	"nothing": {}, "a byte": []byte("x"), "text": bytes.Repeat([]byte("a line of a log, number 7\n"), 9000),
	"random": random(300_000), "zeros": make([]byte, 3<<20),
	"random, then zeros": append(random(100_000), make([]byte, 1<<20)...),
}

// encoders are those that compress, by a name for tests.
func encoders() map[string]codec.Encoder {
	all := map[string]codec.Encoder{"default": codec.Options{}.Encoder(), "none, framed": codec.Options{Codec: "none"}.Framer()}
	levels := []int{1, 3, 6, 9, 22, 99}
	if testing.Short() {
		levels = []int{3, 99}
	}
	for _, level := range levels {
		for _, c := range []string{"zstd", "gzip"} {
			all[fmt.Sprint(c, " ", level)] = codec.Options{Codec: c, Level: level}.Encoder()
		}
	}
	return all
}

// write makes a compressed file and returns its bytes.
func write(t testing.TB, e codec.Encoder, content []byte) []byte {
	var to bytes.Buffer
	f := e.Create(&to)
	for part := content; len(part) > 0; part = part[min(len(part), 7777):] {
		_, err := f.Write(part[:min(len(part), 7777)])
		require.NoError(t, err)
	}
	size, packed, err := f.End()
	require.NoError(t, err)
	f.Discard() // does nothing any more
	require.EqualValues(t, len(content), size)
	require.EqualValues(t, to.Len(), packed)
	return to.Bytes()
}

func read(c codec.Codec, data []byte) ([]byte, error) {
	r, size, err := codec.Open(c, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err == nil && int64(len(content)) != size {
		err = errors.New("the size is wrong, and no error says so")
	}
	return content, err
}

// What is compressed is read back, as a file, a frame and a stream.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	for by, e := range encoders() {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			for name, content := range contents {
				data := write(t, e, content)
				got, err := read(e.Codec, data)
				require.NoError(t, err, name)
				require.True(t, bytes.Equal(content, got), name)
				require.LessOrEqual(t, len(content), 1<<20+codec.Ratio*len(data), name)

				frame := e.Frame(content)
				got, err = codec.Decode(e.Codec, frame, make([]byte, 0, len(content)), len(content))
				require.NoError(t, err, name)
				require.True(t, bytes.Equal(content, got), name)
				if e.Codec == codec.Gzip {
					require.LessOrEqual(t, len(content), codec.FrameRatio*len(frame), name)
				}
				for _, size := range []int{len(content) - 1, len(content) + 1} {
					if size >= 0 {
						_, err = codec.Decode(e.Codec, frame, make([]byte, 0, size), size)
						require.Error(t, err, "%s, %d", name, size)
					}
				}
			}
			r := codec.NewReader(codec.None, strings.NewReader("as it is"))
			got, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Equal(t, "as it is", string(got))
			require.NoError(t, r.Close())
		})
	}
}

// Each codec makes text smaller, and a stored frame does not.
func TestSmaller(t *testing.T) {
	t.Parallel()
	text := contents["text"]
	for by, e := range encoders() {
		if by == "none, framed" {
			require.Greater(t, len(e.Frame(text)), len(text))
			continue
		}
		require.Less(t, len(write(t, e, text)), len(text)/10, by)
		require.Less(t, len(e.Frame(text)), len(text)/3, by)
	}
	require.Equal(t, codec.Encoder{}, codec.Options{Codec: "none"}.Encoder())
	require.False(t, codec.Options{Codec: "none"}.Above(1<<40))
	require.False(t, codec.Options{}.Above(64<<10))
	require.True(t, codec.Options{}.Above(64<<10+1))
	require.True(t, codec.Options{Threshold: 1}.Above(2))
}

// The tools read every file, with its foot and its padding.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"default", "gzip 3", "none, framed"} {
		e := encoders()[by]
		for name, content := range contents {
			data := write(t, e, content)
			data = append(data, e.Codec.Pad(200_000)...)
			var r io.Reader
			var err error
			if e.Codec == codec.Zstd {
				r, err = zstd.NewReader(bytes.NewReader(data))
			} else {
				r, err = gzip.NewReader(bytes.NewReader(data))
			}
			require.NoError(t, err)
			got, err := io.ReadAll(r)
			require.NoError(t, err, name)
			require.True(t, bytes.Equal(content, got), name)
		}
	}
	dir := t.TempDir()
	for tool, c := range map[string]string{"zstd": "zstd", "gzip": "gzip"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Logf("there is no %s here", tool)
			continue
		}
		e := codec.Options{Codec: c}.Encoder()
		data := append(write(t, e, contents["text"]), e.Codec.Pad(70_000)...)
		file, err := writer.OpenFS(dir)
		require.NoError(t, err)
		require.NoError(t, writer.ReplaceFile(file, "f"+e.Codec.Suffix(), data, 0o600))
		require.NoError(t, file.Close())
		got, err := exec.Command(path, "-dc", filepath.Join(dir, "f"+e.Codec.Suffix())).Output()
		require.NoError(t, err, tool)
		require.True(t, bytes.Equal(contents["text"], got), tool)
	}
}

// Damage and cuts of a file are errors that say so, or cost nothing.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	content := append(bytes.Repeat([]byte("some text "), 500), random(500)...)
	for _, by := range []string{"default", "gzip 3", "none, framed"} {
		e := encoders()[by]
		data := write(t, e, content)
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << (i % 8)
			if got, err := read(e.Codec, bad); err == nil {
				require.True(t, bytes.Equal(content, got), "%s: byte %d of %d", by, i, len(data))
			} else {
				require.ErrorIs(t, err, envelope.ErrCorrupt, "%s: byte %d", by, i)
			}
			_, err := read(e.Codec, data[:i])
			require.ErrorIs(t, err, envelope.ErrCorrupt, "%s: %d bytes", by, i)
		}
		_, err := read(e.Codec, append(bytes.Clone(data), "more"...))
		require.ErrorIs(t, err, envelope.ErrCorrupt, by)
		more := append(data[:len(data)-len(codec.Foot(e.Codec, 0)):len(data)-len(codec.Foot(e.Codec, 0))], codec.Foot(e.Codec, int64(len(content)+1))...)
		_, err = read(e.Codec, more)
		require.ErrorContains(t, err, "ends 1 bytes too early", by)
		_, err = read(e.Codec, append(bytes.Clone(data), write(t, e, []byte("more"))...))
		require.ErrorIs(t, err, envelope.ErrCorrupt, by)
	}
}

// A failure of the disk is returned as it is, and not taken for damage.
func TestAnErrorOfReadingIsNoDamage(t *testing.T) {
	t.Parallel()
	broken := errors.New("the device is gone")
	for by, e := range encoders() {
		data := write(t, e, random(200_000))
		_, err := io.ReadAll(codec.NewReader(e.Codec, io.MultiReader(bytes.NewReader(data[:len(data)/2]), failing{broken})))
		require.ErrorIs(t, err, broken, by)
		require.NotErrorIs(t, err, envelope.ErrCorrupt, by)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A file that would come to more than Ratio allows is refused before it is decompressed, and
// one that lies about its size when that is reached.
func TestBombs(t *testing.T) { // measures memory: not parallel
	for _, e := range []codec.Encoder{codec.Options{}.Encoder(), codec.Options{Codec: "gzip", Level: 9}.Encoder()} {
		var stream bytes.Buffer
		z := e.Writer(&stream)
		zeros := make([]byte, 1<<20)
		for range 64 {
			_, err := z.Write(zeros)
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for size, want := range map[int64]string{
			64 << 20: "more than the", 1 << 62: "more than the", -1: "does not end as", 5: "more in it than its end says",
		} {
			_, err := read(e.Codec, slices.Concat(stream.Bytes(), codec.Foot(e.Codec, size)))
			require.ErrorIs(t, err, envelope.ErrCorrupt)
			require.ErrorContains(t, err, want)
		}
		_, err := codec.Decode(e.Codec, stream.Bytes(), make([]byte, 0, 1000), 1000)
		require.Error(t, err)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), e.Codec)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range codec.All {
		stem, got := codec.Cut("a.log" + c.Suffix())
		require.Equal(t, "a.log", stem)
		require.Equal(t, c, got)
	}
}

// FuzzOpen requires of any bytes that no more comes of them than their number allows, and
// that what was written is what is read.
func FuzzOpen(f *testing.F) {
	for _, c := range []string{"zstd", "gzip"} {
		e := codec.Options{Codec: c}.Encoder()
		for _, content := range []string{"", "some text", strings.Repeat("a", 1<<20), string(random(1000))} {
			data := write(f, e, []byte(content))
			f.Add(c == "gzip", data)
			f.Add(c == "gzip", data[:len(data)/2])
			f.Add(c == "gzip", append(data, e.Codec.Pad(99)...))
		}
	}
	f.Fuzz(func(t *testing.T, gz bool, data []byte) {
		c := codec.Zstd
		if gz {
			c = codec.Gzip
		}
		content, err := read(c, data)
		if err != nil {
			require.ErrorIs(t, err, envelope.ErrCorrupt)
		}
		require.LessOrEqual(t, int64(len(content)), 1<<20+codec.Ratio*int64(len(data)))
	})
}
