package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/codec"
)

const content = "the content of a blob\n"

func hashOf(s string) Hash { return sha256.Sum256([]byte(s)) }

// before has the contents that the blob's file may have when a Put begins.
var before = map[string]string{"absent": "", "whole": content, "husk": "", "damaged": "tHe content of a blob\n"}

func prepare(t testing.TB, dir writer.FS, state string) {
	t.Helper()
	if state != "absent" {
		plant(t, dir, hashOf(content), before[state])
	}
}

func TestPut(t *testing.T) {
	for state := range before {
		for _, c := range []string{content, ""} {
			t.Run(fmt.Sprintf("%s/%d bytes", state, len(c)), func(t *testing.T) {
				dir := openTemp(t)
				prepare(t, dir, state)
				s := loose(dir)
				sum := put(t, s, c)
				require.NoError(t, s.Verify(sum))
				require.Equal(t, c, tree(t, dir)[sum.name()])
				require.Empty(t, temps(t, dir))
				there, err := s.Has(sum)
				require.NoError(t, err)
				require.True(t, there)
				info, err := os.Stat(filepath.Join(dir.Name(), sum.name()))
				require.NoError(t, err)
				require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
			})
		}
	}
}

// The order of the calls makes a Put survive a power cut: the data is synced before the
// name, the folder's name before the blob's, and Commit returns after the last sync.
func TestPutOrder(t *testing.T) {
	h := hashOf(content)
	write := []string{"open .tmp-blob-*", "write .tmp-blob-*"}
	others := []string{"lstat " + h.file(codec.Zstd), "lstat " + h.file(codec.Gzip)}
	look := slices.Concat([]string{"lstat " + h.name()}, others)
	read := slices.Concat([]string{"lstat " + h.name(), "open " + h.name(), "fstat " + h.name()}, others, []string{"read " + h.name(), "close " + h.name()})
	sync := []string{"sync .tmp-blob-*", "close .tmp-blob-*"}
	drop := []string{"close .tmp-blob-*", "remove .tmp-blob-*"}
	made := []string{"mkdir " + h.shard(), "syncdir ."}
	there := []string{"mkdir " + h.shard(), "lstat " + h.shard(), "syncdir ."}
	rename := []string{"rename " + h.name(), "syncdir " + h.shard()}
	for state, want := range map[string][]string{
		"absent":  slices.Concat(write, look, sync, made, rename),
		"whole":   slices.Concat(write, read, drop, there, rename[1:]),
		"damaged": slices.Concat(write, read, sync, there, rename),
	} {
		t.Run(state, func(t *testing.T) {
			dir := openTemp(t)
			prepare(t, dir, state)
			f := &faultFS{FS: dir}
			_, _, err := loose(f).put(strings.NewReader(content))
			require.NoError(t, err)
			require.Equal(t, want, f.calls)
		})
	}
}

// Each call fails once, in every way.
func TestPutFaults(t *testing.T) {
	h := hashOf(content)
	for state, old := range before {
		t.Run(state, func(t *testing.T) {
			dir := openTemp(t)
			prepare(t, dir, state)
			f := &faultFS{FS: dir}
			_, _, err := loose(f).put(strings.NewReader(content))
			require.NoError(t, err)
			for k, call := range f.calls {
				for errno, class := range classes {
					for _, done := range []bool{false, true} {
						t.Run(fmt.Sprintf("%d %s/%v/%v", k+1, strings.ReplaceAll(call, "/", "_"), errno, done), func(t *testing.T) {
							t.Parallel()
							dir := openTemp(t)
							prepare(t, dir, state)
							f := &faultFS{FS: dir, decide: failNth(k+1, fault{err: errno, done: done})}
							_, _, err := loose(f).put(strings.NewReader(content))
							f.never(t)
							got, there := tree(t, dir)[h.name()]
							if err == nil {
								require.Equal(t, content, got)
								last := f.calls[len(f.calls)-1]
								require.Equal(t, "syncdir "+h.shard(), last)
								must := []string{"sync .tmp-blob-*", "syncdir .", "syncdir " + h.shard()}
								if state != "whole" { // an intact blob is not written again
									must = append(must, "close .tmp-blob-*")
								}
								require.NotContains(t, must, call, "a failed sync or close must show")
							} else {
								var e *writer.Error
								require.ErrorAs(t, err, &e)
								require.ErrorIs(t, err, errno)
								require.Equal(t, class, e.Class)
								require.Contains(t, e.Path, dir.Name())
								switch e.Outcome {
								case writer.NotCommitted:
									require.Equal(t, state != "absent", there)
									require.Equal(t, old, got)
								case writer.NotDurable:
									require.Equal(t, content, got)
								default:
									t.Fatalf("one fault leaves no doubt: %v", err)
								}
							}
							lost := done && strings.HasPrefix(call, "open .tmp") // the answer got lost
							if !lost && !strings.HasPrefix(call, "remove") {
								require.Empty(t, temps(t, dir))
							}
							recovered(t, dir)
						})
					}
				}
			}
		})
	}
}

// The process is killed before each call. The file then has its old content or the blob.
func TestPutKilled(t *testing.T) {
	h := hashOf(content)
	for state, old := range before {
		for k := 1; ; k++ {
			dir := openTemp(t)
			prepare(t, dir, state)
			f := &faultFS{FS: dir, decide: failFrom(k, syscall.EIO)}
			_, _, err := loose(f).put(strings.NewReader(content))
			f.never(t)
			got, there := tree(t, dir)[h.name()]
			if err == nil {
				require.Equal(t, content, got)
				require.Greater(t, k, 8)
				break
			}
			if there {
				require.Contains(t, []string{old, content}, got)
			}
			recovered(t, dir)
		}
	}
}

// recovered checks that a Put and a sweep repair whatever is left.
func recovered(t testing.TB, dir writer.FS) {
	t.Helper()
	s := loose(dir)
	h := put(t, s, content)
	require.NoError(t, s.Verify(h))
	_, err := s.Sweep(func() (map[Hash]struct{}, error) { return map[Hash]struct{}{h: {}}, nil })
	require.NoError(t, err)
	require.Equal(t, map[string]string{lockName: "", h.name(): content}, tree(t, dir))
}

func TestPutShortWrites(t *testing.T) {
	dir := openTemp(t)
	sum, size, err := loose(&faultFS{FS: dir, chunk: 3}).put(strings.NewReader(content))
	require.NoError(t, err)
	require.EqualValues(t, len(content), size)
	require.Equal(t, content, tree(t, dir)[sum.name()])

	_, _, err = loose(&faultFS{FS: dir, chunk: -1}).put(strings.NewReader("another"))
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Empty(t, temps(t, dir))
}

// A transient failure of open or rename is retried; a lasting one is returned.
func TestPutTransient(t *testing.T) {
	h := hashOf(content)
	for _, call := range []string{"open .tmp-blob-*", "rename " + h.name()} {
		dir := openTemp(t)
		f := &faultFS{FS: dir}
		f.decide = func(_ int, c string) fault {
			if c == call && f.count(call) <= 2 {
				return fault{err: syscall.EMFILE}
			}
			return fault{}
		}
		_, _, err := loose(f).put(strings.NewReader(content))
		require.NoError(t, err)
		require.Equal(t, 3, f.count(call))

		f = &faultFS{FS: openTemp(t), decide: failCalls(map[string]fault{call: {err: syscall.EMFILE}})}
		_, _, err = loose(f).put(strings.NewReader(content))
		require.ErrorIs(t, err, syscall.EMFILE)
		require.Empty(t, temps(t, f))
	}
}

// When the answer of the rename got lost, the blob is read: if it is intact it is stored, and
// if it cannot be read the outcome is unknown.
func TestPutRenameUnknown(t *testing.T) {
	h := hashOf(content)
	dir := openTemp(t)
	prepare(t, dir, "damaged")
	eio := fault{err: syscall.EIO}
	f := &faultFS{FS: dir, decide: failCalls(map[string]fault{
		"rename " + h.name(): {err: syscall.EIO, done: true}, "read " + h.name(): eio, "remove .tmp-blob-*": eio,
	})}
	_, _, err := loose(f).put(strings.NewReader(content))
	var e *writer.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, writer.OutcomeUnknown, e.Outcome)
	require.ErrorContains(t, err, h.String())
	recovered(t, dir)
}

// After a failed sync of the folder a later successful one proves nothing, so the file is
// written again.
func TestPutAfterFailedDirSync(t *testing.T) {
	h := hashOf(content)
	dir := openTemp(t)
	f := &faultFS{FS: dir, decide: failCalls(map[string]fault{"syncdir " + h.shard(): {err: syscall.EIO}})}
	s := loose(f)
	_, _, err := s.put(strings.NewReader(content))
	var e *writer.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, writer.NotDurable, e.Outcome)
	require.Equal(t, 1, f.count("syncdir "+h.shard()))

	f.decide = failCalls(map[string]fault{"rename " + h.name(): {err: syscall.EIO}})
	_, _, err = s.put(strings.NewReader(content))
	require.ErrorAs(t, err, &e)
	require.Equal(t, writer.NotDurable, e.Outcome, "the old name is no better than before")

	f.decide, f.calls = nil, nil
	_, _, err = s.put(strings.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, 1, f.count("rename "+h.name()))
	require.Empty(t, temps(t, dir))
}

// Each Store syncs the folders' own names once, and again after a folder vanished.
func TestPutShardOnce(t *testing.T) {
	f := &faultFS{FS: openTemp(t)}
	s := loose(f)
	h := hashOf(content)
	for range 3 {
		_, _, err := s.put(strings.NewReader(content))
		require.NoError(t, err)
	}
	require.Equal(t, 1, f.count("syncdir ."))
	require.Equal(t, 3, f.count("syncdir "+h.shard()))

	require.NoError(t, os.RemoveAll(filepath.Join(f.Name(), h.shard())))
	_, _, err := s.put(strings.NewReader(content))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = s.put(strings.NewReader(content))
	require.NoError(t, err)
	require.Equal(t, 2, f.count("syncdir ."))
}

// A file of another kind in the place of a blob or its folder is never written to. A symlink
// to a file is replaced; a folder has to be moved away.
func TestPutRefused(t *testing.T) {
	h := hashOf(content)
	for name, plant := range map[string]func(root string) error{
		"symlink to the content": func(root string) error {
			if err := os.WriteFile(filepath.Join(root, "elsewhere"), []byte(content), 0o600); err != nil {
				return err
			}
			return os.Symlink("../elsewhere", filepath.Join(root, h.name()))
		},
		"dangling symlink": func(root string) error { return os.Symlink("../../outside", filepath.Join(root, h.name())) },
		"folder":           func(root string) error { return os.Mkdir(filepath.Join(root, h.name()), 0o700) },
		"file for a folder": func(root string) error {
			if err := os.Remove(filepath.Join(root, h.shard())); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, h.shard()), nil, 0o600)
		},
		"symlink for a folder": func(root string) error {
			if err := os.Rename(filepath.Join(root, h.shard()), filepath.Join(root, "other")); err != nil {
				return err
			}
			return os.Symlink("other", filepath.Join(root, h.shard()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := openTemp(t)
			require.NoError(t, os.Mkdir(filepath.Join(dir.Name(), h.shard()), 0o700))
			require.NoError(t, plant(dir.Name()))
			s := loose(dir)
			_, err := s.Open(h)
			require.Error(t, err)
			_, _, err = s.put(strings.NewReader(content))
			if strings.HasSuffix(name, "symlink") || strings.HasPrefix(name, "symlink to") {
				require.NoError(t, err)
				require.NoError(t, s.Verify(h))
			} else {
				require.Error(t, err)
			}
			_, serr := os.Lstat(filepath.Join(dir.Name(), "..", "outside"))
			require.ErrorIs(t, serr, fs.ErrNotExist)
			list, rerr := dir.ReadDir(".")
			require.NoError(t, rerr)
			for _, e := range list {
				require.False(t, strings.HasPrefix(e.Name(), ".tmp-"))
			}
		})
	}
}

// When the reader fails, Put returns that error and stores nothing.
func TestPutReader(t *testing.T) {
	dir := openTemp(t)
	s := loose(dir)
	own := errors.New("the reader's own")
	for _, r := range []io.Reader{
		iotest.ErrReader(own),
		io.MultiReader(strings.NewReader(content), iotest.ErrReader(fmt.Errorf("%w: %w", own, io.EOF))),
	} {
		_, _, err := s.put(r)
		require.ErrorIs(t, err, own)
		var e *writer.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, writer.NotCommitted, e.Outcome)
		require.Empty(t, tree(t, dir))
	}
	_, _, err := s.put(stuck{})
	require.ErrorIs(t, err, io.ErrNoProgress)

	f := &faultFS{FS: dir}
	require.Panics(t, func() { _, _, _ = loose(f).put(panics{}) })
	f.never(t)
	require.Empty(t, tree(t, dir))

	for _, r := range []io.Reader{
		iotest.OneByteReader(strings.NewReader(content)), iotest.DataErrReader(strings.NewReader(content)), iotest.HalfReader(strings.NewReader(content)),
	} {
		sum, _, err := s.put(r)
		require.NoError(t, err)
		require.Equal(t, hashOf(content), sum)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

type panics struct{}

func (panics) Read([]byte) (int, error) { panic("a reader's") }

// Many goroutines store the same content at once, in several Stores, over an empty file.
func TestPutConcurrent(t *testing.T) {
	dir := openTemp(t)
	prepare(t, dir, "husk")
	var wg sync.WaitGroup
	errs := make([]error, 16)
	stores := []*Store{loose(dir), loose(openDir(t, dir.Name()))}
	for i := range errs {
		wg.Go(func() {
			s := stores[i%len(stores)]
			h, err := s.Hold(context.Background())
			if err != nil {
				errs[i] = err
				return
			}
			b := h.Batch()
			sum, size, err := b.Put(strings.NewReader(content), Hash{})
			err = errors.Join(err, b.Commit())
			if err == nil && (sum != hashOf(content) || size != int64(len(content))) {
				err = fmt.Errorf("%v, %d bytes", sum, size)
			}
			errs[i] = errors.Join(err, s.Verify(hashOf(content)), h.Release())
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, map[string]string{lockName: "", hashOf(content).name(): content}, tree(t, dir))
}

// Storing and reading a large content takes a few buffers of memory.
func TestPutLarge(t *testing.T) {
	const size = 128 << 20
	dir := openTemp(t)
	s := loose(dir)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	sum, n, err := s.put(io.LimitReader(pattern{}, size))
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.NoError(t, s.Verify(sum))
	runtime.ReadMemStats(&end)
	require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(4<<20))
}

type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(i * 7)
	}
	return len(p), nil
}

// Release waits for the Puts in progress, and nothing is stored after it.
func TestHoldRelease(t *testing.T) {
	s := loose(openTemp(t))
	h := hold(t, s)
	r, w := io.Pipe()
	stored := make(chan error, 1)
	go func() {
		_, _, err := h.Batch().Put(r, Hash{})
		stored <- err
	}()
	_, err := io.WriteString(w, content) // returns when Put has read it
	require.NoError(t, err)
	released := make(chan error, 1)
	go func() { released <- h.Release() }()
	select {
	case <-released:
		t.Fatal("released under a Put")
	case <-time.After(20 * time.Millisecond):
	}
	_, err = s.Sweep(nothing)
	require.ErrorIs(t, err, writer.ErrBusy)
	require.NoError(t, w.Close())
	require.NoError(t, <-stored)
	require.NoError(t, <-released)
	require.NoError(t, h.Release())
	_, _, err = h.Batch().Put(strings.NewReader(content), Hash{})
	require.ErrorIs(t, err, writer.ErrInvalid)
}
