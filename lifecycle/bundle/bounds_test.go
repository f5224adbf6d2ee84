package bundle_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer/crypt"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// A gauge measures what is held in memory at most, beyond what was there when it was made.
// Its tests are not parallel: nothing else runs then.
type gauge struct {
	t          testing.TB
	begin, max uint64
}

func newGauge(t testing.TB) *gauge {
	g := &gauge{t: t}
	g.begin = g.now()
	return g
}

func (g *gauge) now() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (g *gauge) look() { g.max = max(g.max, g.now()) }

func (g *gauge) requireAtMost(mib uint64) {
	g.t.Helper()
	require.NotZero(g.t, g.max)
	g.t.Logf("%.1f MiB", float64(int64(g.max-g.begin))/(1<<20))
	require.Less(g.t, g.max, g.begin+mib<<20)
}

// through has each part of what is written go through a Reader, without a file between them,
// and looks at the memory some times.
func through(t *testing.T, g *gauge, key *crypt.Key, write func(to io.Writer) error) (entries int, bytes int64, err error) {
	t.Helper()
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := write(out)
		_ = out.CloseWithError(err)
		done <- err
	}()
	r, err := bundle.NewReader(in, func() (*crypt.Key, error) { return key, nil })
	for err == nil {
		if _, err = r.Next(); err == nil {
			var n int64
			n, err = io.Copy(io.Discard, &looking{r: r, g: g})
			entries, bytes = entries+1, bytes+n
		}
		if entries%100_000 == 1 {
			g.look()
		}
	}
	g.look()
	runtime.KeepAlive(r)
	_ = in.CloseWithError(errors.New("refused"))
	if werr := <-done; errors.Is(err, io.EOF) {
		return entries, bytes, werr
	}
	return entries, bytes, err
}

// looking looks at the memory each 64 MiB.
type looking struct {
	r io.Reader
	g *gauge
	n int
}

func (l *looking) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.n/(64<<20) != (l.n+n)/(64<<20) {
		l.g.look()
	}
	l.n += n
	return n, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// What a bundle has may be of any size: neither side holds it. Zeros are padded, so that they
// do not look like a bomb.
func TestMemoryIsConstant(t *testing.T) {
	g := newGauge(t)
	key, _, err := crypt.NewKey()
	require.NoError(t, err)
	size := int64(128 << 20)
	if testing.Short() {
		size /= 2
	}
	random := rand.NewChaCha8([32]byte{})
	_, n, err := through(t, g, key, func(to io.Writer) error {
		h := header
		h.Bytes = 2 * size
		w, err := bundle.NewWriter(to, h, key)
		if err != nil {
			return err
		}
		if err := w.Add("random", size, io.LimitReader(random, size)); err != nil {
			return err
		}
		if err := w.Add("zeros", size, io.LimitReader(zeros{}, size)); err != nil {
			return err
		}
		return w.Close()
	})
	require.NoError(t, err)
	require.EqualValues(t, 2*size, n)
	g.requireAtMost(96)
}

func TestZerosArePadded(t *testing.T) {
	t.Parallel()
	const size = 32 << 20
	var out bytes.Buffer
	w, err := bundle.NewWriter(&out, header, nil)
	require.NoError(t, err)
	require.NoError(t, w.Add("zeros", size, io.LimitReader(zeros{}, size)))
	require.NoError(t, w.Close())
	require.GreaterOrEqual(t, out.Len(), (size-bundle.Free)/bundle.MaxRatio)
	_, things, err := read(&out, nil)
	require.NoError(t, err)
	require.Len(t, things[0].text, size)
}

func TestBombs(t *testing.T) {
	g := newGauge(t)
	const size = 512 << 20
	begin := func() []byte { // a tar until the content of a large entry
		f := &forger{t: t}
		h := header
		h.Bytes = size
		f.header(h)
		f.raw(tar.Header{Name: "zeros", Size: size}, "")
		return f.out.Bytes()
	}()
	mebibyte := make([]byte, 1<<20)
	packed := zstdOf(t, mebibyte)
	// A block that stands for 128 KiB in four bytes: RFC 8878, 3.1.1.2.
	rle := []byte("\x28\xb5\x2f\xfd\x00\x58") // a window of 2 MiB
	for i := range uint32(4096) {
		block := uint32(128<<10)<<3 | 1<<1
		if i == 4095 {
			block |= 1
		}
		rle = append(rle, byte(block), byte(block>>8), byte(block>>16), 0)
	}
	var window, skip bytes.Buffer
	z, err := zstd.NewWriter(&window, zstd.WithWindowSize(512<<20), zstd.WithLowerEncoderMem(true), zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	_, err = z.Write(make([]byte, 3<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	many := 1 << 20
	if testing.Short() {
		many = 1 << 14
	}
	for range many {
		skip.WriteString("\x50\x2a\x4d\x18\x00\x00\x00\x00")
	}
	frame := func(head string) []byte { return append(zstdOf(t, begin), head...) }
	for name, c := range map[string]struct {
		compressed []byte
		want       string
	}{
		"many frames":              {append(zstdOf(t, begin), bytes.Repeat(packed, 512)...), "a bomb"},
		"one frame":                {append(zstdOf(t, begin), rle...), "a bomb"},
		"compressed twice":         {zstdOf(t, bytes.Repeat(zstdOf(t, append(begin, mebibyte...)), 1000)), "an entry"},
		"a large window":           {append(zstdOf(t, begin), window.Bytes()...), "window"},
		"the largest window":       {frame("\x28\xb5\x2f\xfd\x00\xff\x01\x00\x00"), "window"},
		"one segment of 2^62":      {frame("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x40\x01\x00\x00"), ""},
		"a dictionary":             {frame("\x28\xb5\x2f\xfd\x01\x58\x07\x01\x00\x00"), "dictionar"},
		"a content of 2^62":        {frame("\x28\xb5\x2f\xfd\xc0\x58\x00\x00\x00\x00\x00\x00\x00\x40\x01\x00\x00"), ""},
		"a skipped frame of 4 GiB": {frame("\x50\x2a\x4d\x18\xff\xff\xff\xff"), ""},
		"a million skipped frames": {append(zstdOf(t, begin), skip.Bytes()...), "ends too early"},
		"a million empty frames":   {append(zstdOf(t, begin), bytes.Repeat(zstdOf(t, nil, zstd.WithZeroFrames(true)), many)...), "ends too early"},
	} {
		_, _, err := through(t, g, nil, func(to io.Writer) error {
			_, err := to.Write(bundle.Sealed(c.compressed))
			return err
		})
		requireRefused(t, err, name)
		require.ErrorContains(t, err, c.want, name)
	}
	g.requireAtMost(64) // with the bombs themselves
}

// A million entries, and a million folders, are refused when there are too many of them.
func TestAMillionEntries(t *testing.T) {
	if testing.Short() {
		t.Skip("there is nothing concurrent in it, and the race detector takes a minute")
	}
	g := newGauge(t)
	forge := func(name func(i int) string) func(to io.Writer) error {
		return func(to io.Writer) error {
			f := &forger{t: t}
			f.header(header)
			z := bundle.ForgeTo(to)
			defer z.Abort()
			if _, err := z.Write(f.out.Bytes()); err != nil {
				return err
			}
			// Blocks are made by hand: the standard library takes longer than the reader.
			f.out.Reset()
			f.raw(tar.Header{Name: "x"}, "")
			b := f.out.Bytes()[:512]
			for i := range 1_000_000 {
				clear(b[:100])
				copy(b, name(i))
				copy(b[148:156], "        ")
				sum := 0
				for _, c := range b {
					sum += int(c)
				}
				copy(b[148:156], fmt.Sprintf("%06o\x00 ", sum))
				if _, err := z.Write(b); err != nil {
					return err
				}
			}
			return z.Close()
		}
	}
	n, _, err := through(t, g, nil, forge(func(i int) string { return fmt.Sprintf("f/%d", i) }))
	requireRefused(t, err)
	require.ErrorContains(t, err, "more than 500000 entries")
	require.Equal(t, bundle.MaxEntries-1, n)
	_, _, err = through(t, g, nil, forge(func(i int) string { return fmt.Sprintf("%d/a/b/c/d/e/f/g", i) }))
	requireRefused(t, err)
	require.ErrorContains(t, err, "more than 1000000 names and folders")
	g.requireAtMost(160)
}

// A header of many elements that are nothing is short, and large in memory.
func TestHeadersAreBounded(t *testing.T) {
	g := newGauge(t)
	for _, element := range []string{"{}", "null"} {
		list := strings.Repeat(element+",", 3_000_000)
		f := &forger{t: t}
		f.file("lopen-bundle.json", string(envelope.Checksum.Append([]byte(`{"bundle":1,"at":"2026-02-14T09:30:00Z","sessions":[`+list+element+`]`))))
		_, _, err := read(bytes.NewReader(bundle.Forge(f.out.Bytes())), nil)
		requireRefused(t, err)
		require.ErrorContains(t, err, "too many sessions")
	}
	g.look()
	g.requireAtMost(32)
	h := header
	h.Sessions = make([]bundle.Session, 60_000)
	_, err := bundle.NewWriter(io.Discard, h, nil)
	require.ErrorContains(t, err, "too many sessions")
}
