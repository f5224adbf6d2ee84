package crashfs

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/mount"
)

// A folder is a writer.FS. It is bound to an inode, not to a path, as os.Root is.
type folder struct {
	d      *Disk
	ino    uint64
	name   string // absolute, when it was opened
	prefix string // the same relative to the root
	closed atomic.Bool
}

func (f *folder) Name() string { return f.name }

func (f *folder) Close() error {
	f.closed.Store(true)
	return nil
}

func (f *folder) rel(name string) string { return path.Join(f.prefix, name) }

// call asks the hook and carries fn out under the mutex.
func (f *folder) call(call, name string, counted bool, fn func() error) error {
	if f.closed.Load() {
		return os.ErrClosed
	}
	x := f.d.before(call, f.rel(name), 0, counted)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if x.Err != nil {
		return x.Err
	}
	return fn()
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func linkError(op, from, to string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: from, New: to, Err: err}
}

func (f *folder) Mkdir(name string, perm fs.FileMode) error {
	return pathError("mkdir", name, f.call("mkdir", name, true, func() error {
		p, err := f.vacant(name)
		if err == nil {
			f.d.setName("mkdir", p.dir, p.name, f.d.newInode(modeDir|perm.Perm()).ino)
		}
		return err
	}))
}

func (f *folder) Chmod(name string, mode fs.FileMode) error {
	return pathError("chmod", name, f.call("chmod", name, true, func() error {
		p, err := f.find(name, true)
		if err == nil {
			f.d.chmod(p.node, mode)
		}
		return err
	}))
}

func (f *folder) Symlink(target, name string) error {
	return linkError("symlink", target, name, f.call("symlink", name, true, func() error {
		if target == "" {
			return syscall.ENOENT
		}
		p, err := f.vacant(name)
		if err != nil {
			return err
		}
		i := f.d.newInode(fs.ModeSymlink | 0o777)
		i.target = target
		f.d.setName("symlink", p.dir, p.name, i.ino)
		return nil
	}))
}

func (f *folder) Link(oldname, newname string) error {
	return linkError("link", oldname, newname, f.call("link", newname, true, func() error {
		from, err := f.find(oldname, false)
		if err != nil {
			return err
		}
		if from.node.mode.IsDir() {
			return syscall.EPERM
		}
		to, err := f.vacant(newname)
		if err == nil {
			f.d.setName("link", to.dir, to.name, from.node.ino)
		}
		return err
	}))
}

func (f *folder) Rename(oldname, newname string) error {
	return linkError("rename", oldname, newname, f.call("rename", newname, true, func() error { return f.renameTo(oldname, f, newname) }))
}

func (f *folder) renameTo(oldname string, g *folder, newname string) error {
	from, err := f.find(oldname, false)
	if err != nil {
		return err
	}
	to, err := g.walk(newname, false)
	if err != nil {
		return err
	}
	isDir := from.node.mode.IsDir()
	switch {
	case from.dir == nil || to.dir == nil:
		return syscall.EBUSY
	case f.d.busy(from.node) != nil, f.d.busy(to.node) != nil:
		return syscall.EBUSY
	case to.node == from.node:
		return nil // as POSIX has it, even for two names of one file
	case isDir && f.d.within(to.dir.ino, from.node.ino):
		return syscall.EINVAL
	case to.node == nil:
	case isDir && !to.node.mode.IsDir():
		return syscall.ENOTDIR
	case !isDir && to.node.mode.IsDir():
		return syscall.EISDIR
	case len(to.node.entries) > 0:
		return syscall.ENOTEMPTY
	}
	f.d.change(nameOp{
		what: "rename", n: 2, folder: isDir,
		sets: [2]set{{from.dir.ino, from.name, 0}, {to.dir.ino, to.name, from.node.ino}},
	})
	return nil
}

// within says that a folder is another one or beneath it.
func (d *Disk) within(ino, above uint64) bool {
	if ino == above {
		return true
	}
	for _, child := range d.inodes[above].entries {
		if d.inodes[child].mode.IsDir() && d.within(ino, child) {
			return true
		}
	}
	return false
}

func (f *folder) Remove(name string) error {
	return pathError("remove", name, f.call("remove", name, true, func() error {
		p, err := f.find(name, false)
		switch {
		case err != nil:
			return err
		case p.dir == nil:
			return syscall.EINVAL
		case f.d.busy(p.node) != nil:
			return syscall.EBUSY
		case len(p.node.entries) > 0:
			return syscall.ENOTEMPTY
		}
		f.d.setName("remove", p.dir, p.name, 0)
		return nil
	}))
}

// RemoveAll makes a change of each entry, so a cut may leave some.
func (f *folder) RemoveAll(name string) error {
	return pathError("removeall", name, f.call("removeall", name, true, func() error {
		p, err := f.walk(name, false)
		switch {
		case err == syscall.ENOENT: //nolint:errorlint // walk returns it bare
			return nil
		case err != nil:
			return err
		case p.dir == nil:
			return syscall.EINVAL
		case p.node != nil:
			return f.d.removeAll(p)
		}
		return nil
	}))
}

func (d *Disk) removeAll(p place) (err error) {
	if d.busy(p.node) != nil {
		return mount.ErrMounted
	}
	for _, name := range p.node.names() {
		if rerr := d.removeAll(place{p.node, name, d.inodes[p.node.entries[name]]}); err == nil {
			err = rerr
		}
	}
	if err == nil {
		d.setName("remove", p.dir, p.name, 0)
	}
	return err
}

// names are a folder's entries, sorted.
func (i *inode) names() []string {
	list := make([]string, 0, len(i.entries))
	for name := range i.entries {
		list = append(list, name)
	}
	slices.SortFunc(list, strings.Compare)
	return list
}

func (f *folder) SyncDir(name string) error {
	if f.closed.Load() {
		return os.ErrClosed
	}
	x := f.d.before("syncdir", f.rel(name), 0, true)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	p, err := f.find(name, true)
	if err == nil && !p.node.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		err = f.d.syncOrFail(p.node, x.Err, false)
	}
	return pathError("sync", name, err)
}

// syncOrFail syncs a file or folder, or does what a failed sync does.
func (d *Disk) syncOrFail(i *inode, fault error, dataOnly bool) error {
	switch isDir := i.mode.IsDir(); {
	case isDir && fault != nil:
		d.failSyncDir(i)
		d.failSync(i)
	case isDir:
		d.syncDir(i)
		i.sync(false)
	case fault != nil:
		d.failSync(i)
	default:
		i.sync(dataOnly)
	}
	return fault
}

func (f *folder) Sub(name string) (writer.FS, error) {
	var sub *folder
	err := f.call("sub", name, false, func() error {
		p, err := f.find(name, true)
		if err == nil && !p.node.mode.IsDir() {
			err = syscall.ENOTDIR
		}
		if err == nil {
			sub = &folder{d: f.d, ino: p.node.ino, name: path.Join(f.name, name), prefix: f.rel(name)}
		}
		return err
	})
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return sub, nil
}
