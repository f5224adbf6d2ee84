package checkpoint

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

func TestCreateKeepsTheTree(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a/x", "one", "a-b", "two", "a/deep/y", "three", "empty/", "", "link", "-> a/x", "odd\xff", "four")
	require.NoError(t, os.Chmod(p.path("a/deep"), 0o700))
	first := p.create(about("s", Manual, nil))
	want := []string{"drwxr-xr-x a", "-rw-r--r-- a-b two", "drwx------ a/deep", "-rw-r--r-- a/deep/y three", "-rw-r--r-- a/x one",
		"drwxr-xr-x empty", "L--------- link -> a/x", "-rw-r--r-- odd\xff four"}
	require.Equal(t, want, list(t, p.Tree(first.Root)))
	require.EqualValues(t, 1, first.Number)
	require.Equal(t, 5, first.Files)
	require.EqualValues(t, 3+3+5+4, first.Bytes)
	require.Equal(t, 6, first.Changed) // the empty folder too
	require.Zero(t, first.Previous)

	entries, faults, err := p.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	require.Equal(t, []*Entry{first}, entries)
	found, err := p.Find(first.ID)
	require.NoError(t, err)
	require.Equal(t, first, found)

	again := p.create(about("s", Manual, first))
	require.Equal(t, first.Root, again.Root)
	require.Equal(t, first.ID, again.Previous)
	require.Zero(t, again.Changed)

	p.remove("a/deep/y", "link")
	p.write("a/x", "ONE", "new/file", "five")
	third := p.create(about("s", Manual, again))
	require.Equal(t, 4, third.Changed)
	require.Equal(t, []string{"drwxr-xr-x a", "-rw-r--r-- a-b two", "drwx------ a/deep", "-rw-r--r-- a/x ONE",
		"drwxr-xr-x empty", "drwxr-xr-x new", "-rw-r--r-- new/file five", "-rw-r--r-- odd\xff four"}, list(t, p.Tree(third.Root)))

	// Another process makes the same of it.
	other := openPlace(t, p.dir, Options{})
	fourth := other.create(about("s", Manual, third))
	require.Equal(t, third.Root, fourth.Root)
	require.Equal(t, third.ID, fourth.Previous)
	e, err := p.At(4)
	require.NoError(t, err)
	require.Equal(t, fourth, e)
	_, err = p.At(5)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestLookStoresNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a/x", "one", "b/y", "two")
	_, tree, err := p.Look(context.Background(), Meta{})
	require.NoError(t, err)
	f, known, err := tree.Find("a/x")
	require.NoError(t, err)
	require.True(t, known)
	require.EqualValues(t, 3, f.Size)
	has, err := p.blobs.Has(f.Hash)
	require.NoError(t, err)
	require.False(t, has)
	require.NotNil(t, p.Seen().Find("a/x"))

	first := p.create(about("s", Manual, nil))
	require.Equal(t, tree.Root, first.Root)
	p.write("a/x", "ONE")
	e, tree, err := p.Look(context.Background(), about("s", Manual, first))
	require.NoError(t, err)
	require.EqualValues(t, 2, e.Number)
	diff, err := Diff(p.Tree(first.Root), tree)
	require.NoError(t, err)
	require.Len(t, diff, 1)
	require.Equal(t, "a/x", diff[0].Path)
	_, err = p.Tree(tree.Root).folder(tree.Root)
	require.Error(t, err)
	require.Len(t, must(t, p), 1)
}

func must(t *testing.T, p place) []*Entry {
	entries, faults, err := p.List()
	require.NoError(t, err)
	require.Empty(t, faults)
	return entries
}

// asking is a Memory that calls a function for each note.
type asking struct {
	files.Memory
	note func()
}

func (a asking) Note(key string, sum [32]byte) {
	a.note()
	a.Memory.Note(key, sum)
}

// Until the hash of what was written is noted, no other process writes another snapshot.
func TestRememberExcludesOthers(t *testing.T) {
	t.Parallel()
	dir, asked := newPlace(t).dir, false
	p := openPlace(t, dir, Options{Memory: asking{files.Own(), func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		require.ErrorIs(t, openPlace(t, dir, Options{}).Pin(ctx, ID{}, true), writer.ErrBusy)
		asked = true
	}}})
	p.write("a", "1")
	p.create(about("s", Manual, nil))
	require.NoError(t, p.Remember())
	require.True(t, asked)
}

// What the tracker remembers spares another process the reading, as long as an entry
// vouches for what is stored.
func TestRememberedFilesAreNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a/x", "one", "b/y", "two")
	old := about("s", Manual, nil).At
	for _, name := range []string{"a/x", "b/y", "a", "b"} {
		require.NoError(t, os.Chtimes(p.path(name), old, old))
	}
	first := p.create(about("s", Manual, nil))
	p.base.At = p.base.At.AddDate(0, 0, 1) // as if the files had been there for long
	require.NoError(t, p.Remember())

	other := openPlace(t, p.dir, Options{})
	base, known, err := other.known(mustLoad(t, other), true)
	require.NoError(t, err)
	require.Equal(t, first.Root, known.Root)
	require.Equal(t, p.base.Files, base.Files)
	second := other.create(about("s", Manual, first))
	require.Equal(t, first.Root, second.Root)

	// Somebody throws the objects away.
	require.NoError(t, os.RemoveAll(p.dir+"/blobs"))
	require.NoError(t, os.Mkdir(p.dir+"/blobs", 0o755))
	again := openPlace(t, p.dir, Options{}).create(about("s", Manual, second))
	require.Equal(t, 2, again.Files)
	require.Len(t, list(t, openPlace(t, p.dir, Options{}).Tree(again.Root)), 4)

	// The entries are removed, and a sweep takes what they had.
	n, err := p.Forget(context.Background(), "test", func(*Entry) bool { return true })
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.NoError(t, os.RemoveAll(p.dir+"/blobs"))
	require.NoError(t, os.Mkdir(p.dir+"/blobs", 0o755))
	third := openPlace(t, p.dir, Options{}).create(about("s", Manual, second))
	require.Equal(t, first.Root, third.Root)
	require.Equal(t, []string{"drwxr-xr-x a", "-rw-r--r-- a/x one", "drwxr-xr-x b", "-rw-r--r-- b/y two"},
		list(t, openPlace(t, p.dir, Options{}).Tree(third.Root)))
}

// A removed entry does not vouch for its objects. Its root may still be there, in a pack
// that others need, while the rest is gone.
func TestRemovedVouchesForNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("small", strings.Repeat("small ", 1000), "large", strings.Repeat("x", blob.PackMax+1))
	first := p.create(about("s", Manual, nil))
	require.NoError(t, os.Rename(p.path("large"), p.dir+"/away"))
	other := openPlace(t, p.dir, Options{})
	second := other.create(about("s", Manual, first))
	_, err := other.Forget(context.Background(), "test", func(e *Entry) bool { return e.Number == first.Number })
	require.NoError(t, err)
	require.NoError(t, sweep(other.Store))
	has, err := p.blobs.Has(first.Root)
	require.NoError(t, err)
	require.True(t, has)
	require.NoError(t, os.Rename(p.dir+"/away", p.path("large")))
	p.create(about("s", Manual, second))
	require.NoError(t, whole(openPlace(t, p.dir, Options{}).Store))
}

func mustLoad(t *testing.T, p place) *chain {
	c, err := p.load()
	require.NoError(t, err)
	return c
}

func TestWhatIsUnknown(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("a/x", "one", "repo/.git/HEAD", "x", "repo/y", "two")
	e := p.create(about("s", Manual, nil))
	tree := p.Tree(e.Root)
	require.Equal(t, []string{"drwxr-xr-x a", "-rw-r--r-- a/x one", "? repo repository"}, list(t, tree))
	for path, known := range map[string]bool{"repo": false, "repo/y": false, "a": true, "a/none": true, "none/at/all": true, "a/x/below": true} {
		_, got, err := tree.Find(path)
		require.NoError(t, err)
		require.Equal(t, known, got, path)
	}
	// A .git that appears in what was captured does not hide it.
	p.write("a/.git/HEAD", "x", "a/new", "three")
	e = p.create(about("s", Manual, e))
	require.Equal(t, []string{"drwxr-xr-x a", "-rw-r--r-- a/new three", "-rw-r--r-- a/x one", "? repo repository"}, list(t, p.Tree(e.Root)))
}

func TestDiff(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("same/deep/x", "0", "gone/x", "1", "gone/y/z", "22", "changed", "3", "turns", "4", "becomes/in", "5", "mode", "6", "dir/", "", "repo/x", "7", "repo/.git/x", "")
	a := p.create(about("s", Manual, nil))
	p.remove("gone", "turns", "becomes", "repo/.git")
	p.write("changed", "33", "moved/z", "22", "turns/in", "8", "becomes", "9")
	require.NoError(t, os.Chmod(p.path("mode"), 0o600))
	require.NoError(t, os.Chmod(p.path("dir"), 0o700))
	b := p.create(about("s", Manual, nil))
	diff, err := Diff(p.Tree(a.Root), p.Tree(b.Root))
	require.NoError(t, err)
	var got []string
	for _, c := range diff {
		got = append(got, string(c.Kind)+" "+c.Path+" "+c.From)
	}
	require.Equal(t, []string{"modified becomes ", "deleted becomes/in ", "modified changed ", "mode dir ", "deleted gone/x ", "mode mode ",
		"moved moved/z gone/y/z", "modified turns ", "created turns/in "}, got)

	got = nil
	err = paths(p.Tree(a.Root), p.Tree(b.Root), func(path string, old, next *files.Fingerprint) error {
		say := func(f *files.Fingerprint) string {
			switch {
			case f == nil:
				return "0"
			case unknown(f):
				return "?" + f.Target
			case f.Mode.IsDir():
				return "d"
			}
			return "f"
		}
		got = append(got, path+" "+say(old)+" "+say(next))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"becomes d f", "becomes/in f 0", "changed f f", "dir d d", "gone d 0", "gone/x f 0", "gone/y d 0", "gone/y/z f 0",
		"mode f f", "moved 0 d", "moved/z 0 f", "repo ?repository d", "repo/x ?repository f", "turns f d", "turns/in 0 f"}, got)
	var empty blob.Hash
	diff, err = Diff(p.Tree(empty), p.Tree(a.Root))
	require.NoError(t, err)
	require.Len(t, diff, a.Changed)
}

// Nothing in a pack with a damaged index is found, so its contents are stored again.
func TestDamagedIndexIsStoredAnew(t *testing.T) {
	t.Parallel()
	for name, remember := range map[string]bool{"what is known is read": true, "nothing is known": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.edit("a", "0", "d/b", "1")
			k := w.worker("s", 0)
			k.create(Manual, 0)
			if remember {
				require.NoError(t, k.cps.Remember())
			}
			packs, err := w.blobs.ReadDir("packs")
			require.NoError(t, err)
			require.Len(t, packs, 1)
			file := "packs/" + packs[0].Name()
			data, err := writer.ReadFile(w.blobs, file, 1<<20)
			require.NoError(t, err)
			data[len(data)-1] ^= 1
			require.NoError(t, writer.ReplaceFile(w.blobs, file, data, 0o600))
			k.start()
			w.edit("a", "2")
			_, _, err = k.cps.Look(context.Background(), k.meta(Manual, 0))
			require.NoError(t, err)
			e := k.create(Manual, 0)
			k.start()
			require.Equal(t, []string{"-rw-r--r-- a 2", "drwxr-xr-x d", "-rw-r--r-- d/b 1"}, list(t, k.cps.Tree(e.Root)))
			_, err = k.cps.Rules(e)
			require.NoError(t, err)
		})
	}
}
