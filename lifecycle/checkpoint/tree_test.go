package checkpoint

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// The same examples in every run; -rapid.seed 0 draws others.
func init() { _ = flag.Set("rapid.seed", "1") }

// testMeta is what a caller says of a checkpoint.
var testMeta = Meta{Seq: 7, At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC), Reason: Manual, Task: "a/task-1",
	Tasks: Tasks{Total: 3, Completed: 1, Active: []string{"a/task-1"}}, Messages: 4}

// place is a project on the real disk with a store of checkpoints beside it.
type place struct {
	t    require.TestingT
	root string
	*Store
}

func newPlace(t require.TestingT, dir string) place {
	for _, name := range []string{"tree", "checkpoints", "blobs"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	return openPlace(t, dir)
}

func openPlace(t require.TestingT, dir string) place {
	var all [3]writer.FS
	for i, name := range []string{"checkpoints", "blobs", "tree"} {
		var err error
		all[i], err = writer.OpenFS(filepath.Join(dir, name))
		require.NoError(t, err)
		if c, ok := t.(interface{ Cleanup(func()) }); ok {
			c.Cleanup(func() { _ = all[i].Close() })
		}
	}
	return place{t, filepath.Join(dir, "tree"), New(all[0], blob.New(all[1]), all[2])}
}

func (p place) path(name string) string { return filepath.Join(p.root, name) }

// write makes files: a name that ends in / is a folder, a content "-> x" a symlink.
func (p place) write(contents map[string]string) {
	for name, content := range contents {
		full := p.path(name)
		require.NoError(p.t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch target, link := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			require.NoError(p.t, os.MkdirAll(full, 0o755))
		case link:
			require.NoError(p.t, os.Symlink(target, full))
		default:
			require.NoError(p.t, os.WriteFile(full, []byte(content), 0o644))
		}
	}
}

func (p place) remove(names ...string) {
	for _, name := range names {
		require.NoError(p.t, os.RemoveAll(p.path(name)))
	}
}

func (p place) create(base *Manifest, paths ...string) *Manifest {
	m, err := p.Create(context.Background(), testMeta, base, paths)
	require.NoError(p.t, err)
	return m
}

// rewind is what a caller does, without a checkpoint before it.
func (p place) rewind(target, last *Manifest, force bool) (*Plan, Applied) {
	now, err := p.Look(context.Background(), nil, nil)
	require.NoError(p.t, err)
	plan := NewPlan(target.Files, last.Files, now, force)
	done, err := p.Apply(context.Background(), plan)
	require.NoError(p.t, err)
	return plan, done
}

// look is the tree as a person sees it: modes and contents by path.
func look(t require.TestingT, root string) map[string]string {
	all := map[string]string{}
	root = filepath.Clean(root)
	require.NoError(t, filepath.WalkDir(root, func(full string, e fs.DirEntry, err error) error {
		if err != nil || full == root {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, text := full[len(root)+1:], ""
		switch {
		case e.Type() == fs.ModeSymlink:
			text, err = os.Readlink(full)
		case e.Type().IsRegular():
			var data []byte
			data, err = os.ReadFile(full)
			if text = string(data); len(data) > 1<<20 {
				text = fmt.Sprintf("%d bytes, %x", len(data), sha256.Sum256(data))
			}
		}
		all[name] = fmt.Sprintf("%s %q", info.Mode()&^specialBits, text)
		return err
	}))
	return all
}

// names of the trees that are edited at random: few, so that edits meet.
var names = []string{"a", "b", "c", "a.txt", "\xff\xfe", "with space", "é"}

// edit changes a tree in one random way, as a shell would; what cannot be done is
// left out.
func edit(t *rapid.T, root string) {
	var there []string
	_ = filepath.WalkDir(root, func(full string, _ fs.DirEntry, err error) error {
		if err == nil && full != root {
			there = append(there, full)
		}
		return nil
	})
	sort.Strings(there)
	fresh := func() string {
		dirs := []string{root}
		for _, full := range there {
			if info, err := os.Lstat(full); err == nil && info.IsDir() && strings.Count(full[len(root):], "/") < 4 {
				dirs = append(dirs, full)
			}
		}
		return rapid.SampledFrom(dirs).Draw(t, "in") + "/" + rapid.SampledFrom(names).Draw(t, "name")
	}
	content := func() []byte {
		return rapid.SampledFrom([][]byte{nil, []byte("one\n"), []byte("two\nlines\n"), []byte("no end"), {0, 1, 2, 0xff}, make([]byte, 20<<10), []byte(strings.Repeat("x", 70<<10))}).Draw(t, "content")
	}
	one := fresh()
	if len(there) > 0 && rapid.Bool().Draw(t, "known") {
		one = rapid.SampledFrom(there).Draw(t, "one")
	}
	switch rapid.IntRange(0, 9).Draw(t, "edit") {
	case 0, 1:
		_ = os.WriteFile(one, content(), 0o644)
	case 2:
		_ = os.Mkdir(one, rapid.SampledFrom([]fs.FileMode{0o755, 0o700, 0o711}).Draw(t, "mode"))
	case 3:
		_ = os.RemoveAll(one)
	case 4:
		_ = os.Rename(one, fresh())
	case 5:
		if info, err := os.Lstat(one); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			_ = os.Chmod(one, rapid.SampledFrom([]fs.FileMode{0o600, 0o755, 0o444, 0o700 | fs.ModeSticky, 0o750 | fs.ModeSetgid}).Draw(t, "mode"))
		}
	case 6:
		_ = os.Symlink(rapid.SampledFrom([]string{"a", "b/c", "../..", "/etc/hosts", "\xff"}).Draw(t, "target"), one)
	case 7:
		if info, err := os.Lstat(one); err == nil && info.Mode().IsRegular() {
			_ = os.Truncate(one, rapid.Int64Range(0, 100_000).Draw(t, "size"))
		}
	case 8: // a file becomes a folder with something in it, or the reverse
		info, err := os.Lstat(one)
		_ = os.RemoveAll(one)
		if err == nil && info.IsDir() {
			_ = os.WriteFile(one, content(), 0o644)
		} else {
			_ = os.Mkdir(one, 0o755)
			_ = os.WriteFile(one+"/a", content(), 0o600)
		}
	case 9:
		_ = os.RemoveAll(one)
		_ = os.Link(filepath.Join(root, "a"), one)
	}
}

func edits(t *rapid.T, root string) {
	for range rapid.IntRange(0, 12).Draw(t, "edits") {
		edit(t, root)
	}
}

// TestRewindBringsBack edits a tree at random, rewinds, and rewinds the rewind.
func TestRewindBringsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "checkpoint")
		require.NoError(rt, err)
		defer os.RemoveAll(dir)
		p := newPlace(rt, dir)
		edits(rt, p.root)
		first := p.create(nil)
		then := look(rt, p.root)

		edits(rt, p.root)
		before := p.create(first)
		edited := look(rt, p.root)

		plan := NewPlan(first.Files, before.Files, before.Files, false)
		require.Empty(rt, plan.Kept)
		done, err := p.Apply(context.Background(), plan)
		require.NoError(rt, err)
		require.Empty(rt, done.Kept)
		require.Equal(rt, then, look(rt, p.root))
		done, err = p.Apply(context.Background(), plan) // nothing is left to do
		require.NoError(rt, err)
		require.Equal(rt, Applied{Changes: len(plan.Changes)}, done)
		require.Equal(rt, then, look(rt, p.root))

		loaded, err := p.Load(before.ID)
		require.NoError(rt, err)
		require.Equal(rt, before.Header, loaded.Header)
		now, err := p.Look(context.Background(), before, nil)
		require.NoError(rt, err)
		require.Empty(rt, Diff(first.Files, now))
		undo := NewPlan(loaded.Files, first.Files, now, false)
		require.Empty(rt, undo.Kept)
		for _, c := range undo.Changes {
			_, err := p.Patch(c.Old, c.New)
			require.NoError(rt, err)
		}
		done, err = p.Apply(context.Background(), undo)
		require.NoError(rt, err)
		require.Empty(rt, done.Kept)
		require.Equal(rt, edited, look(rt, p.root))
	})
}
