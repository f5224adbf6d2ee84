package blob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/envelope"
)

func nothing() (map[Hash]struct{}, error) { return nil, nil }

func only(hashes ...Hash) func() (map[Hash]struct{}, error) {
	return func() (map[Hash]struct{}, error) {
		m := map[Hash]struct{}{}
		for _, h := range hashes {
			m[h] = struct{}{}
		}
		return m, nil
	}
}

func TestSweep(t *testing.T) {
	dir := openTemp(t)
	s := loose(dir)
	var keep, drop []Hash
	var size int64
	for i := range 40 {
		c := strings.Repeat("x", i)
		if h := put(t, s, c); i%3 == 0 {
			keep = append(keep, h)
		} else {
			drop = append(drop, h)
			size += int64(len(c))
		}
	}
	slices.SortFunc(drop, func(a, b Hash) int { return strings.Compare(a.String(), b.String()) })
	// Foreign files are left alone. The temporary files of a dead writer are removed.
	foreign := []string{"README", drop[0].shard() + "/README", drop[0].shard() + "/" + strings.ToUpper(hashOf("other").String()[2:]), "zz"}
	for _, name := range foreign {
		require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), name), nil, 0o600))
	}
	link := drop[1].shard() + "/" + strings.Repeat("0", 62)
	require.NoError(t, os.Symlink("../README", filepath.Join(dir.Name(), link)))
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), writer.TempName("blob")), nil, 0o600))

	swept, err := s.Sweep(only(keep...))
	require.NoError(t, err)
	require.Equal(t, Swept{Hashes: drop, Bytes: size}, swept)
	left := tree(t, dir)
	for _, h := range keep {
		require.NoError(t, s.Verify(h))
		delete(left, h.name())
	}
	for _, name := range append(foreign, link, lockName) {
		require.Contains(t, left, name)
		delete(left, name)
	}
	require.Empty(t, left)

	swept, err = s.Sweep(only(keep...))
	require.NoError(t, err)
	require.Empty(t, swept)
	for i := range 40 {
		put(t, s, strings.Repeat("x", i)) // the folders still exist
	}
}

func TestSweepOfLockedStoreIsBusy(t *testing.T) {
	dir := openTemp(t)
	s := loose(dir)
	put(t, s, content)
	h1, h2 := hold(t, s), hold(t, loose(openDir(t, dir.Name())))
	called := false
	mark := func() (map[Hash]struct{}, error) { called = true; return nil, nil }
	for _, h := range []*Hold{h1, h2} {
		begin := time.Now()
		_, err := s.Sweep(mark)
		require.ErrorIs(t, err, writer.ErrBusy)
		require.Less(t, time.Since(begin), time.Second)
		var e *writer.Error
		require.ErrorAs(t, err, &e)
		require.False(t, called)
		require.NoError(t, h.Release())
	}
	_, err := s.Sweep(func() (map[Hash]struct{}, error) {
		_, err := s.Sweep(mark)
		require.ErrorIs(t, err, writer.ErrBusy, "another sweep")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Millisecond, errors.New("the cause"))
		defer cancel()
		_, err = s.Hold(ctx)
		require.ErrorIs(t, err, writer.ErrBusy)
		require.ErrorContains(t, err, "the cause")
		return mark()
	})
	require.NoError(t, err)
	require.True(t, called)
	require.NotContains(t, tree(t, dir), hashOf(content).name())
}

// Hold waits for the end of a sweep.
func TestHoldWaits(t *testing.T) {
	s := loose(openTemp(t))
	held := make(chan error, 1)
	_, err := s.Sweep(func() (map[Hash]struct{}, error) {
		go func() {
			h, err := s.Hold(context.Background())
			if err == nil {
				err = h.Release()
			}
			held <- err
		}()
		select {
		case <-held:
			t.Error("held during a sweep")
		case <-time.After(20 * time.Millisecond):
		}
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, <-held)
}

func TestSweepMarkFails(t *testing.T) {
	dir := openTemp(t)
	s := loose(dir)
	put(t, s, content)
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), writer.TempName("blob")), nil, 0o600))
	all := tree(t, dir)
	own := &writer.Error{Op: "read manifest", Path: "m", Class: writer.ClassCorrupt, Err: errors.New("damaged")}
	_, err := s.Sweep(func() (map[Hash]struct{}, error) { return map[Hash]struct{}{}, own })
	require.ErrorIs(t, err, own)
	require.ErrorIs(t, err, envelope.ErrCorrupt)
	require.Equal(t, all, tree(t, dir))

	require.Panics(t, func() { _, _ = s.Sweep(func() (map[Hash]struct{}, error) { panic("mark's") }) })
	require.Equal(t, all, tree(t, dir))
	require.NoError(t, hold(t, s).Release(), "the lock is free again")
}

// Each call of a sweep fails once, in every way. The marked blobs stay, the lock is
// released, and the next sweep completes the work.
func TestSweepFaults(t *testing.T) {
	setup := func(t testing.TB) (writer.FS, Hash) {
		dir := openTemp(t)
		s := loose(dir)
		keep := put(t, s, "keep")
		put(t, s, "drop")
		put(t, s, "drop too")
		require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), writer.TempName("blob")), nil, 0o600))
		return dir, keep
	}
	dir, keep := setup(t)
	f := &faultFS{FS: dir}
	_, err := loose(f).Sweep(only(keep))
	require.NoError(t, err)
	for k, call := range f.calls {
		for errno, class := range classes {
			for _, done := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d %s/%v/%v", k+1, strings.ReplaceAll(call, "/", "_"), errno, done), func(t *testing.T) {
					t.Parallel()
					dir, keep := setup(t)
					f := &faultFS{FS: dir, decide: failNth(k+1, fault{err: errno, done: done})}
					_, err := loose(f).Sweep(only(keep))
					f.never(t)
					if err != nil {
						var e *writer.Error
						require.ErrorAs(t, err, &e)
						require.Equal(t, class, e.Class)
						require.ErrorIs(t, err, errno)
					}
					require.NoError(t, loose(dir).Verify(keep))
					_, err = loose(dir).Sweep(only(keep))
					require.NoError(t, err)
					require.Equal(t, map[string]string{lockName: "", keep.name(): "keep"}, tree(t, dir))
				})
			}
		}
	}
}

// Each call of a Hold fails once, in every way.
func TestHoldFaults(t *testing.T) {
	for _, there := range []bool{false, true} {
		setup := func(t testing.TB) writer.FS {
			dir := openTemp(t)
			if there {
				require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), lockName), nil, 0o600))
			}
			return dir
		}
		use := func(dir writer.FS) error {
			h, err := loose(dir).Hold(context.Background())
			if err != nil {
				return err
			}
			return h.Release()
		}
		f := &faultFS{FS: setup(t)}
		require.NoError(t, use(f))
		for k, call := range f.calls {
			for errno, class := range classes {
				dir := setup(t)
				f := &faultFS{FS: dir, decide: failNth(k+1, fault{err: errno})}
				err := use(f)
				f.never(t)
				if err == nil {
					require.Equal(t, writer.ClassTransient, class, "%s: %v", call, errno)
				} else {
					var e *writer.Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, class, e.Class)
				}
				_, err = loose(dir).Sweep(nothing)
				require.NoError(t, err, "the lock is free after %s: %v", call, errno)
			}
		}
	}
}

func TestLockRefused(t *testing.T) {
	dir := openTemp(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir.Name(), "other"), nil, 0o600))
	require.NoError(t, os.Symlink("other", filepath.Join(dir.Name(), lockName)))
	_, err := loose(dir).Hold(context.Background())
	require.ErrorIs(t, err, writer.ErrInvalid)
	_, err = loose(dir).Sweep(nothing)
	require.ErrorIs(t, err, writer.ErrInvalid)
}

// The lock file is replaced between its open and the look at its name. The lock of the old
// file must not count.
func TestLockReplaced(t *testing.T) {
	for _, times := range []int{1, attempts} {
		dir := openTemp(t)
		f := &faultFS{FS: dir}
		f.decide = func(_ int, call string) fault {
			if call == "rflock "+lockName && f.count(call) <= times {
				return fault{}
			}
			if call == "fstat "+lockName && f.count("rflock "+lockName) > 0 && f.count("rflock "+lockName) <= times {
				_ = os.Remove(filepath.Join(dir.Name(), lockName))
				_ = os.WriteFile(filepath.Join(dir.Name(), lockName), nil, 0o600)
			}
			return fault{}
		}
		h, err := loose(f).Hold(context.Background())
		if times == attempts {
			require.Equal(t, writer.ClassFenced, writer.ClassOf(err))
			continue
		}
		require.NoError(t, err)
		_, err = loose(dir).Sweep(nothing)
		require.ErrorIs(t, err, writer.ErrBusy)
		require.NoError(t, h.Release())
	}
}

// While goroutines store and sweep at once, what a manifest names is never swept.
func TestSweepConcurrent(t *testing.T) {
	dir := openTemp(t)
	var mu sync.Mutex
	manifest := map[Hash]struct{}{}
	mark := func() (map[Hash]struct{}, error) {
		mu.Lock()
		defer mu.Unlock()
		m := map[Hash]struct{}{}
		for h := range manifest {
			m[h] = struct{}{}
		}
		return m, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var sweeper, storers sync.WaitGroup
	sweeper.Go(func() {
		for ctx.Err() == nil {
			if _, err := loose(dir).Sweep(mark); err != nil && !errors.Is(err, writer.ErrBusy) {
				t.Error(err)
			}
		}
	})
	for i := range 4 {
		storers.Go(func() {
			s := loose(dir)
			for j := range 20 {
				h, err := s.Hold(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				b := h.Batch()
				sum, _, err := b.Put(strings.NewReader(fmt.Sprint(i/2, j)), Hash{}) // two goroutines store each content
				if err := errors.Join(err, b.Commit()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				manifest[sum] = struct{}{}
				mu.Unlock()
				if err := errors.Join(h.Release(), s.Verify(sum)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	storers.Wait()
	cancel()
	sweeper.Wait()
	for h := range manifest {
		require.NoError(t, loose(dir).Verify(h))
	}
}
