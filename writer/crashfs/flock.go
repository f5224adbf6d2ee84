package crashfs

import (
	"io/fs"
	"path"

	"github.com/lopen-dev/lopen/writer"
)

// holders are those who have a lock on an inode.
type holders struct {
	alone  *lock
	shared map[*lock]bool
}

// A lock is a writer.Flock. It has the file open only while it holds the lock,
// as gofrs/flock does. What it guards is under the disk's mutex.
type lock struct {
	dir  *folder
	name string
	flag int
	node *inode // nil when nothing is held
}

func (f *folder) Flock(name string, flag int) writer.Flock {
	return &lock{dir: f, name: name, flag: flag}
}

func (l *lock) TryLock() (bool, error) { return l.try("lock", true) }

func (l *lock) TryRLock() (bool, error) { return l.try("rlock", false) }

// try takes the lock or changes its kind. A refused change leaves what was held.
func (l *lock) try(call string, alone bool) (ok bool, err error) {
	err = l.dir.call(call, l.name, false, func() error {
		d, node := l.dir.d, l.node
		if node == nil {
			var err error
			if node, err = l.dir.open(l.name, l.flag, 0o600); err != nil {
				return err
			}
		}
		h := d.locks[node.ino]
		if h == nil {
			h = &holders{shared: map[*lock]bool{}}
			d.locks[node.ino] = h
		}
		others := len(h.shared)
		if h.shared[l] {
			others--
		}
		ok = (h.alone == nil || h.alone == l) && (!alone || others == 0)
		switch {
		case !ok && l.node == nil:
			node.open--
			d.release(node)
		case !ok:
		case alone:
			delete(h.shared, l)
			h.alone, l.node = l, node
		default:
			h.shared[l], l.node = true, node
			h.alone = nil
		}
		return nil
	})
	return ok, pathError("flock", l.name, err)
}

// Unlock lets go and closes the file, also when the hook makes it fail. What is
// not held it leaves alone.
func (l *lock) Unlock() error {
	d := l.dir.d
	x := d.before("unlock", l.dir.rel(l.name), 0, false)
	d.mu.Lock()
	defer d.mu.Unlock()
	if l.node != nil {
		h := d.locks[l.node.ino]
		if delete(h.shared, l); h.alone == l {
			h.alone = nil
		}
		if h.alone == nil && len(h.shared) == 0 {
			delete(d.locks, l.node.ino)
		}
		l.node.open--
		d.release(l.node)
		l.node = nil
	}
	return pathError("unlock", l.name, x.Err)
}

func (l *lock) Close() error { return l.Unlock() }

func (l *lock) Stat() (fs.FileInfo, error) {
	d := l.dir.d
	d.mu.Lock()
	node := l.node
	var info fs.FileInfo
	if node != nil {
		info = d.info(node, path.Base(l.name))
	}
	d.mu.Unlock()
	if info != nil {
		return info, nil
	}
	return l.dir.Stat(l.name)
}
