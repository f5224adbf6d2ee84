package blob

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
	"github.com/lopen-dev/lopen/writer/envelope"
)

func TestOpen(t *testing.T) {
	s := loose(openTemp(t))
	for _, size := range []int{0, 1, 2, chunk - 1, chunk, chunk + 1, 3*chunk + 5} {
		want := strings.Repeat("abcdefg", size/7+1)[:size]
		r, err := s.Open(put(t, s, want))
		require.NoError(t, err)
		require.NoError(t, iotest.TestReader(r, []byte(want)))
		_, err = r.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		require.NoError(t, r.Close())
	}
}

func TestOpenMissing(t *testing.T) {
	s := loose(openTemp(t))
	h := hashOf("another")
	_, err := s.Open(h)
	for _, err := range []error{err, s.Verify(h)} {
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.ErrorContains(t, err, h.String())
		var e *writer.Error
		require.ErrorAs(t, err, &e)
	}
	there, err := s.Has(h)
	require.NoError(t, err)
	require.False(t, there)
}

// Of a damaged blob no reader gets as many bytes as the content has without an error.
func TestOpenDamaged(t *testing.T) {
	long := strings.Repeat(content, 2*chunk/len(content))
	for _, c := range []string{content, long} {
		damages := map[string]string{"empty": "", "truncated": c[:len(c)-1], "zeroed": strings.Repeat("\x00", len(c)), "appended": c + "x"}
		for _, at := range []int{0, len(c) / 2, len(c) - 1} {
			damages[fmt.Sprintf("flipped at %d", at)] = c[:at] + string(c[at]^1) + c[at+1:]
		}
		for name, damaged := range damages {
			t.Run(fmt.Sprintf("%d/%s", len(c), name), func(t *testing.T) {
				dir := openTemp(t)
				s := loose(dir)
				h := put(t, s, c)
				require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), h.name()), []byte(damaged), 0o600))
				corrupt := func(err error) {
					require.ErrorIs(t, err, envelope.ErrCorrupt)
					require.ErrorContains(t, err, h.String())
					require.ErrorContains(t, err, filepath.Join(dir.Name(), h.name()))
				}
				corrupt(s.Verify(h))
				for _, buf := range []int{1, 7, len(damaged), len(damaged) + 1} {
					if buf == 0 || buf == 1 && len(c) > chunk {
						continue
					}
					r, err := s.Open(h)
					require.NoError(t, err)
					got, p := 0, make([]byte, buf)
					for err == nil {
						var n int
						n, err = r.Read(p)
						got += n
					}
					corrupt(err)
					require.Less(t, got, max(len(damaged), 1))
					_, err = r.Read(p)
					corrupt(err)
					require.NoError(t, r.Close())
				}
				put(t, s, c)
				require.NoError(t, s.Verify(h))
			})
		}
	}
}

// Each call of a reader fails once. The error has the right class, and the file is closed.
func TestOpenFaults(t *testing.T) {
	dir := openTemp(t)
	h := put(t, loose(dir), content)
	read := func(s *Store) ([]byte, error) {
		r, err := s.Open(h)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if cerr := r.Close(); err == nil {
			err = cerr
		}
		return data, err
	}
	f := &faultFS{FS: dir}
	_, err := read(loose(f))
	require.NoError(t, err)
	for k, call := range f.calls {
		for errno, class := range classes {
			f := &faultFS{FS: dir, decide: failNth(k+1, fault{err: errno})}
			data, err := read(loose(f))
			f.never(t)
			if err == nil { // a retried open, or a look at packs and names that the blob does not have
				require.True(t, call == "lstat "+h.file(codec.Zstd) || call == "lstat "+h.file(codec.Gzip) || strings.HasPrefix(call, "open") && class == writer.ClassTransient || call == "readdir packs", "%s: %v", call, errno)
				require.Equal(t, content, string(data))
				continue
			}
			var e *writer.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, class, e.Class, "%s: %v", call, errno)
			require.ErrorIs(t, err, errno)
			require.ErrorContains(t, err, h.String())
		}
	}
	f = &faultFS{FS: dir, decide: failCalls(map[string]fault{"lstat " + h.name(): {err: syscall.EIO}})}
	_, err = loose(f).Has(h)
	require.Equal(t, writer.ClassDevice, writer.ClassOf(err))
}
