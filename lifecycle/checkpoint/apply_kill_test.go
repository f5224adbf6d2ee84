package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/lopen-dev/lopen/writer"
)

// errKilled is the error of each call after the process was killed. The calls do nothing.
var errKilled = errors.New("killed")

// A cutter ends the process before a call that changes something.
type cutter struct {
	mu     sync.Mutex
	left   int // calls that are carried out; less than 0: all
	calls  int
	umask  fs.FileMode
	before func(call, name string) error // of calls that change something; may be nil
	then   func()                        // after each of them; may be nil
}

func (c *cutter) call(what, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return errKilled
	}
	c.left--
	c.calls++
	if c.before != nil {
		return c.before(what, name)
	}
	return nil
}

// done is called after a call.
func (c *cutter) done() {
	if c.then != nil {
		c.then()
	}
}

func (c *cutter) dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left == 0
}

// A cutFS goes through a cutter. It has an umask of its own, as that of the process is
// one for all tests, and syncs nothing.
type cutFS struct {
	writer.FS
	*cutter
	prefix string
}

func (c *cutFS) at(name string) string { return path.Join(c.prefix, name) }

func (c *cutFS) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	if flag&os.O_CREATE != 0 {
		if err := c.call("create", c.at(name)); err != nil {
			return nil, err
		}
	} else if c.dead() {
		return nil, errKilled
	}
	f, err := c.FS.OpenFile(name, flag, perm&^c.umask)
	if err != nil {
		return nil, err
	}
	if flag&os.O_CREATE != 0 {
		c.done()
	}
	return &cutFile{f, c, c.at(name)}, nil
}

func (c *cutFS) Mkdir(name string, perm fs.FileMode) error {
	return c.do("mkdir", name, func() error { return c.FS.Mkdir(name, perm&^c.umask) })
}

func (c *cutFS) Rename(from, to string) error {
	return c.do("rename", to, func() error { return c.FS.Rename(from, to) })
}

func (c *cutFS) Remove(name string) error {
	return c.do("remove", name, func() error { return c.FS.Remove(name) })
}

func (c *cutFS) Symlink(target, name string) error {
	return c.do("symlink", name, func() error { return c.FS.Symlink(target, name) })
}

func (c *cutFS) Chmod(name string, mode fs.FileMode) error {
	return c.do("chmod", name, func() error { return c.FS.Chmod(name, mode) })
}

func (c *cutFS) SyncDir(string) error { return nil }

func (c *cutFS) do(call, name string, fn func() error) error {
	if err := c.call(call, c.at(name)); err != nil {
		return err
	}
	defer c.done()
	return fn()
}

func (c *cutFS) Sub(name string) (writer.FS, error) {
	sub, err := c.FS.Sub(name)
	if err != nil {
		return nil, err
	}
	return &cutFS{sub, c.cutter, c.at(name)}, nil
}

type cutFile struct {
	writer.File
	*cutFS
	name string
}

// RenameTo is a rename from a folder that is open to another one.
func (f *cutFile) RenameTo(from string, to writer.File, name string) error {
	g, ok := to.(*cutFile)
	if !ok { // it is outside of the tree
		dir, err := writer.OpenFS(to.(interface{ OS() *os.File }).OS().Name())
		if err != nil {
			return err
		}
		defer dir.Close()
		g = &cutFile{cutFS: &cutFS{FS: dir}}
	}
	if err := f.call("rename", path.Join(g.name, name)); err != nil {
		return err
	}
	defer f.done()
	return writer.RenameTo(f.FS, from, g.FS, name)
}

func (f *cutFile) Write(p []byte) (int, error) {
	if err := f.call("write", f.name); err != nil {
		return 0, err
	}
	return f.File.Write(p)
}

func (f *cutFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.call("write", f.name); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *cutFile) Chmod(mode fs.FileMode) error {
	if err := f.call("chmod", f.name); err != nil {
		return err
	}
	return f.File.Chmod(mode)
}

func (f *cutFile) Sync() error { return nil }

// OS returns the file of the operating system, or nil on a simulated disk.
func (f *cutFile) OS() *os.File {
	if of, ok := f.File.(interface{ OS() *os.File }); ok {
		return of.OS()
	}
	return nil
}
