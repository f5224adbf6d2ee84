package checkpoint

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// errNotFolder says that something else has the place of a folder.
var errNotFolder = errors.New("it is no folder")

// A descent is the open folders on the way to one of them. Each was looked at without
// following it and opened in the one above, so that no symlink is ever passed, not
// even one that leads elsewhere inside. It is for one goroutine.
type descent struct {
	root  writer.FS
	names []string
	open  []writer.FS
	// folded are paths at which only another name is found, which differs in case or
	// normalisation: they are as good as missing.
	folded map[string]string
}

// to goes to a folder of the tree, "." for its root. What it returns is good until
// the next call. The error is an fs.ErrNotExist, or errNotFolder.
func (c *descent) to(dir string) (writer.FS, error) {
	var parts []string
	if dir != "." {
		parts = strings.Split(dir, "/")
	}
	shared := 0
	for shared < len(parts) && shared < len(c.names) && parts[shared] == c.names[shared] {
		shared++
	}
	c.cut(shared)
	for _, part := range parts[shared:] {
		if len(c.folded) > 0 && c.folded[strings.Join(append(slices.Clone(c.names), part), "/")] != "" {
			return nil, fs.ErrNotExist
		}
		at := c.at()
		info, err := at.Lstat(part)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, errNotFolder
		}
		var sub writer.FS
		err = writer.Retry(func() (err error) {
			sub, err = at.Sub(part)
			return err
		})
		if err != nil {
			return nil, err
		}
		opened, err := sub.Lstat(".")
		if err == nil && !writer.SameFile(info, opened) {
			err = errNotFolder // replaced between the two
		}
		if err != nil {
			_ = sub.Close()
			return nil, err
		}
		c.names, c.open = append(c.names, part), append(c.open, sub)
	}
	return c.at(), nil
}

func (c *descent) at() writer.FS {
	if len(c.open) == 0 {
		return c.root
	}
	return c.open[len(c.open)-1]
}

// cut closes all folders but the first n.
func (c *descent) cut(n int) {
	for i := n; i < len(c.open); i++ {
		_ = c.open[i].Close() // nothing was written through it
	}
	c.names, c.open = c.names[:n], c.open[:n]
}

// stat looks at a path, and returns the folder that it is in as to does.
func (c *descent) stat(path string) (writer.FS, fs.FileInfo, error) {
	dir, err := c.to(parent(path))
	if err == nil && c.folded[path] != "" {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := dir.Lstat(base(path))
	return dir, info, err
}

// unreachable says that a folder is not there, or is none any more.
func unreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder)
}

// nearest is the deepest folder on the way to dir that is there.
func (c *descent) nearest(dir string) (writer.FS, string, error) {
	for {
		at, err := c.to(dir)
		if err == nil {
			return at, dir, nil
		}
		if dir == "." || !unreachable(err) {
			return nil, "", err
		}
		dir = parent(dir)
	}
}

// forget closes a folder that is to be removed, and what is in it, where an open
// one cannot be.
func (c *descent) forget(dir string) {
	if len(c.names) > 0 && strings.HasPrefix(strings.Join(c.names, "/")+"/", dir+"/") {
		c.cut(strings.Count(dir, "/"))
	}
}

// parent and base are the two parts of a path in the tree. Most functions here have a path of
// that name.
var parent, base = path.Dir, path.Base
