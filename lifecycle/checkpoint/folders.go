package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"syscall"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// letsIn has the permissions that the owner of a folder needs to list it and to change names in
// it.
const letsIn fs.FileMode = 0o700

// shutFolders returns the folders in which names change, although their modes forbid that and
// are not changed by the plan. They are a part of the plan, so that Apply restores their modes
// after a crash. find returns what is at a path now, or nil.
func shutFolders(changes []Change, find func(path string) (*files.Fingerprint, error)) (shut []*files.Fingerprint, err error) {
	known := map[string]bool{".": true}
	for _, c := range changes {
		known[c.Path] = isDir(c.Old) || isDir(c.New)
	}
	for _, c := range changes {
		dir := parent(c.Path)
		if known[dir] {
			continue
		}
		known[dir] = true
		f, err := find(dir)
		if err != nil {
			return nil, err
		}
		if isDir(f) && f.Mode&letsIn != letsIn {
			shut = append(shut, f)
		}
	}
	return shut, nil
}

func isDir(f *files.Fingerprint) bool { return f != nil && f.Mode.IsDir() }

// ours reports whether a folder's mode is the one that the plan saw or wants, or one that an
// Apply has opened. For a new folder any mode is.
func ours(c *Change, mode fs.FileMode) bool {
	mode &= modeBits
	is := func(f *files.Fingerprint) bool { return isDir(f) && (mode == f.Mode || mode == f.Mode|letsIn) }
	return !isDir(c.Old) || is(c.Old) || is(c.New)
}

// openFolders adds letsIn to the modes of the plan's folders, outer ones first. If that is not
// allowed, the changes in the folder will fail.
func (a *applier) openFolders() error {
	for _, c := range a.folders {
		dir, info, err := a.descent.stat(c.Path)
		if err != nil || !info.IsDir() || !ours(c, info.Mode()) {
			continue
		}
		mode := info.Mode()
		if mode&letsIn != letsIn && dir.Chmod(base(c.Path), mode|letsIn) != nil {
			continue
		}
		if isDir(c.Old) && mode&modeBits == c.Old.Mode|letsIn { // an interrupted Apply opened it
			mode = c.Old.Mode
		}
		if mode&letsIn != letsIn {
			a.found[c] = mode
		}
	}
	return nil
}

// closeFolders restores the modes that openFolders changed, unless changes have begun.
func (a *applier) closeFolders() {
	for _, c := range slices.Backward(a.folders) {
		if mode, opened := a.found[c]; opened && !a.begun {
			if dir, err := a.descent.to(c.Path); err == nil {
				_ = chmodFolder(dir, mode)
			}
		}
	}
}

// tryFolders finds out, before any visible change, in which folders names may not be changed
// and which modes may not be changed. It skips folders in which a file was staged.
func (a *applier) tryFolders() error {
	tried := map[string]error{}
	for c, t := range a.temps {
		if !a.over[c] {
			tried[t.dir] = nil
		}
	}
	return a.each(a.changes, func(c *Change) bool { return !a.stages(c) || a.temps[c].name == "" }, func(c *Change) (state, error) {
		if c.Kind == KindMode && !a.linked[c] {
			dir, info, err := a.descent.stat(c.Path)
			if err == nil {
				err = dir.Chmod(base(c.Path), info.Mode())
			}
			if unreachable(err) { // somebody renamed it
				return altered, nil
			}
			return pending, err
		}
		at, dir, err := a.descent.nearest(parent(c.Path))
		if err == nil {
			if _, known := tried[dir]; !known {
				tried[dir] = a.try(c, at, dir)
			}
			err = tried[dir]
		}
		return pending, err
	})
}

// try makes a name in a folder and removes it.
func (a *applier) try(c *Change, dir writer.FS, path string) error {
	name := a.tempName(c)
	var f writer.File
	err := anew(dir, name, func() (err error) {
		f, err = dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return err
	}
	err = f.Close()
	if rerr := dir.Remove(name); rerr != nil {
		a.temps[c] = staged{path, name} // discard tries again
		err = errors.Join(err, rerr)
	}
	return err
}

// settle sets the modes of the folders and makes modes and names durable. It begins with the
// deepest, because a mode may forbid changes in the folder. A folder that the plan removes and
// that stays, because it is not empty, gets its old mode.
func (a *applier) settle() error {
	modes := map[string]*Change{}
	for _, c := range a.folders {
		a.touched[c.Path], modes[c.Path] = true, c
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(a.touched))) {
		err := a.settleOne(path, modes[path])
		if errors.Is(err, errMounted) { // the folder above is synced too
			if c := modes[path]; slices.Contains(a.changes, c) && !a.retains(path) {
				a.keep(c, Mounted)
			}
			continue
		}
		if err != nil && !(a.plan.Permitted && Refused(err)) {
			return a.failed(path, err)
		}
	}
	return nil
}

func (a *applier) settleOne(path string, c *Change) error {
	if _, err := a.descent.moved(); err != nil {
		return err
	}
	dir, err := a.descent.to(path)
	if unreachable(err) {
		return nil // it was removed; the folder above is synced too
	}
	if err != nil {
		return err
	}
	info, err := dir.Lstat(".")
	switch {
	case err != nil:
		return err
	case c == nil || !ours(c, info.Mode()):
		return dir.SyncDir(".")
	}
	mode := c.Old
	if isDir(c.New) {
		mode = c.New
	}
	err = chmodFolder(dir, mode.Mode)
	if Refused(err) && info.Mode()&modeBits == mode.Mode { // an immutable folder that has the mode
		err = dir.SyncDir(".")
	}
	return err
}

// chmodFolder sets the mode of a folder, and makes the mode and the folder's names durable.
func chmodFolder(dir writer.FS, mode fs.FileMode) error {
	f, err := dir.OpenFile(".", os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return chmod(f, info, mode)
}

// chmod sets the permissions of an open file or folder, durably, and closes it. Special bits
// are not changed.
func chmod(f writer.File, info fs.FileInfo, mode fs.FileMode) error {
	err := f.Chmod(mode.Perm() | info.Mode()&specialBits)
	if err == nil && (runtime.GOOS != "windows" || !info.IsDir()) {
		err = f.Sync()
	}
	if info.IsDir() && (errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)) {
		err = nil // the file system cannot sync folders, as in writer.FS.SyncDir
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
