package crashfs

import (
	"io/fs"
	"path"
	"syscall"
)

func (f *folder) Readlink(name string) (target string, err error) {
	err = f.call("readlink", name, false, func() error {
		p, err := f.find(name, false)
		if err == nil && p.node.mode&fs.ModeSymlink == 0 {
			err = syscall.EINVAL
		}
		if err == nil {
			target = p.node.target
		}
		return err
	})
	return target, pathError("readlink", name, err)
}

func (f *folder) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name, false) }

func (f *folder) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name, true) }

func (f *folder) stat(call, name string, follow bool) (info fs.FileInfo, err error) {
	err = f.call(call, name, false, func() error {
		p, err := f.find(name, follow)
		if err == nil {
			info = f.d.info(p.node, path.Base(name))
		}
		return err
	})
	return info, pathError(call, name, err)
}

func (f *folder) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = f.call("readdir", name, false, func() error {
		p, err := f.find(name, false)
		if err != nil {
			return err
		}
		if !p.node.mode.IsDir() {
			return syscall.ENOTDIR
		}
		for _, child := range p.node.names() {
			entries = append(entries, fs.FileInfoToDirEntry(f.d.info(f.d.inodes[p.node.entries[child]], child)))
		}
		return nil
	})
	return entries, pathError("readdir", name, err)
}
