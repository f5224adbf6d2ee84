package checkpoint

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"github.com/lopen-dev/lopen/writer"
)

// letsIn are the permissions that a folder's owner needs to change names in it.
const letsIn fs.FileMode = 0o300

// openFolders gives the folders that the plan gives other modes, or removes, one that
// lets us in. Others are not opened: after a crash nobody would know to close them.
func (a *applier) openFolders() error {
	for _, c := range a.changes {
		if a.over[c] || c.Old == nil || !c.Old.Mode.IsDir() || c.Old.Mode&letsIn == letsIn {
			continue
		}
		dir, err := a.chain.to(parent(c.Path))
		if err == nil {
			err = chmodFolder(dir, base(c.Path), c.Old.Mode|letsIn)
		}
		if unreachable(err) {
			continue // what is to be done in it will tell
		}
		if err != nil {
			if err := a.permitted(c, err); err != nil {
				return err
			}
			continue
		}
		a.opened = append(a.opened, c)
	}
	return nil
}

// closeFolders takes back what openFolders did, where nothing else was done.
func (a *applier) closeFolders() {
	for i := len(a.opened) - 1; i >= 0 && !a.begun; i-- {
		c := a.opened[i]
		if dir, err := a.chain.to(parent(c.Path)); err == nil {
			_ = chmodFolder(dir, base(c.Path), c.Old.Mode)
		}
	}
}

// tryFolders finds out, before anything can be seen, where names may not be changed:
// in folders that something is removed from or made in. Where a file was staged that
// is known already.
func (a *applier) tryFolders() error {
	tried := map[string]error{}
	for _, t := range a.temps {
		tried[t.dir] = nil
	}
	for _, c := range a.changes {
		if a.over[c] || c.Kind == KindMode {
			continue
		}
		at, dir, err := a.chain.nearest(parent(c.Path))
		if err == nil {
			if _, known := tried[dir]; !known {
				tried[dir] = a.try(at, dir)
			}
			err = tried[dir]
		}
		if err != nil {
			if err := a.permitted(c, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// try makes a name in a folder and removes it.
func (a *applier) try(dir writer.FS, path string) error {
	name := tempPrefix + rand.Text()
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = f.Close()
	if rerr := dir.Remove(name); rerr != nil {
		a.temps[&Change{}] = staged{path, name} // discard tries again
		err = errors.Join(err, rerr)
	}
	return err
}

// chmodFolder gives a folder a mode, durably.
func chmodFolder(dir writer.FS, name string, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() {
		err = errNotFolder
	}
	if err == nil {
		err = f.Chmod(mode.Perm() | info.Mode()&specialBits)
	}
	if err == nil {
		err = syncHandle(f)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
