package blob

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// contents returns small and large contents, one of them twice, and one that is all zeros.
func contents() []string {
	all := []string{content, content, "", strings.Repeat("\x00", 3*chunk+5), strings.Repeat("large", chunk)}
	for i := range 100 {
		all = append(all, fmt.Sprint("content ", i))
	}
	return all
}

func putAll(b *Batch, all []string) error {
	for _, c := range all {
		h, n, err := b.Put(strings.NewReader(c), Hash{})
		if err != nil {
			return err
		}
		if h != hashOf(c) || n != int64(len(c)) {
			return fmt.Errorf("%v, %d bytes", h, n)
		}
	}
	return nil
}

// Each file is synced once, then all are renamed, then each folder is synced once. Small
// contents are in one pack.
func TestBatchOrder(t *testing.T) {
	t.Parallel()
	f := &faultFS{FS: openTemp(t)}
	s := New(f)
	h := hold(t, s)
	b := h.Batch()
	require.NoError(t, putAll(b, contents()))
	require.Zero(t, f.count("rename packs/*.pack"), "nothing has its name before Commit")
	require.NoError(t, b.Commit())
	b.Discard()
	require.NoError(t, h.Release())
	f.never(t)

	folders := map[string]bool{}
	lastSync, firstRename, lastRename, firstSyncDir := -1, -1, -1, -1
	for i, call := range f.calls {
		switch {
		case strings.HasPrefix(call, "sync "):
			lastSync = i
		case strings.HasPrefix(call, "rename "):
			lastRename = i
			if firstRename < 0 {
				firstRename = i
			}
		case strings.HasPrefix(call, "syncdir ") && call != "syncdir .":
			require.False(t, folders[call], call)
			folders[call] = true
			if firstSyncDir < 0 {
				firstSyncDir = i
			}
		}
	}
	require.Less(t, lastSync, firstRename)
	require.Less(t, lastRename, firstSyncDir)
	require.Len(t, folders, 3, "of the packs and two large contents")
	require.Equal(t, 3, f.count("sync .tmp-blob-*"))
	require.Equal(t, 1, f.count("rename packs/*.pack"))
	require.Equal(t, 1, f.count("syncdir ."))
	for _, c := range contents() {
		require.NoError(t, s.Verify(hashOf(c)))
	}
	require.Empty(t, temps(t, f))

	// Existing contents are not written again. The Store that made the pack durable need not
	// sync the folder; another Store does.
	for _, again := range []*Store{s, New(f)} {
		f.calls = nil
		b = hold(t, again).Batch()
		require.NoError(t, putAll(b, []string{content, content}))
		require.NoError(t, b.Commit())
		require.False(t, slices.ContainsFunc(f.calls, func(c string) bool { return strings.Contains(c, ".tmp-") }))
		require.Equal(t, again != s, slices.Contains(f.calls, "syncdir packs"))
	}
}

// Each call fails once. What Commit acknowledged is stored, nothing is left behind, and
// storing again works.
func TestBatchFaults(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{-1, PackMax} {
		batchFaults(t, limit)
	}
}

func batchFaults(t *testing.T, limit int) {
	all := []string{content, "another", strings.Repeat("\x00", 2*chunk), "third"}
	for n := 1; ; n++ {
		dir := openTemp(t)
		f := &faultFS{FS: dir, decide: failNth(n, fault{err: syscall.EIO, done: n%2 == 0})}
		h := hold(t, loose(dir)) // not through f: the lock's calls have tests of their own
		h.s = NewPacking(f, limit)
		b := h.Batch()
		err := putAll(b, all)
		if err == nil {
			err = b.Commit()
		}
		b.Discard()
		f.never(t)
		if n > len(f.calls) {
			require.NoError(t, err)
			require.Greater(t, n, 15)
			break
		}
		call := f.calls[n-1]
		if err == nil {
			require.False(t, strings.HasPrefix(call, "sync") || strings.HasPrefix(call, "close .tmp"), call)
			for _, c := range all {
				require.NoError(t, loose(dir).Verify(hashOf(c)), call)
			}
		} else {
			var e *writer.Error
			require.ErrorAs(t, err, &e, call)
			require.ErrorIs(t, err, syscall.EIO, call)
			require.Error(t, b.Commit(), call)
			_, _, perr := b.Put(strings.NewReader(content), Hash{})
			require.Error(t, perr, call)
		}
		lost := n%2 == 0 && strings.HasPrefix(call, "open .tmp") // the file was created, and the answer got lost
		if !lost && !strings.HasPrefix(call, "remove") {
			require.Empty(t, temps(t, dir), call)
		}
		require.NoError(t, h.Release())
		for _, c := range all {
			h := put(t, New(dir), c)
			require.NoError(t, New(dir).Verify(h))
			_, err := New(dir).Sweep(only(h))
			require.NoError(t, err)
			require.Equal(t, []Hash{h}, list(t, New(dir)))
		}
	}
}

func TestBatchOver(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	h := hold(t, loose(dir))
	b := h.Batch()
	own := errors.New("the reader's own")
	for _, r := range []io.Reader{iotest.ErrReader(own), io.MultiReader(bytes.NewReader(make([]byte, 2*chunk)), iotest.ErrReader(own))} {
		_, _, err := b.Put(r, Hash{})
		require.ErrorIs(t, err, own)
	}
	_, _, err := b.Put(stuck{}, Hash{})
	require.ErrorIs(t, err, io.ErrNoProgress)
	require.NoError(t, putAll(b, []string{content}))
	b.Discard()
	require.Empty(t, temps(t, dir))
	require.ErrorIs(t, b.Commit(), writer.ErrInvalid)
	_, _, err = b.Put(strings.NewReader(content), Hash{})
	require.ErrorIs(t, err, writer.ErrInvalid)
	b = h.Batch()
	require.NoError(t, h.Release())
	require.ErrorIs(t, b.Commit(), writer.ErrInvalid)
	has, err := h.s.Has(hashOf(content))
	require.NoError(t, err)
	require.False(t, has)
}

// An empty or damaged file is replaced. A folder in a blob's place is refused.
func TestBatchHeals(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	prepare(t, dir, "husk")
	b := hold(t, loose(dir)).Batch()
	require.NoError(t, putAll(b, []string{content}))
	require.NoError(t, b.Commit())
	require.NoError(t, loose(dir).Verify(hashOf(content)))

	require.NoError(t, os.Remove(filepath.Join(dir.Name(), hashOf(content).name())))
	require.NoError(t, os.Mkdir(filepath.Join(dir.Name(), hashOf(content).name()), 0o700))
	b = hold(t, loose(dir)).Batch()
	require.NoError(t, putAll(b, []string{content}))
	require.Error(t, b.Commit())
	require.Empty(t, temps(t, dir))
}

// A content that the caller vouches for is not verified.
func TestBatchStored(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("large", chunk)
	for _, c := range []string{content, large} {
		f := &faultFS{FS: openTemp(t)}
		s := loose(f)
		b := hold(t, s).Batch()
		h, _, err := b.Put(strings.NewReader(c), hashOf(c))
		require.NoError(t, err)
		require.Equal(t, hashOf(c), h)
		require.NoError(t, b.Commit())
		require.Zero(t, f.count("lstat "+h.name())+f.count("syncdir "+h.shard()))
		require.Empty(t, temps(t, f))
	}
}

func TestBatchConcurrent(t *testing.T) {
	t.Parallel()
	dir := openTemp(t)
	s := New(dir)
	b := hold(t, s).Batch()
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = putAll(b, contents()) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, b.pack(hashOf(content), []byte(content)), "it was looked for before somebody else put it")
	require.NoError(t, b.Commit())
	require.Len(t, list(t, New(dir)), len(contents())-1)
	for _, c := range contents() {
		require.NoError(t, s.Verify(hashOf(c)))
	}
	require.Empty(t, temps(t, dir))
}
