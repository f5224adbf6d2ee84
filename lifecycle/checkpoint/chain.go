package checkpoint

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// errNotFolder says that something else has the place of a folder.
var errNotFolder = errors.New("it is no folder")

// A chain is the open folders on the way to one of them. Each was looked at without
// following it and opened in the one above, so that no symlink is ever passed, not
// even one that leads elsewhere inside. It is for one goroutine.
type chain struct {
	root  writer.FS
	names []string
	open  []writer.FS
}

// to goes to a folder of the tree, "." for its root. What it returns is good until
// the next call. The error is an fs.ErrNotExist, or errNotFolder.
func (c *chain) to(dir string) (writer.FS, error) {
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

func (c *chain) at() writer.FS {
	if len(c.open) == 0 {
		return c.root
	}
	return c.open[len(c.open)-1]
}

// cut closes all folders but the first n.
func (c *chain) cut(n int) {
	for i := n; i < len(c.open); i++ {
		_ = c.open[i].Close() // nothing was written through it
	}
	c.names, c.open = c.names[:n], c.open[:n]
}

// nearest is the deepest folder on the way to dir that is there.
func (c *chain) nearest(dir string) (writer.FS, string, error) {
	for {
		at, err := c.to(dir)
		if err == nil {
			return at, dir, nil
		}
		if dir == "." || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotFolder) {
			return nil, "", err
		}
		dir = parent(dir)
	}
}

// forget closes a folder that is to be removed, and what is in it, where an open
// one cannot be.
func (c *chain) forget(dir string) {
	if len(c.names) > 0 && strings.HasPrefix(strings.Join(c.names, "/")+"/", dir+"/") {
		c.cut(strings.Count(dir, "/"))
	}
}

func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return "."
}

func base(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }
