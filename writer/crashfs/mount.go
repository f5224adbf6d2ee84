package crashfs

import (
	"strings"
	"syscall"
)

// Mount says that the file or folder at a path, relative to the root folder, is the root of a
// mount, or is none any more. What is on it stays where it is: a disk has no two files at one path.
// A mount has no part in what a power cut leaves.
func (d *Disk) Mount(path string, mounted bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := (&folder{d: d, ino: rootIno}).find(path, false)
	if err != nil {
		return pathError("mount", path, err)
	}
	if d.mounted == nil {
		d.mounted = map[uint64]bool{}
	}
	d.mounted[p.node.ino] = mounted
	return nil
}

// Mount returns the inode of the root of the mount.
func (f *folder) Mount(name string) (mount uint64, err error) {
	err = f.call("mount", name, false, func() error {
		if _, err := f.find(name, false); err != nil {
			return err
		}
		at := f.d.inodes[rootIno]
		mount = rootIno
		for part := range strings.SplitSeq(f.rel(name), "/") {
			_, ino := f.d.entry(at, part)
			if at = f.d.inodes[ino]; at == nil {
				break
			}
			if f.d.mounted[ino] {
				mount = ino
			}
		}
		return nil
	})
	return mount, pathError("mount", name, err)
}

// Volume knows of no volumes.
func (*folder) Volume(string) string { return "" }

// busy returns EBUSY for the root of a mount, which is neither renamed nor removed.
func (d *Disk) busy(i *inode) error {
	if i != nil && d.mounted[i.ino] {
		return syscall.EBUSY
	}
	return nil
}
