package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

// putTogether stores contents in one batch.
func putTogether(t testing.TB, s *Store, contents ...string) {
	t.Helper()
	h := hold(t, s)
	b := h.Batch()
	require.NoError(t, putAll(b, contents))
	require.NoError(t, b.Commit())
	require.NoError(t, h.Release())
}

// A damaged pack costs only its own contents, and the error names it. Storing a content again
// heals it, also for a Store that has cached the index.
func TestPackDamaged(t *testing.T) {
	t.Parallel()
	spoils := map[string]func(data []byte) []byte{
		"husk":            func([]byte) []byte { return nil },
		"zeros":           func(data []byte) []byte { return make([]byte, len(data)) },
		"truncated":       func(data []byte) []byte { return data[:len(data)-5] },
		"half":            func(data []byte) []byte { return data[:len(data)/2] },
		"header":          func(data []byte) []byte { data[0]++; return data },
		"content flipped": func(data []byte) []byte { data[headerSize] ^= 1; return data },
		"index flipped":   func(data []byte) []byte { data[len(data)-trailerSize-1] ^= 1; return data },
		"trailer flipped": func(data []byte) []byte { data[len(data)-1] ^= 1; return data },
	}
	for name, spoil := range spoils {
		for _, fresh := range []bool{true, false} {
			if !fresh && slices.Contains([]string{"header", "index flipped", "trailer flipped"}, name) {
				continue // the Store has cached the index
			}
			t.Run(fmt.Sprintf("%s/%v", name, fresh), func(t *testing.T) {
				t.Parallel()
				dir := openTemp(t)
				s := New(dir)
				putTogether(t, s, content, "beside it")
				putTogether(t, s, "elsewhere")
				file := packs(t, dir)[0]
				data, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, spoil(data), 0o600))
				if fresh {
					s = New(dir)
				}
				_, oerr := s.Open(hashOf(content))
				for _, err := range []error{oerr, s.Verify(hashOf(content))} {
					require.ErrorIs(t, err, envelope.ErrCorrupt)
					require.ErrorContains(t, err, file)
					require.ErrorContains(t, err, hashOf(content).String())
				}
				require.NoError(t, s.Verify(hashOf("elsewhere")))

				require.Equal(t, hashOf(content), put(t, s, content))
				require.Len(t, packs(t, dir), 3, "it was stored again")
				for _, s := range []*Store{s, New(dir)} {
					require.NoError(t, s.Verify(hashOf(content)))
				}
				// The intact copy is found even if the damaged pack is searched first.
				require.NoError(t, os.Rename(file, filepath.Join(filepath.Dir(file), "f"+filepath.Base(file)[1:])))
				require.NoError(t, New(dir).Verify(hashOf(content)))
				put(t, New(dir), content)
				require.Len(t, packs(t, dir), 3, "the good copy counts")
			})
		}
	}
}

// While a pack cannot be read, a content that is not found may be in it.
func TestPackUnreadable(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	putTogether(t, New(dir), content)
	missing := hashOf("missing")
	_, err := New(dir).Open(missing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, envelope.ErrCorrupt)
	_, err = New(dir).Size(missing)
	require.ErrorIs(t, err, fs.ErrNotExist)

	file := packs(t, dir)[0]
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for class, spoil := range map[writer.Class]func([]byte){
		writer.ClassCorrupt:       func(data []byte) { data[0]++ },
		writer.ClassFutureVersion: func(data []byte) { data[headerSize-1]++ },
	} {
		spoilt := slices.Clone(data)
		spoil(spoilt)
		require.NoError(t, os.WriteFile(file, spoilt, 0o600))
		s := New(dir)
		_, err := s.Has(missing)
		require.Equal(t, class, writer.ClassOf(err))
		var faults []error
		for _, err := range s.All() {
			faults = append(faults, err)
		}
		require.Len(t, faults, 1)
		require.Equal(t, class, writer.ClassOf(faults[0]))
		require.ErrorContains(t, faults[0], file)
	}
}

// Each call of a reader fails once. The error has the right class, every file is closed, and
// the next read works.
func TestPackReadFaults(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	h := put(t, New(dir), content)
	f := &faultFS{FS: dir}
	require.NoError(t, New(f).Verify(h))
	f.never(t)
	for k, call := range f.calls {
		f := &faultFS{FS: dir, decide: failNth(k+1, fault{err: syscall.EIO})}
		s := New(f)
		err := s.Verify(h)
		f.never(t)
		if !strings.HasPrefix(call, "close") && call != "readdir packs" { // an error of close does not matter, and packs are listed twice
			require.Equal(t, writer.ClassDevice, writer.ClassOf(err), call)
			require.ErrorContains(t, err, h.String())
		}
		f.decide = nil
		require.NoError(t, s.Verify(h), call)
	}
}

// No file is open between two calls.
func TestNoDescriptorStays(t *testing.T) {
	t.Parallel()
	f := &faultFS{FS: openTemp(t)}
	s := New(f)
	putTogether(t, s, contents()...)
	_, err := s.Open(hashOf(content))
	require.NoError(t, err)
	list(t, s)
	_, err = s.Sweep(only(hashOf(content)))
	require.NoError(t, err)
	f.never(t)
}

// A Store finds what other processes store, sweep and rewrite.
func TestPacksOfOthers(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s, other := New(dir), New(dir)
	there, err := s.Has(hashOf(content))
	require.NoError(t, err)
	require.False(t, there)
	putTogether(t, other, content, strings.Repeat("garbage", 100))
	require.NoError(t, s.Verify(hashOf(content)))

	_, err = other.Sweep(only(hashOf(content)))
	require.NoError(t, err)
	data, err := s.Read(hashOf(content), 100)
	require.NoError(t, err)
	require.Equal(t, content, string(data))

	_, err = other.Sweep(nothing)
	require.NoError(t, err)
	there, err = s.Has(hashOf(content))
	require.NoError(t, err)
	require.False(t, there, "a pack that is known and gone has nothing")
	require.ErrorIs(t, s.Verify(hashOf(content)), fs.ErrNotExist)
	put(t, s, content)
	require.NoError(t, other.Verify(hashOf(content)))
}

// A pack vanishes between the listing and the open, several times. The reader finds the next
// one.
func TestPackVanishesUnderReader(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	putTogether(t, New(dir), content, strings.Repeat("garbage 0", 100))
	f := &faultFS{FS: dir}
	s := New(f)
	require.NoError(t, s.Verify(hashOf(content)))
	n := 0
	f.decide = func(_ int, call string) fault {
		if call == "lstat packs/*.pack" && n < attempts-1 {
			n++
			putTogether(t, New(dir), fmt.Sprint("garbage ", n))
			for _, pack := range packs(t, dir) { // rename each, as a rewrite does
				data, err := os.ReadFile(pack)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(pack), newPackName()), data, 0o600))
				require.NoError(t, os.Remove(pack))
			}
		}
		return fault{}
	}
	require.NoError(t, s.Verify(hashOf(content)))
	require.Equal(t, attempts-1, n)
}

// After a failed sync of the packs' folder, contents in its packs are stored again.
func TestPackAfterFailedDirSync(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	f := &faultFS{FS: dir, decide: failCalls(map[string]fault{"syncdir packs": {err: syscall.EIO}})}
	s := New(f)
	_, _, err := s.put(strings.NewReader(content))
	var e *writer.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, writer.NotDurable, e.Outcome)

	f.decide = nil
	_, _, err = s.put(strings.NewReader("another"))
	require.NoError(t, err)
	f.calls = nil
	_, _, err = s.put(strings.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, 1, f.count("rename packs/*.pack"), "a new name is written")
	_, _, err = s.put(strings.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, 1, f.count("rename packs/*.pack"), "that one is durable")
}

// After a failed sync of their names, the folders are made again.
func TestFoldersAfterFailedSync(t *testing.T) {
	t.Parallel()
	f := &faultFS{FS: openTemp(t), decide: failCalls(map[string]fault{"syncdir .": {err: syscall.EIO}})}
	s := New(f)
	_, _, err := s.put(strings.NewReader(content))
	require.Equal(t, writer.ClassDevice, writer.ClassOf(err))
	f.decide, f.calls = nil, nil
	_, err = f.Lstat("packs")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = s.put(strings.NewReader(content))
	require.NoError(t, err)
}

// Several goroutines read and store while others sweep. What is marked is always there.
func TestPacksConcurrent(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	var all []string
	for i := range 200 {
		all = append(all, fmt.Sprint("content ", i))
	}
	for part := range slices.Chunk(all, 20) {
		putTogether(t, New(dir), part...)
	}
	keep := map[Hash]struct{}{}
	for i := 0; i < len(all); i += 7 {
		keep[hashOf(all[i])] = struct{}{}
	}
	var wg sync.WaitGroup
	errs := make([]error, 4)
	readers := make([]*Store, len(errs))
	for i := range readers {
		readers[i] = New(dir)
		require.Len(t, list(t, readers[i]), len(all))
	}
	for i := range errs {
		wg.Go(func() {
			for range 20 {
				for h := range keep {
					errs[i] = errors.Join(errs[i], readers[i].Verify(h))
				}
			}
		})
	}
	swept, err := New(dir).Sweep(func() (map[Hash]struct{}, error) { return keep, nil })
	wg.Wait()
	require.NoError(t, err)
	require.NoError(t, errors.Join(errs...))
	require.Len(t, swept.Hashes, len(all)-len(keep))
	require.Len(t, list(t, New(dir)), len(keep))
}

// Files that are not named like packs are left alone.
func TestPackNames(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	put(t, s, content)
	foreign := []string{"README.pack", filepath.Base(packs(t, dir)[0]) + "~", strings.ToUpper(newPackName())}
	for _, name := range foreign {
		require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), "packs", name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir.Name(), "packs", newPackName()), 0o700))
	require.NoError(t, os.Symlink("README.pack", filepath.Join(dir.Name(), "packs", newPackName())))
	require.Len(t, list(t, New(dir)), 1)
	_, err := s.Sweep(nothing)
	require.NoError(t, err)
	require.Len(t, packs(t, dir), len(foreign)+2)
	a, b := newPackName(), newPackName()
	require.True(t, isPackName(a) && isPackName(b))
	require.LessOrEqual(t, a[:16], b[:16])
}
