package crashfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/lopen-dev/lopen/writer"
)

// A file is an open file. What it guards is under the disk's mutex.
type file struct {
	d      *Disk
	node   *inode
	name   string // as it was opened
	rel    string
	flag   int
	off    int64
	closed bool
}

const accessModes = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

func writes(flag int) bool { return flag&accessModes != os.O_RDONLY }

// OpenFile opens as with O_NOFOLLOW whatever flag says: a symlink is ELOOP.
func (f *folder) OpenFile(name string, flag int, perm fs.FileMode) (writer.File, error) {
	call := "open"
	f.d.mu.Lock()
	switch p, err := f.walk(name, false); {
	case err != nil:
	case p.node == nil && flag&os.O_CREATE != 0:
		call = "create"
	case p.node != nil && flag&os.O_TRUNC != 0 && writes(flag):
		call = "truncate"
	}
	f.d.mu.Unlock()
	var node *inode
	err := f.call(call, name, writes(flag) || flag&(os.O_CREATE|os.O_TRUNC) != 0, func() (err error) {
		if node, err = f.open(name, flag, perm); err == nil && writes(flag) {
			node.writers++
		}
		return err
	})
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &file{d: f.d, node: node, name: name, rel: f.rel(name), flag: flag}, nil
}

func (f *folder) open(name string, flag int, perm fs.FileMode) (*inode, error) {
	p, err := f.walk(name, false)
	switch {
	case err != nil:
		return nil, err
	case p.node == nil && flag&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case p.node == nil:
		if p, err = f.vacant(name); err != nil {
			return nil, err
		}
		p.node = f.d.newInode(perm.Perm())
		f.d.setName("create", p.dir, p.name, p.node.ino)
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	case p.node.mode&fs.ModeSymlink != 0:
		return nil, syscall.ELOOP
	case p.node.mode.IsDir() && (writes(flag) || flag&os.O_CREATE != 0):
		return nil, syscall.EISDIR
	case flag&os.O_TRUNC != 0 && writes(flag):
		f.d.truncate(p.node)
	}
	p.node.open++
	return p.node, nil
}

// call asks the hook and carries fn out under the mutex.
func (f *file) call(call string, bytes int, counted bool, fn func(Fault) error) error {
	f.d.mu.Lock()
	closed := f.closed
	f.d.mu.Unlock()
	if closed {
		return pathError(call, f.name, os.ErrClosed)
	}
	x := f.d.before(call, f.rel, bytes, counted)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	err := os.ErrClosed // since
	if !f.closed {
		err = fn(x)
	}
	if err == io.EOF { //nolint:errorlint // Read returns it bare
		return err
	}
	return pathError(call, f.name, err)
}

func (f *file) Read(p []byte) (n int, err error) {
	err = f.call("read", len(p), false, func(x Fault) (err error) {
		n, err = f.get(p, f.off, x)
		f.off += int64(n)
		return err
	})
	return n, err
}

// ReadAt returns io.EOF with fewer bytes than asked for, as os.File does.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.call("read", len(p), false, func(x Fault) (err error) {
		if off < 0 {
			return syscall.EINVAL
		}
		if n, err = f.get(p, off, x); err == nil && n < len(p) {
			err = io.EOF
		}
		return err
	})
	return n, err
}

func (f *file) get(p []byte, off int64, x Fault) (int, error) {
	switch {
	case x.Err != nil:
		return 0, x.Err
	case f.flag&accessModes == os.O_WRONLY:
		return 0, syscall.EBADF
	case f.node.mode.IsDir():
		return 0, syscall.EISDIR
	case len(p) == 0:
		return 0, nil
	case off >= int64(len(f.node.data)):
		return 0, io.EOF
	}
	return copy(p, f.node.data[off:]), nil
}

func (f *file) Write(p []byte) (n int, err error) {
	err = f.call("write", len(p), true, func(x Fault) (err error) {
		if f.flag&os.O_APPEND != 0 {
			f.off = int64(len(f.node.data))
		}
		n, err = f.put(p, f.off, x)
		f.off += int64(n)
		return err
	})
	return n, err
}

// WriteAt refuses a file that was opened with O_APPEND, as os.File does.
func (f *file) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.call("write", len(p), true, func(x Fault) (err error) {
		if off < 0 || f.flag&os.O_APPEND != 0 {
			return syscall.EINVAL
		}
		n, err = f.put(p, off, x)
		return err
	})
	return n, err
}

func (f *file) put(p []byte, off int64, x Fault) (int, error) {
	if !writes(f.flag) {
		return 0, syscall.EBADF
	}
	if x.Err != nil || x.Partial > 0 {
		p = p[:min(max(x.Partial, 0), len(p))]
	}
	n, err := f.d.write(f.node, p, off)
	if x.Err != nil {
		err = x.Err
	}
	return n, err
}

func (f *file) Sync() error { return f.sync("sync", false) }

func (f *file) Datasync() error { return f.sync("datasync", true) }

func (f *file) sync(call string, dataOnly bool) error {
	return f.call(call, 0, true, func(x Fault) error { return f.d.syncOrFail(f.node, x.Err, dataOnly) })
}

func (f *file) Chmod(mode fs.FileMode) error {
	return f.call("chmod", 0, true, func(x Fault) error {
		if x.Err == nil {
			f.d.chmod(f.node, mode)
		}
		return x.Err
	})
}

func (f *file) Stat() (info fs.FileInfo, err error) {
	err = f.call("stat", 0, false, func(x Fault) error {
		info = f.d.info(f.node, path.Base(f.name))
		return x.Err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// Written reports whether any handle on the file is open for writing, for [writer.Openers].
func (f *file) Written() bool {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.node.writers > 0
}

// Close closes even when the hook makes it fail.
func (f *file) Close() error {
	return f.call("close", 0, writes(f.flag), func(x Fault) error {
		f.closed = true
		f.node.open--
		if writes(f.flag) {
			f.node.writers--
		}
		f.d.release(f.node)
		return x.Err
	})
}
