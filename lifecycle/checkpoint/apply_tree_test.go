package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// A thing is what a test has at a path: its type with its permissions, and its content
// or its target.
type thing struct {
	mode fs.FileMode
	text string
}

func (t thing) String() string {
	if len(t.text) > 20 {
		return fmt.Sprintf("%s %d bytes", t.mode, len(t.text))
	}
	return fmt.Sprintf("%s %q", t.mode, t.text)
}

// things are a tree, by path. Each folder is in it.
type things map[string]thing

// made are things by path and content in turn: a path that ends in / is a folder, a
// content "-> x" a symlink, and one that ends in +x that of a file that may be executed.
func made(pairs ...string) things {
	all := things{}
	for i := 0; i < len(pairs); i += 2 {
		name, text := pairs[i], pairs[i+1]
		target, link := strings.CutPrefix(text, "-> ")
		switch {
		case strings.HasSuffix(name, "/"):
			all[name[:len(name)-1]] = thing{fs.ModeDir | 0o755, ""}
		case link:
			all[name] = thing{fs.ModeSymlink, target}
		case strings.HasSuffix(text, "+x"):
			all[name] = thing{0o755, text}
		default:
			all[name] = thing{0o644, text}
		}
	}
	return all
}

func (all things) paths() []string { return slices.Sorted(maps.Keys(all)) }

// with returns a copy with other modes.
func (all things) with(modes map[string]fs.FileMode) things {
	all = maps.Clone(all)
	for name, mode := range modes {
		all[name] = thing{all[name].mode.Type() | mode, all[name].text}
	}
	return all
}

// lay makes the things in an empty folder, durably.
func (all things) lay(t require.TestingT, tree writer.FS) {
	for _, name := range all.paths() {
		switch it := all[name]; it.mode.Type() {
		case fs.ModeDir:
			require.NoError(t, tree.Mkdir(name, 0o700))
		case fs.ModeSymlink:
			require.NoError(t, tree.Symlink(it.text, name))
		default:
			f, err := tree.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			require.NoError(t, err)
			w := blob.NewSparse(f)
			_, err = w.Write([]byte(it.text))
			require.NoError(t, err)
			require.NoError(t, w.End())
			require.NoError(t, f.Chmod(it.mode))
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())
		}
	}
	for _, name := range slices.Backward(all.paths()) {
		if it := all[name]; it.mode.IsDir() {
			require.NoError(t, tree.SyncDir(name))
			dir, err := tree.Sub(name)
			require.NoError(t, err)
			require.NoError(t, chmodFolder(dir, it.mode))
			require.NoError(t, dir.Close())
		}
	}
	require.NoError(t, tree.SyncDir("."))
}

// seen is the tree as it is found. Folders are opened for it and closed again.
func seen(t require.TestingT, tree writer.FS) things {
	all := things{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := tree.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			info, err := tree.Lstat(name)
			require.NoError(t, err)
			it := thing{mode: info.Mode() & modeBits}
			switch it.mode.Type() {
			case fs.ModeDir:
				require.NoError(t, tree.Chmod(name, info.Mode()|letsIn))
				walk(name)
				require.NoError(t, tree.Chmod(name, info.Mode()))
			case fs.ModeSymlink:
				it.mode = fs.ModeSymlink
				it.text, err = tree.Readlink(name)
			default:
				var data []byte
				data, err = writer.ReadFile(tree, name, 64<<20)
				it.text = string(data)
			}
			require.NoError(t, err)
			all[name] = it
		}
	}
	walk(".")
	return all
}

func alike(a, b things, name string) bool {
	one, inA := a[name]
	other, inB := b[name]
	return inA == inB && one == other
}

// requireThings says in few lines what differs.
func requireThings(t require.TestingT, want, got things, msg string, args ...any) {
	var lines []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(want.paths(), got.paths()...)))) {
		if !alike(want, got, name) {
			lines = append(lines, fmt.Sprintf("%q: want %v, got %v", name, want[name], got[name]))
		}
	}
	require.Empty(t, lines, append([]any{msg}, args...)...)
}

// stored returns a store in memory that holds the contents.
func stored(t require.TestingT, all ...things) *blob.Store {
	s := blob.New(crashfs.New(crashfs.Ext4).FS())
	put(t, s, all...)
	return s
}

func put(t require.TestingT, s *blob.Store, all ...things) {
	hold, err := s.Hold(tContext())
	require.NoError(t, err)
	batch := hold.Batch()
	for _, some := range all {
		for _, it := range some {
			if it.mode.IsRegular() {
				_, _, err := batch.Put(bytes.NewReader([]byte(it.text)), blob.Hash{})
				require.NoError(t, err)
			}
		}
	}
	require.NoError(t, batch.Commit())
	require.NoError(t, hold.Release())
}

// print returns a thing's fingerprint.
func (all things) print(s *blob.Store, name string) *files.Fingerprint {
	it, ok := all[name]
	if !ok {
		return nil
	}
	f := &files.Fingerprint{Path: name, Mode: it.mode}
	if !it.mode.IsDir() {
		sum := s.NewHash()
		sum.Write([]byte(it.text))
		f.Hash, f.Size = blob.Hash(sum.Sum(nil)), int64(len(it.text))
	}
	if it.mode.Type() == fs.ModeSymlink {
		f.Target = it.text
	}
	return f
}

// planOf returns the plan of a rewind from the tree from to the tree to.
func planOf(t require.TestingT, s *blob.Store, from, to things) *Plan {
	p := &Plan{id: "b4"}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(from.paths(), to.paths()...)))) {
		if alike(from, to, name) {
			continue
		}
		c := Change{Kind: KindOverwrite, Path: name, Old: from.print(s, name), New: to.print(s, name)}
		switch {
		case c.Old == nil:
			c.Kind = KindCreate
		case c.New == nil:
			c.Kind = KindDelete
		case c.Old.Mode.Type() == c.New.Mode.Type() && c.Old.Hash == c.New.Hash:
			c.Kind = KindMode
		case c.Old.Target != "" && c.New.Target != "":
			c.Kind = KindRetarget
		}
		p.Changes = append(p.Changes, c)
	}
	var err error
	p.shut, err = shutFolders(p.Changes, func(name string) (*files.Fingerprint, error) { return from.print(s, name), nil })
	require.NoError(t, err)
	return p
}

// A trial is a tree with a Store of it, through a cutFS.
type trial struct {
	*Store
	*cutFS
	fs writer.FS // below
}

func try(tree writer.FS, blobs *blob.Store) trial {
	cut := &cutFS{FS: tree, cutter: &cutter{left: -1}}
	return trial{New(nil, MainTree, blobs, cut, Options{}), cut, tree}
}

// onDisk lays things in a temporary folder.
func onDisk(t testing.TB, all things) writer.FS {
	t.Helper()
	tree, err := writer.OpenFS(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = seen(t, unlocked{tree}) // or nobody could remove it
		require.NoError(t, tree.Close())
	})
	all.lay(t, tree)
	return tree
}

// unlocked leaves open what is opened.
type unlocked struct{ writer.FS }

func (u unlocked) Chmod(name string, mode fs.FileMode) error { return u.FS.Chmod(name, mode|letsIn) }

// A garden makes things at random.
type garden struct {
	*rand.Rand
	folds bool // no two names of a folder differ in case only
}

func pick[T any](g garden, list ...T) T { return list[g.IntN(len(list))] }

func (g garden) mode(usual ...fs.FileMode) fs.FileMode {
	if g.IntN(2) == 0 {
		return fs.FileMode(g.IntN(0o1000))
	}
	return pick(g, usual...)
}

// readable keeps the owner's permission to read where that is needed: what cannot be
// read is in no tree.
func readable(mode fs.FileMode) fs.FileMode {
	switch {
	case os.Geteuid() <= 0:
	case mode.IsDir():
		mode |= 0o500
	default:
		mode |= 0o400
	}
	return mode
}

func (g garden) thing() thing {
	switch g.IntN(7) {
	case 0:
		return thing{fs.ModeSymlink, pick(g, "a", "../b", "/nowhere", "b/c")}
	case 1, 2, 3:
		return thing{readable(fs.ModeDir | g.mode(0o755, 0o700, 0o555, 0o500)), ""}
	}
	text := pick(g, "", "one", "two", "three\n")
	if g.IntN(20) == 0 {
		text = strings.Repeat("\x00", 200<<10) + text
	}
	return thing{readable(g.mode(0o644, 0o600, 0o755, 0o444)), text}
}

// add puts a thing at a new path.
func (g garden) add(all things, it thing) {
	dirs := []string{"."}
	for _, name := range all.paths() {
		if all[name].mode.IsDir() && strings.Count(name, "/") < 3 {
			dirs = append(dirs, name)
		}
	}
	name := path.Join(pick(g, dirs...), pick(g, "a", "b", "c", "A", "B", "a.txt", tempPrefix+"mine", "\xff"))
	if g.free(all, name) {
		all[name] = it
	}
}

func (g garden) free(all things, name string) bool {
	_, taken := all[name]
	for other := range all {
		taken = taken || g.folds && strings.EqualFold(name, other)
	}
	return !taken
}

func (g garden) grow() things {
	all := things{}
	for range 4 + g.IntN(16) {
		g.add(all, g.thing())
	}
	return all
}

// edited returns a copy after a few edits.
func (g garden) edited(from things) things {
	all := maps.Clone(from)
	for range 1 + g.IntN(10) {
		if len(all) == 0 || g.IntN(4) == 0 {
			g.add(all, g.thing())
			continue
		}
		name := pick(g, all.paths()...)
		it := all[name]
		switch g.IntN(6) {
		case 0:
			move(all, name, "")
		case 1: // another kind, perhaps
			move(all, name, "")
			all[name] = g.thing()
		case 2, 3:
			if it.mode.Type() != fs.ModeSymlink {
				all[name] = thing{readable(it.mode.Type() | g.thing().mode.Perm()), it.text}
			}
		case 4:
			if it.mode.IsRegular() {
				it.text += "!"
				all[name] = it
			}
		case 5: // a rename, of case as well
			to := path.Join(path.Dir(name), pick(g, "a", "b", "A", "B", strings.ToUpper(path.Base(name))))
			if to == name {
				continue
			}
			rest := maps.Clone(all)
			move(rest, name, "")
			if g.free(rest, to) {
				move(all, name, to)
			}
		}
	}
	return all
}

// move moves a path with what is beneath it. If the new path is "", it removes them.
func move(all things, from, to string) {
	for _, name := range all.paths() {
		if name == from || strings.HasPrefix(name, from+"/") {
			if to != "" {
				all[to+name[len(from):]] = all[name]
			}
			delete(all, name)
		}
	}
}

func tContext() context.Context { return context.Background() }
