package bundle_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/lifecycle/bundle"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crypt"
)

// benchFiles makes files that compress about as sources and logs do: 40 of 4 MiB, and 8192 of
// 8 KiB, which are objects.
func benchFiles(b *testing.B) (dir string, bytes int64) {
	b.Helper()
	dir = b.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 5000)
	for i := range words {
		words[i] = fmt.Sprintf("%x", r.Uint64()>>(20+r.IntN(40)))
	}
	text := func(size int) []byte {
		var s strings.Builder
		for s.Len() < size {
			fmt.Fprintf(&s, "%s(%s, %d) ", words[int(r.ExpFloat64()*400)%len(words)], words[r.IntN(len(words))], r.IntN(1000))
			if r.IntN(8) == 0 {
				s.WriteByte('\n')
			}
		}
		return []byte(s.String()[:size])
	}
	for i := range 40 {
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("log%d", i)), text(4<<20), 0o600))
	}
	for i := range 8192 {
		require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("object%d", i)), text(8<<10), 0o600))
	}
	return dir, 40*4<<20 + 8192*8<<10
}

// bundleOf writes a bundle of the files of a folder.
func bundleOf(to io.Writer, dir string, bytes int64, key *crypt.Key) error {
	h := header
	h.Bytes = bytes
	w, err := bundle.NewWriter(to, h, key)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Name(), "object") {
			text, rerr := os.ReadFile(f.Name()) // whose hash is known, where it is real
			err = errors.Join(rerr, w.Object(blob.Hash(sha256.Sum256(text)), info.Size(), func() (io.ReadCloser, error) { return f, nil }))
		} else {
			err = errors.Join(w.Add("files/"+e.Name(), info.Size(), f), f.Close())
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// BenchmarkWrite writes a bundle of files; BenchmarkTar has tar and zstd do it.
func BenchmarkWrite(b *testing.B) {
	key, _, err := crypt.NewKey()
	require.NoError(b, err)
	dir, bytes := benchFiles(b)
	for name, run := range map[string]func(out string) error{
		"bundle": func(out string) error {
			f, err := os.Create(out)
			if err != nil {
				return err
			}
			return errors.Join(bundleOf(f, dir, bytes, nil), f.Close())
		},
		"encrypted": func(out string) error {
			f, err := os.Create(out)
			if err != nil {
				return err
			}
			return errors.Join(bundleOf(f, dir, bytes, key), f.Close())
		},
		"tar-zstd": func(out string) error {
			return exec.Command("sh", "-c", `tar -C "$1" -cf - . | zstd -q -3 -T0 -f -o "$2"`, "sh", dir, out).Run()
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(bytes)
			out := filepath.Join(b.TempDir(), "out")
			for b.Loop() {
				require.NoError(b, run(out))
			}
			info, err := os.Stat(out)
			require.NoError(b, err)
			b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
		})
	}
}

// BenchmarkRead reads a bundle; tar and zstd extract their own into a folder, and to nowhere.
func BenchmarkRead(b *testing.B) {
	key, _, err := crypt.NewKey()
	require.NoError(b, err)
	dir, bytes := benchFiles(b)
	tmp := b.TempDir()
	tarred := filepath.Join(tmp, "tar")
	require.NoError(b, exec.Command("sh", "-c", `tar -C "$1" -cf - . | zstd -q -3 -T0 -f -o "$2"`, "sh", dir, tarred).Run())
	for _, k := range []*crypt.Key{nil, key} {
		name := filepath.Join(tmp, fmt.Sprint("bundle", k != nil))
		f, err := os.Create(name)
		require.NoError(b, err)
		require.NoError(b, bundleOf(f, dir, bytes, k))
		require.NoError(b, f.Close())
		b.Run(filepath.Base(name), func(b *testing.B) {
			b.SetBytes(bytes)
			for b.Loop() {
				f, err := os.Open(name)
				require.NoError(b, err)
				r, err := bundle.NewReader(f, func() (*crypt.Key, error) { return k, nil })
				require.NoError(b, err)
				for err == nil {
					if _, err = r.Next(); err == nil {
						_, err = io.Copy(io.Discard, r)
					}
				}
				require.ErrorIs(b, err, io.EOF)
				require.NoError(b, f.Close())
			}
		})
	}
	b.Run("zstd-tar", func(b *testing.B) {
		b.SetBytes(bytes)
		for b.Loop() {
			require.NoError(b, exec.Command("sh", "-c", `zstd -q -dc "$1" | tar -xOf - >/dev/null`, "sh", tarred).Run())
		}
	})
}
