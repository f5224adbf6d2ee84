package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
	"github.com/lopen-dev/lopen/writer/crashfs"
)

// place is a project on the real disk, with a chain of checkpoints.
type place struct {
	t    require.TestingT
	dir  string
	root string
	*Store
}

func newPlace(t *testing.T) place {
	dir := t.TempDir()
	for _, name := range []string{"tree", "checkpoints", "blobs"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	return openPlace(t, dir, Options{})
}

// memories has for each place what all processes there remember.
var memories sync.Map

// openPlace opens the project as another process does.
func openPlace(t *testing.T, dir string, opts Options) place {
	var all [3]writer.FS
	for i, name := range []string{"checkpoints", "blobs", "tree"} {
		var err error
		all[i], err = writer.OpenFS(filepath.Join(dir, name))
		require.NoError(t, err)
		t.Cleanup(func() { _ = all[i].Close() })
	}
	if opts.Memory == nil {
		m, _ := memories.LoadOrStore(dir, files.Own())
		opts.Memory = m.(files.Memory)
	}
	return place{t, dir, filepath.Join(dir, "tree"), New(all[0], MainTree, blob.New(all[1]), all[2], opts)}
}

func (p place) path(name string) string { return filepath.Join(p.root, name) }

// write makes files: a name that ends in / is a folder, a content "-> x" a symlink.
func (p place) write(contents ...string) {
	for i := 0; i < len(contents); i += 2 {
		full, content := p.path(contents[i]), contents[i+1]
		require.NoError(p.t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch target, link := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(contents[i], "/"):
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

// about is what a caller says of a checkpoint.
func about(session string, why Reason, parent *Entry) Meta {
	m := Meta{Session: session, Seq: 7, At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC), Reason: why, Task: "a/task-1", Tasks: Tasks{Total: 3, Completed: 1}}
	if parent != nil {
		m.Parent = parent.Number
	}
	return m
}

func (p place) create(meta Meta) *Entry {
	e, err := p.Create(context.Background(), meta)
	require.NoError(p.t, err)
	return e
}

// list is a tree as text: what is in it, by path, then what is unknown.
func list(t require.TestingT, tree *Tree) (all []string) {
	for f, err := range tree.All() {
		require.NoError(t, err)
		text := f.Mode.String() + " " + f.Path
		switch {
		case f.Mode.IsRegular():
			data, err := tree.blobs.Read(f.Hash, 1<<20)
			require.NoError(t, err)
			require.EqualValues(t, len(data), f.Size)
			text += " " + string(data)
		case !f.Mode.IsDir():
			text += " -> " + f.Target
		}
		all = append(all, text)
	}
	skipped, err := tree.Skipped()
	require.NoError(t, err)
	for _, k := range skipped {
		all = append(all, "? "+k.Path+" "+string(k.Reason))
	}
	return all
}

// simulated returns a Store of a project on a simulated disk.
func simulated(t require.TestingT, disk *crashfs.Disk) *Store {
	var all [3]writer.FS
	for i, name := range []string{"checkpoints", "blobs", "tree"} {
		require.NoError(t, writer.MkdirDurable(disk.FS(), name))
		var err error
		all[i], err = disk.FS().Sub(name)
		require.NoError(t, err)
	}
	return New(all[0], MainTree, blob.New(all[1]), all[2], Options{})
}

// lay makes a tree what contents say, durably; see place.write.
func lay(t require.TestingT, tree writer.FS, contents ...string) {
	entries, err := tree.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, tree.RemoveAll(e.Name()))
	}
	for i := 0; i < len(contents); i += 2 {
		name, content := contents[i], contents[i+1]
		switch target, link := strings.CutPrefix(content, "-> "); {
		case strings.HasSuffix(name, "/"):
			require.NoError(t, writer.MkdirDurable(tree, strings.TrimSuffix(name, "/")))
		case link:
			require.NoError(t, writer.ReplaceSymlink(tree, target, name))
		default:
			require.NoError(t, writer.ReplaceFile(tree, name, []byte(content), 0o644))
		}
	}
	require.NoError(t, tree.SyncDir("."))
}
