package sections_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache"
	"github.com/lopen-dev/lopen/cache/sections"
	"github.com/lopen-dev/lopen/plan/markdown"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

const spec = "# Storage\n\n## Caching\n\nA hit costs one stat.\n\n## Limits\n\nNone.\n"

// later is a clock that is far behind every change made in a test: nothing is racy.
func later() time.Time { return time.Now().Add(time.Hour) }

type world struct {
	t    *testing.T
	root string
	docs fs.FS
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	w := &world{t: t, root: dir, docs: root.FS()}
	w.write("S.md", spec)
	return w
}

func (w *world) write(name, content string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.root, name), []byte(content), 0o600))
}

// open opens a cache whose files are not racy.
func (w *world) open(store writer.FS) *sections.Cache {
	return sections.OpenOn(sections.Options{Docs: w.docs, Root: w.root}, store, later)
}

// section is a section of a file and its text.
func section(c *sections.Cache, name, query string) (cache.Section, string, error) {
	o, err := c.Outline(name)
	if err != nil {
		return cache.Section{}, "", err
	}
	s, err := o.Find(query)
	if err != nil {
		return s, "", err
	}
	return s, o.Text(s), nil
}

func text(t *testing.T, c *sections.Cache, query string) string {
	t.Helper()
	_, text, err := section(c, "S.md", query)
	require.NoError(t, err)
	return text
}

func TestOneParseServesAllSections(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.open(nil)
	require.Equal(t, "## Caching\n\nA hit costs one stat.\n\n", text(t, c, "caching"))
	require.Equal(t, "## Limits\n\nNone.\n", text(t, c, "#limits"))
	_, _, err := section(c, "S.md", "none")
	require.ErrorIs(t, err, cache.ErrNoSection)
	require.Equal(t, sections.Stats{Hits: 2, Reads: 1, Parses: 1}, c.Stats())
}

// Whatever is changed, the next question sees it.
func TestChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := filepath.Join(w.root, "S.md")
	old := time.Now().Add(-time.Hour)
	for what, change := range map[string]func(){
		"another length":           func() { w.write("S.md", spec+"more\n") },
		"the same length":          func() { w.write("S.md", spec[:len(spec)-2]+"!\n") },
		"the same length and time": func() { w.write("S.md", spec[:len(spec)-2]+"?\n"); require.NoError(t, os.Chtimes(name, old, old)) },
		"replaced, same length and time": func() {
			w.write("new", spec[:len(spec)-2]+":\n")
			require.NoError(t, os.Chtimes(filepath.Join(w.root, "new"), old, old))
			require.NoError(t, os.Rename(filepath.Join(w.root, "new"), name))
		},
	} {
		w.write("S.md", spec)
		require.NoError(t, os.Chtimes(name, old, old))
		c := w.open(nil)
		require.Equal(t, "## Limits\n\nNone.\n", text(t, c, "limits"), what)
		change()
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(src[bytes.Index(src, []byte("## Limits")):]), text(t, c, "limits"), what)
	}
}

// A file that was just written is hashed until it has been left alone for a while.
func TestRacy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	c := sections.OpenOn(sections.Options{Docs: w.docs, Root: w.root}, nil, func() time.Time { return now })
	text(t, c, "limits")
	text(t, c, "limits")
	require.Equal(t, sections.Stats{Reads: 2, Parses: 1}, c.Stats())
	now = now.Add(3 * time.Second)
	text(t, c, "limits") // read once more, and believed from now on
	text(t, c, "limits")
	require.Equal(t, sections.Stats{Hits: 1, Reads: 3, Parses: 1}, c.Stats())
}

func TestGoneAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.open(nil)
	text(t, c, "limits")
	require.NoError(t, os.Remove(filepath.Join(w.root, "S.md")))
	_, err := c.Outline("S.md")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "read S.md: no such file or directory")
	w.write("S.md", spec)
	text(t, c, "limits")
}

// A name that leads out of the folder is refused, in memory or not.
func TestOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := filepath.Join(t.TempDir(), "S.md")
	require.NoError(t, os.WriteFile(outside, []byte(spec), 0o600))
	c := w.open(nil)
	text(t, c, "limits")
	name := filepath.Join(w.root, "S.md")
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Symlink(outside, name))
	_, err := c.Outline("S.md")
	require.Error(t, err)
	_, err = c.Outline("../S.md")
	require.Error(t, err)
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Mkdir(name, 0o700))
	_, err = c.Outline("S.md")
	require.ErrorIs(t, err, sections.ErrNotRegular)
}

func TestDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	disk := crashfs.New(crashfs.Ext4)
	text(t, w.open(disk.FS()), "limits")
	tag, err := writer.ReadFile(disk.FS(), "cache/CACHEDIR.TAG", 1<<10)
	require.NoError(t, err)
	require.Contains(t, string(tag), "Signature: 8a477f597d28d172789f06886806bc55")

	c := w.open(disk.FS())
	require.Equal(t, "## Limits\n\nNone.\n", text(t, c, "limits"))
	require.Equal(t, sections.Stats{Reads: 1}, c.Stats(), "read and not parsed")

	w.write("S.md", "# New\n")
	require.Equal(t, "# New\n", text(t, c, "new"))
	require.EqualValues(t, 1, c.Stats().Parses, "of another content")
	w.write("S.md", spec)
	text(t, w.open(disk.FS()), "limits")
	w.write("S.md", strings.Replace(spec, "## Limits", "Limits ##", 1))
	_, _, err = section(w.open(disk.FS()), "S.md", "limits")
	require.ErrorIs(t, err, cache.ErrNoSection, "another content of the same length")
}

// A damaged entry costs a parse and nothing else, wherever the damage is.
func TestDamagedEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	disk := crashfs.New(crashfs.Ext4)
	first := w.open(disk.FS())
	text(t, first, "limits")
	file := first.EntryOf("S.md")
	whole, err := writer.ReadFile(disk.FS(), file, 1<<20)
	require.NoError(t, err)
	damaged := map[string][]byte{"empty": {}, "foreign": []byte("something else\n"), "longer": append(bytes.Clone(whole), 'x')}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x20
		damaged[fmt.Sprintf("byte %d", i)] = bad
		damaged[fmt.Sprintf("cut at %d", i)] = whole[:i]
	}
	for what, data := range damaged {
		require.NoError(t, writer.ReplaceFile(disk.FS(), file, data, 0o600))
		c := w.open(disk.FS())
		require.Equal(t, "## Limits\n\nNone.\n", text(t, c, "limits"), what)
		require.EqualValues(t, 1, c.Stats().Parses, what)
		now, err := writer.ReadFile(disk.FS(), file, 1<<20)
		require.NoError(t, err)
		require.Equal(t, whole, now, "%s: it is replaced", what)
	}
	// Another file's entry under this name: the content is the same.
	w.write("T.md", spec)
	_, err = first.Outline("T.md")
	require.NoError(t, err)
	require.NoError(t, disk.FS().Rename(first.EntryOf("T.md"), file))
	c := w.open(disk.FS())
	text(t, c, "limits")
	require.EqualValues(t, 1, c.Stats().Parses)
}

// What another version of the parser found is not believed.
func TestOtherRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	disk := crashfs.New(crashfs.Ext4)
	c := w.open(disk.FS())
	c.PutRevision("another", "S.md", []byte(spec), cache.NewOutline([]byte(spec)))
	text(t, c, "limits")
	require.EqualValues(t, 1, c.Stats().Parses)
	c = w.open(disk.FS())
	c.PutRevision(markdown.Revision(), "S.md", []byte(spec), cache.NewOutline([]byte(spec)))
	text(t, c, "limits")
	require.Zero(t, c.Stats().Parses)
}

// Any call of the disk may fail, at any moment: nobody notices.
func TestBadDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, errno := range []syscall.Errno{syscall.EROFS, syscall.ENOSPC, syscall.EIO} {
		for _, call := range []string{"mkdir", "create", "write", "close", "rename", "readdir", "open", "lstat", "read", "stat"} {
			disk := crashfs.New(crashfs.Ext4)
			disk.SetHook(func(op crashfs.Op) crashfs.Fault {
				if op.Call == call {
					return crashfs.Fault{Err: errno}
				}
				return crashfs.Fault{}
			})
			c := w.open(disk.FS())
			require.Equal(t, "## Limits\n\nNone.\n", text(t, c, "limits"), "%s %s", call, errno)
			w.write("T.md", spec)
			_, err := c.Outline("T.md")
			require.NoError(t, err)
		}
	}
}

// Whatever a power cut leaves of an entry, the answer is right.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	disk := crashfs.New(crashfs.Ext4)
	text(t, w.open(disk.FS()), "limits")
	for i, v := range disk.Variants(nil, 0) {
		require.Equal(t, "## Limits\n\nNone.\n", text(t, w.open(disk.Crash(v).FS()), "limits"), "variant %d", i)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const limit = 64 << 10
	store := t.TempDir()
	c := sections.Open(sections.Options{Docs: w.docs, Root: w.root, Store: store, Bytes: limit})
	for i := range 100 {
		name := fmt.Sprintf("%d.md", i)
		w.write(name, spec+string(bytes.Repeat([]byte("# Heading of a section\n"), 100)))
		_, err := c.Outline(name)
		require.NoError(t, err)
		require.LessOrEqual(t, c.Weight(), uint64(limit))
	}
	u, err := sections.Use(store)
	require.NoError(t, err)
	require.Positive(t, u.Entries)
	require.Less(t, u.Entries, 100)
	require.LessOrEqual(t, u.Bytes, int64(limit))
	require.NoError(t, c.Close())

	gone, err := sections.Clear(store)
	require.NoError(t, err)
	require.Equal(t, u, gone)
	u, err = sections.Use(store)
	require.NoError(t, err)
	require.Zero(t, u)
}

// gate holds the reading of files back until it is opened.
type gate struct {
	fs.FS
	open    chan struct{}
	entered chan struct{}
}

func (g *gate) Open(name string) (fs.File, error) {
	g.entered <- struct{}{}
	<-g.open
	return g.FS.Open(name)
}

func (g *gate) Stat(name string) (fs.FileInfo, error) { return fs.Stat(g.FS, name) }

func TestOneParseForAllWhoAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		g := &gate{FS: w.docs, open: make(chan struct{}), entered: make(chan struct{}, 100)}
		c := sections.OpenOn(sections.Options{Docs: g, Root: w.root}, nil, func() time.Time { return time.Unix(1<<33, 0) })
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { text(t, c, "limits") })
		}
		synctest.Wait()
		require.Len(t, g.entered, 1)
		close(g.open)
		wg.Wait()
		require.Equal(t, sections.Stats{Reads: 1, Parses: 1}, c.Stats())
	})
}

// slow reads a file and holds the result back.
type slow struct {
	fs.FS
	first     sync.Once
	read, out chan struct{}
}

type slowFile struct {
	fs.File
	s *slow
}

func (s *slow) Stat(name string) (fs.FileInfo, error) { return fs.Stat(s.FS, name) }

func (s *slow) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	held := false
	s.first.Do(func() { held = true })
	if err != nil || !held {
		return f, err
	}
	return &slowFile{f, s}, nil
}

func (f *slowFile) Close() error {
	close(f.s.read)
	<-f.s.out
	return f.File.Close()
}

// Who asks after a change does not get what somebody else read before it.
func TestNoOldReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		s := &slow{FS: w.docs, read: make(chan struct{}), out: make(chan struct{})}
		c := sections.OpenOn(sections.Options{Docs: s, Root: w.root}, nil, func() time.Time { return time.Unix(1<<33, 0) })
		var wg sync.WaitGroup
		wg.Go(func() { text(t, c, "limits") })
		<-s.read
		w.write("S.md", "# New\n\n## Limits\n\nOne, two.\n")
		wg.Go(func() { require.Equal(t, "## Limits\n\nOne, two.\n", text(t, c, "limits")) })
		synctest.Wait()
		close(s.out)
		wg.Wait()
	})
}

// Two caches over one folder, as two processes have them.
func TestShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c := sections.Open(sections.Options{Docs: w.docs, Root: w.root, Store: store, Bytes: 4 << 10})
			for i := range 50 {
				name := fmt.Sprintf("%d.md", i%10)
				w.write(name, fmt.Sprintf("# A\n\n## Limits\n\n%d\n", i%10)) // the same bytes each time
				s, text, err := section(c, name, "limits")
				if err == nil { // else it was read while it was empty
					require.Equal(t, 3, s.FirstLine)
					require.Contains(t, fmt.Sprintf("## Limits\n\n%d\n", i%10), text)
				}
			}
			require.NoError(t, c.Close())
		})
	}
	wg.Wait()
}

func TestWarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"none.md", "S.md"}
	for i := range 20 {
		names = append(names, fmt.Sprintf("%d.md", i))
		w.write(names[i+2], spec)
	}
	names = append(names, "neither.md")
	c := w.open(nil)
	last := 0
	err := c.Warm(t.Context(), names, func(done int) { require.Equal(t, last+1, done); last = done })
	require.ErrorContains(t, err, "none.md")
	require.ErrorContains(t, err, "neither.md", "no error is lost")
	require.Equal(t, len(names), last)
	require.Equal(t, sections.Stats{Reads: 21, Parses: 21}, c.Stats())
	require.NoError(t, c.Warm(t.Context(), names[1:22], nil))
	require.EqualValues(t, 21, c.Stats().Hits)
}

// What changes is read before anybody asks.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.open(nil)
	text(t, c, "limits")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Watch(ctx, []string{"S.md"}) }()
	changed := func() bool {
		w.write("new", "# New\n")
		require.NoError(t, os.Rename(filepath.Join(w.root, "new"), filepath.Join(w.root, "S.md")))
		return c.Stats().Parses > 1
	}
	require.Eventually(t, changed, 10*time.Second, 200*time.Millisecond, "again and again: it may not watch yet")
	cancel()
	require.NoError(t, <-done)
	require.Error(t, c.Watch(t.Context(), []string{"no/such/folder.md"}))
}

// Cancelled work is left, and said so.
func TestWarmCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.open(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, c.Warm(ctx, []string{"S.md"}, nil), context.Canceled)
	require.Zero(t, c.Stats())
}
