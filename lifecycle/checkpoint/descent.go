package checkpoint

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// errNotFolder means that a path is not a folder.
var errNotFolder = errors.New("it is no folder")

// A descent is a stack of open folders on the way to one of them. Each folder was looked at
// with lstat and opened in the one above, so that no symlink is followed, not even one that
// stays inside the tree, and no mount is crossed between look and change. It is for one goroutine.
type descent struct {
	root  writer.FS
	names []string
	open  []writer.FS
	infos []fs.FileInfo // of the open folders, when they were opened
	on    []uint64      // their mounts, if crosses is not nil
	// folded maps a path to the name that is found there, if it differs from the path in
	// case or normalization. Such a path counts as missing.
	folded map[string]string
	// crosses has the mount points that may be crossed; nil means all.
	crosses map[string]bool
	volumes map[string]string // at these, where that is known
}

// to opens a folder of the tree, "." for its root. The result is valid until the next call. If
// there is no such folder, the error is fs.ErrNotExist or errNotFolder, and errMounted if a mount is
// on the way that may not be crossed.
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
	for n, part := range parts[shared:] {
		path := strings.Join(parts[:shared+n+1], "/")
		if len(c.folded) > 0 && c.folded[path] != "" {
			return nil, fs.ErrNotExist
		}
		sub, err := c.enter(c.at(), path)
		if err != nil {
			return nil, err
		}
		info, err := sub.Lstat(".")
		var on uint64
		if err == nil && c.crosses != nil {
			on, err = sub.Mount(".")
		}
		if err != nil {
			_ = sub.Close()
			return nil, err
		}
		c.names, c.open = append(c.names, part), append(c.open, sub)
		c.infos, c.on = append(c.infos, info), append(c.on, on)
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
	c.names, c.open, c.infos, c.on = c.names[:n], c.open[:n], c.infos[:n], c.on[:n]
}

// moved closes the open folders that are not at their paths any more, because somebody renamed one,
// and reports whether there were any.
func (c *descent) moved() (bool, error) {
	at := c.root
	for n, name := range c.names {
		info, err := at.Lstat(name)
		if err == nil && writer.SameFile(info, c.infos[n]) {
			at = c.open[n]
			continue
		}
		c.cut(n)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return true, err
	}
	return false, nil
}

// again is to for a folder that was open before. It returns fs.ErrNotExist if somebody renamed it, or a
// folder above it, since.
func (c *descent) again(dir string) (writer.FS, error) {
	if moved, err := c.moved(); moved || err != nil {
		return nil, cmp.Or(err, fs.ErrNotExist)
	}
	return c.to(dir)
}

// above returns an open folder on the way to the one that to returned.
func (c *descent) above(dir string) writer.FS {
	if dir == "." {
		return c.root
	}
	return c.open[strings.Count(dir, "/")]
}

// stat returns the info of a path, and its folder as to does.
func (c *descent) stat(path string) (writer.FS, fs.FileInfo, error) {
	dir, info, err := c.lstat(path)
	if err == nil {
		err = c.crossed(dir, path)
	}
	return dir, info, err
}

// lstat is stat for a path of which stat found before that it crosses no mount.
func (c *descent) lstat(path string) (writer.FS, fs.FileInfo, error) {
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

// unreachable reports whether an error means that a folder is missing or no folder.
func unreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder)
}

// nearest opens the deepest existing folder on the way to dir, and returns its path.
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

// forget closes a folder that is to be removed, and the folders in it, because some systems
// cannot remove an open folder.
func (c *descent) forget(dir string) {
	if len(c.names) > 0 && strings.HasPrefix(strings.Join(c.names, "/")+"/", dir+"/") {
		c.cut(strings.Count(dir, "/"))
	}
}

// parent and base are the two parts of a path in the tree. Most functions here have a path of
// that name.
var parent, base = path.Dir, path.Base
