package assess_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/assess"
	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

var key = assess.Key{Name: "lint", Input: []string{"make", "lint"}}

// world is a folder, and a cache with a clock.
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

func (w *world) look(patterns ...string) assess.Look {
	w.t.Helper()
	look, err := assess.Files(w.root, patterns)
	require.NoError(w.t, err)
	return look
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
	look := w.look()
	goFiles := w.look("**/*.go")
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
	for pattern, hit := range map[string]bool{
		"dir": false, "./dir/": false, ".": false, "./": false, "dir//b*": false, "./dir/*": false, `di\r`: false, "*.go": true, "**/b.go": false,
		"d*/b.*": false, "dir/*.md": true, "dir/c.md": true, "{x,dir}/**": false, "a.go": true, "dir/b.go/*": true,
	} {
		w.ask(w.look(pattern))
		w.ask(w.look(pattern))
		w.write("dir/b.go", pattern)
		require.Equal(t, hit, w.ask(w.look(pattern)), pattern)
	}
	for _, pattern := range []string{"[a", "", "/", "/etc/*", "..", "../x/*", ".git/HEAD", "a/.lopen/**"} {
		_, err := assess.Files(w.root, []string{pattern})
		require.ErrorIs(t, err, assess.ErrPattern, pattern)
	}
}

// What is ignored is not in the scope, but where it is named.
func TestIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(".gitignore", "out/\n*.log\n")
	w.write("dir/.lopenignore", "local\n")
	for name, hits := range map[string][6]bool{
		//             all    dir    **     out    out/*  out/x
		"a.go":      {false, true, true, true, true, true},
		"dir/b.go":  {false, false, true, true, true, true},
		"dir/local": {true, true, true, true, true, true},
		"dir/a.log": {true, true, true, true, true, true},
		"out/x":     {true, true, true, false, false, false},
		"out/y":     {true, true, true, false, false, true},
		"out/a.log": {true, true, true, true, true, true},
		"out/z.txt": {true, true, false, false, false, true},
	} {
		w.write(name, "1")
		w.write("out/x", "1")
		for i, look := range []assess.Look{w.look(), w.look("dir"), w.look("**/*.c", "out/z*"), w.look("out"), w.look("*.c", "out/*"), w.look("out/x")} {
			w.write(name, "1")
			w.ask(look)
			require.True(t, w.ask(look), name)
			w.write(name, "2")
			require.Equal(t, hits[i], w.ask(look), "%s %d", name, i)
		}
	}
}

// Ignoring a file takes it out of the scope, and that is a change.
func TestIgnoredMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := w.look("**/*.go")
	w.write(".gitignore", "*.log\n")
	require.False(t, w.ask(look))
	w.write(".gitignore", "*.log\n.gitignore\n")
	require.True(t, w.ask(look))
	w.write(".gitignore", "b.go\n")
	require.False(t, w.ask(look), "one file less")
	require.True(t, w.ask(look))
	w.write("dir/b.go", "changed")
	require.True(t, w.ask(look))
	w.write(".gitignore", "")
	require.False(t, w.ask(look), "and back")
}

// A file that is in doubt is none that is unchanged.
func TestScopeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.False(t, w.ask(w.look("no/such.txt")))
	require.False(t, w.ask(w.look("no/such.txt")), "nobody watches what is not there")
	require.False(t, w.ask(w.look("no/*.txt")))
	require.True(t, w.ask(w.look("no/*.txt")), "a pattern may find nothing")
	require.NoError(t, os.Symlink("../a.go", filepath.Join(w.root, "dir/link")))
	require.False(t, w.ask(w.look("dir/link")))
	require.False(t, w.ask(w.look("dir/link")), "nobody watches what it leads to")
	require.False(t, w.ask(w.look("dir")))
	require.True(t, w.ask(w.look("dir")), "one among others is what it says")
	w.write("dir/.gitignore", strings.Repeat("#", 2<<20)) // too large to be read as one
	require.False(t, w.ask(w.look()))
	require.False(t, w.ask(w.look()))
	require.False(t, w.ask(w.look("*.go")))
	require.False(t, w.ask(w.look("*.go")))
	require.False(t, w.ask(w.look("a.go")))
	require.True(t, w.ask(w.look("a.go")), "what is elsewhere does not matter")
}

func TestEmptyFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(".gitignore", "out\n")
	w.ask(w.look())
	require.NoError(t, os.Mkdir(filepath.Join(w.root, "empty"), 0o700))
	require.True(t, w.ask(w.look()))
	w.write("empty/out", "x")
	require.True(t, w.ask(w.look()))
}

// only is the snapshot of a scope of one part, and encoded the reverse.
func only(t *testing.T, scope []byte) *files.Snapshot {
	_, n := binary.Uvarint(scope)
	s, err := files.Decode(scope[n:])
	require.NoError(t, err)
	return s
}

func encoded(s *files.Snapshot) []byte {
	b := s.Encode()
	return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
}

// A stat is enough for what was not changed lately; what was is read, until a
// look finds that it need not be.
func TestRacy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := w.look()
	last, _, err := look(t.Context(), nil)
	require.NoError(t, err)
	now, same, err := look(t.Context(), last)
	require.NoError(t, err)
	require.True(t, same)
	require.NotEqual(t, string(last), string(now), "a newer snapshot spares the reading")

	lie := func(at time.Duration) []byte { // a snapshot with another content of a.go
		s := only(t, last)
		s.At = s.At.Add(at)
		s.Find("a.go").Hash[0]++
		return encoded(s)
	}
	_, same, err = look(t.Context(), lie(0))
	require.NoError(t, err)
	require.False(t, same, "it was read")
	settled := lie(10 * time.Second)
	now, same, err = look(t.Context(), settled)
	require.NoError(t, err)
	require.True(t, same, "it was not read")
	require.Equal(t, string(settled), string(now), "there is nothing to write")

	w.write("a.go", "a") // another time, the same content
	now, same, err = look(t.Context(), last)
	require.NoError(t, err)
	require.True(t, same)
	s := only(t, now)
	s.At = s.At.Add(10 * time.Second)
	settled = encoded(s)
	require.NoError(t, os.Chtimes(filepath.Join(w.root, "a.go"), time.Time{}, time.Unix(1, 0)))
	now, same, err = look(t.Context(), settled)
	require.NoError(t, err)
	require.True(t, same)
	require.NotEqual(t, string(settled), string(now), "its new time spares the reading")
	_, same, err = look(t.Context(), append(settled, settled...))
	require.NoError(t, err)
	require.False(t, same, "of another scope")
}

// Another command, or another task, has no result here; what was seen of the files spares it the reading.
func TestAnotherInputReadsWhatChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var last [][]byte
	look := func(ctx context.Context, before []byte) ([]byte, bool, error) {
		last = append(last, before)
		return w.look()(ctx, before)
	}
	for _, input := range []string{"one", "two"} {
		_, hit, err := w.cache.GetOrCompute(t.Context(), assess.Key{Name: "lint", Input: []string{input}}, time.Minute, look,
			func(context.Context) ([]byte, error) { return nil, nil })
		require.NoError(t, err)
		require.False(t, hit)
	}
	require.Len(t, last, 4, "before and after each")
	require.Nil(t, last[0])
	require.NotEmpty(t, last[2])
}

// An entry that a Memory does not have was written by anybody: its result and its snapshot are none.
func TestForgedEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine := files.Own()
	w.cache = assess.OpenWith(w.disk.FS(), w.clock, mine)
	look := w.look()
	require.False(t, w.ask(look))
	require.True(t, w.ask(look))
	w.cache = assess.OpenWith(w.disk.FS(), w.clock, mine)
	require.True(t, w.ask(look), "another process of the same person")
	w.cache = assess.OpenOn(w.disk.FS(), w.clock) // that of an agent
	w.write("a.go", "changed")
	require.False(t, w.ask(look))
	w.cache = assess.OpenWith(w.disk.FS(), w.clock, mine)
	read := false
	require.False(t, w.ask(func(ctx context.Context, before []byte) ([]byte, bool, error) {
		read = read || before == nil
		return look(ctx, before)
	}))
	require.True(t, read)
	require.True(t, w.ask(look), "it is remembered anew")
}

func TestKeyAndTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := w.look()
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
	look := w.look()
	failed := errors.New("exit 1")
	_, _, err := w.cache.GetOrCompute(t.Context(), key, time.Minute, look, func(context.Context) ([]byte, error) { return []byte("bad"), failed })
	require.Equal(t, failed, err)
	anew := 0
	counted := func(ctx context.Context, last []byte) ([]byte, bool, error) {
		if len(last) == 0 {
			anew++
		}
		return look(ctx, last)
	}
	_, hit, err := w.cache.GetOrCompute(t.Context(), key, math.MaxInt64, counted, func(context.Context) ([]byte, error) { return nil, failed })
	require.False(t, hit, "a failure is not remembered, for however long")
	require.Equal(t, failed, err)
	require.Zero(t, anew, "what it read of the scope is")
	require.False(t, w.ask(look))

	w.write("a.go", "1")
	_, hit, err = w.cache.GetOrCompute(t.Context(), key, time.Minute, look, func(context.Context) ([]byte, error) {
		w.write("a.go", "22")
		return nil, nil
	})
	require.True(t, err == nil && !hit)
	require.False(t, w.ask(look), "the scope changed meanwhile")

	broken := func(context.Context, []byte) ([]byte, bool, error) { return nil, true, errors.New("no look") }
	require.False(t, w.ask(broken))
	require.False(t, w.ask(broken), "what cannot be looked at may have changed")

	w.write("a.go", "333")
	_, hit, err = w.cache.GetOrCompute(t.Context(), key, time.Minute, counted, func(context.Context) ([]byte, error) { return nil, nil })
	require.True(t, err == nil && !hit)
	require.Zero(t, anew, "what did not change is not read again")
}

func TestDamagedEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	look := w.look()
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
		look := w.look()
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
			look := w.look()
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
