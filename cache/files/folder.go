package files

import (
	"io/fs"
	"path"

	"github.com/lopen-dev/lopen/cache/internal/identity"
	"github.com/lopen-dev/lopen/writer"
)

// fsFolder is a folder of any FS. It has no descriptor: each look goes down from
// the root, which the FS keeps from leading outside.
type fsFolder struct {
	root writer.FS
	path string
}

func topOf(root writer.FS) (folder, uint64, error) {
	mount, err := root.Mount(".")
	return fsFolder{root, "."}, mount, err
}

func (d fsFolder) names() ([]string, error) {
	info, err := d.root.Lstat(d.path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &writer.Error{Op: "list", Path: d.path, Class: writer.ClassInvalid, Err: fs.ErrInvalid}
	}
	entries, err := d.root.ReadDir(d.path)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (d fsFolder) stat(_, name string) (stat, error) {
	name = path.Join(d.path, name)
	info, err := d.root.Lstat(name)
	if err != nil {
		return stat{}, err
	}
	st := statOf(info)
	st.mount, err = d.root.Mount(name)
	return st, err
}

func (d fsFolder) open(_, name string) (folder, error) {
	return fsFolder{d.root, path.Join(d.path, name)}, nil
}

func (fsFolder) close() {}

// statOf is what an info of this system or of a simulated disk says.
func statOf(info fs.FileInfo) stat {
	id := identity.Of(info)
	return stat{info.Mode(), id.Size, id.Modified, id.Changed, id.Inode, 0}
}
