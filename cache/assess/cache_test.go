package assess_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

var key = assess.Key{Name: "lint", Input: []string{"make", "lint"}}

// world is a folder, a cache and a clock that is far ahead of the folder's files.
type world struct {
	t     *testing.T
	root  string
	disk  *crashfs.Disk
	cache *assess.Cache
	now   time.Time
	runs  int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), disk: crashfs.New(crashfs.Ext4), now: time.Now().Add(time.Hour)}
	w.cache = assess.OpenOn(w.disk.FS(), w.clock)
	w.write("a.go", "a")
	w.write("dir/b.go", "b")
	w.write("dir/c.md", "c")
	w.write(".git/index", "x")
	return w
}

func (w *world) clock() time.Time { return w.now }

func (w *world) write(name, content string) {
	w.t.Helper()
	name = filepath.Join(w.root, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(w.t, os.WriteFile(name, []byte(content), 0o600))
}

// ask asks for the assessment and says whether it was remembered.
func (w *world) ask(look assess.Look) bool {
	w.t.Helper()
	r, hit, err := w.cache.GetOrCompute(w.t.Context(), key, time.Minute, look, func(context.Context) ([]byte, error) {
		w.runs++
		return []byte("fine"), nil
	})
	require.NoError(w.t, err)
	require.Equal(w.t, "fine", string(r.Data))
	return hit
}

func TestHitOnlyIfNothingChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := assess.FilesAt(w.root, w.clock)
	goFiles := assess.FilesAt(w.root, w.clock, "**/*.go")
	w.write("z.go", "z")
	old := time.Now().Add(-time.Hour)
	for _, tt := range []struct {
		what   string
		change func()
		hit    bool
	}{
		{"nothing", func() {}, true},
		{"changed", func() { w.write("dir/b.go", "bb") }, false},
		{"same length", func() { w.write("dir/b.go", "cc") }, false},
		{"same length and time", func() {
			w.write("dir/b.go", "dd")
			require.NoError(t, os.Chtimes(filepath.Join(w.root, "dir/b.go"), old, old))
		}, false},
		{"added", func() { w.write("dir/d.go", "") }, false},
		{"removed", func() { require.NoError(t, os.Remove(filepath.Join(w.root, "a.go"))) }, false},
		{"renamed", func() {
			require.NoError(t, os.Rename(filepath.Join(w.root, "dir/d.go"), filepath.Join(w.root, "dir/e.go")))
		}, false},
		{"the last one removed", func() { require.NoError(t, os.Remove(filepath.Join(w.root, "z.go"))) }, false},
		{"mode", func() { require.NoError(t, os.Chmod(filepath.Join(w.root, "dir/b.go"), 0o700)) }, false},
		{"a symlink in its place", func() {
			name := filepath.Join(w.root, "dir/b.go")
			require.NoError(t, os.Rename(name, name+".was"))
			require.NoError(t, os.Symlink(name+".was", name))
		}, false},
		{"outside the patterns", func() { w.write("dir/c.md", "changed") }, true},
		{"below .git", func() { w.write(".git/index", "changed") }, true},
	} {
		w.ask(goFiles)
		tt.change()
		require.Equal(t, tt.hit, w.ask(goFiles), tt.what)
		require.True(t, w.ask(goFiles), tt.what)
	}
	require.False(t, w.ask(look), "other files")
	w.write("dir/c.md", "again")
	require.False(t, w.ask(look))
	w.write(".git/index", "again")
	require.True(t, w.ask(look))
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for pattern, hit := range map[string]bool{"dir": false, "./dir/": false, "*.go": true, "**/b.go": false, "d*/b.*": false, "dir/*.md": true, "{x,dir}/**": false} {
		look, err := assess.Files(w.root, []string{pattern})
		require.NoError(t, err)
		w.ask(look)
		w.ask(look)
		w.write("dir/b.go", pattern)
		require.Equal(t, hit, w.ask(look), pattern)
	}
	_, err := assess.Files(w.root, []string{"[a"})
	require.ErrorIs(t, err, assess.ErrPattern)
}

// Files that were just written are compared by content, until they need not be.
func TestRacy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now()
	look := assess.FilesAt(w.root, w.clock)
	require.False(t, w.ask(look))
	w.write("a.go", "a") // another time, the same content
	require.True(t, w.ask(look))
	w.write("a.go", "b")
	require.False(t, w.ask(look))
	require.NoError(t, os.Chmod(filepath.Join(w.root, "a.go"), 0o700))
	require.False(t, w.ask(look), "the same content, another mode")
	w.now = w.now.Add(10 * time.Second)
	require.True(t, w.ask(look))
	w.write("a.go", "b") // now its times count
	require.False(t, w.ask(look))
}

func TestKeyAndTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := assess.FilesAt(w.root, w.clock)
	ask := func(k assess.Key, ttl time.Duration) bool {
		_, hit, err := w.cache.GetOrCompute(t.Context(), k, ttl, look, func(context.Context) ([]byte, error) { return nil, nil })
		require.NoError(t, err)
		return hit
	}
	require.False(t, ask(key, time.Minute))
	require.True(t, ask(key, time.Minute))
	require.False(t, ask(assess.Key{Name: "lint", Input: []string{"make lint"}}, time.Minute))
	require.False(t, ask(key, time.Minute), "the other one took its place")
	require.False(t, ask(assess.Key{Name: "other", Input: key.Input}, time.Minute))
	w.now = w.now.Add(time.Minute)
	require.True(t, ask(key, time.Minute))
	w.now = w.now.Add(time.Second)
	require.False(t, ask(key, time.Minute), "too old")
	w.now = w.now.Add(-time.Hour)
	require.False(t, ask(key, time.Minute), "the clock was set back")
	require.False(t, ask(key, 0))
	require.False(t, ask(key, 0), "a time to live of 0 remembers nothing")
}

func TestWhatIsNotStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := assess.FilesAt(w.root, w.clock)
	failed := errors.New("exit 1")
	_, _, err := w.cache.GetOrCompute(t.Context(), key, time.Minute, look, func(context.Context) ([]byte, error) { return []byte("bad"), failed })
	require.Equal(t, failed, err)
	require.False(t, w.ask(look), "a failure is not remembered")

	w.write("a.go", "1")
	_, hit, err := w.cache.GetOrCompute(t.Context(), key, time.Minute, look, func(context.Context) ([]byte, error) {
		w.write("a.go", "22")
		return nil, nil
	})
	require.True(t, err == nil && !hit)
	require.False(t, w.ask(look), "the scope changed meanwhile")

	broken := func(context.Context, []byte) ([]byte, bool, error) { return nil, true, errors.New("no look") }
	require.False(t, w.ask(broken))
	require.False(t, w.ask(broken), "what cannot be looked at may have changed")
}

func TestDamagedEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := assess.FilesAt(w.root, w.clock)
	w.ask(look)
	for _, v := range w.disk.Variants(nil, 0) {
		c := assess.OpenOn(w.disk.Crash(v).FS(), w.clock)
		r, _, err := c.GetOrCompute(t.Context(), key, time.Minute, look, func(context.Context) ([]byte, error) { return []byte("fine"), nil })
		require.NoError(t, err)
		require.Equal(t, "fine", string(r.Data))
	}
}

func TestOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		look := assess.FilesAt(w.root, w.clock)
		var runs atomic.Int32
		begun, end := make(chan struct{}, 10), make(chan struct{})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				r, _, err := w.cache.GetOrCompute(t.Context(), key, 0, look, func(context.Context) ([]byte, error) {
					runs.Add(1)
					begun <- struct{}{}
					<-end
					return []byte("fine"), nil
				})
				require.NoError(t, err)
				require.Equal(t, "fine", string(r.Data))
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		left := false
		wg.Go(func() {
			_, _, err := w.cache.GetOrCompute(ctx, key, 0, look, nil)
			require.ErrorIs(t, err, context.Canceled)
			left = true
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.True(t, left, "who waits may leave")
		close(end)
		wg.Wait()
		require.EqualValues(t, 1, runs.Load())
	})
}

// Who asks after a change does not get what began before it, nor the end of
// somebody else's patience.
func TestNoOldResult(t *testing.T) {
	t.Parallel()
	for _, canceled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			look := assess.FilesAt(w.root, w.clock)
			end := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				_, _, err := w.cache.GetOrCompute(ctx, key, time.Minute, look, func(ctx context.Context) ([]byte, error) {
					<-end
					return []byte("old"), ctx.Err()
				})
				require.Equal(t, canceled, err != nil)
			})
			synctest.Wait()
			if canceled {
				cancel()
			} else {
				w.write("a.go", "changed")
			}
			wg.Go(func() {
				r, hit, err := w.cache.GetOrCompute(t.Context(), key, time.Minute, look, func(context.Context) ([]byte, error) { return []byte("new"), nil })
				require.NoError(t, err)
				require.False(t, hit)
				require.Equal(t, "new", string(r.Data))
			})
			synctest.Wait()
			close(end)
			wg.Wait()
		})
	}
}

func FuzzDecodeFiles(f *testing.F) {
	f.Add([]byte{1})
	w := &world{t: &testing.T{}, root: f.TempDir()}
	w.write("a", "b")
	b, _, err := assess.FilesAt(w.root, time.Now)(f.Context(), nil)
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		again, ok := assess.FilesAgain(b)
		if !ok {
			return
		}
		twice, ok := assess.FilesAgain(again)
		require.True(t, ok)
		require.Equal(t, again, twice)
	})
}
