package checkpoint

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// state is how far a change has come.
type state int

const (
	pending  state = iota // what stands is what the plan saw, or nothing
	finished              // what stands is what the plan wants
	altered               // somebody changed it since: it is not ours to replace
)

// granularity is that of the coarsest clock of a file system in use (FAT): what was
// modified so shortly before the look may have been modified again without a new
// time.
const granularity = 2 * time.Second

// state looks at what stands in a change's place. A file that has the size, time
// and mode that the plan saw is not read, unless it was too new then.
func (a *applier) state(c *Change) (state, error) {
	dir, err := a.chain.to(parent(c.Path))
	var info fs.FileInfo
	if err == nil {
		info, err = dir.Lstat(base(c.Path))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c.New == nil {
			return finished, nil
		}
		if c.Kind == KindMode && !c.New.Mode.IsDir() {
			return altered, nil // there is nothing to change
		}
		return pending, nil // what it stood for is gone: nothing is lost by making it
	case errors.Is(err, errNotFolder):
		if c.New == nil {
			return finished, nil
		}
		return a.blocked(c), nil
	case err != nil:
		return 0, err
	}
	if c.Old != nil && a.looksLike(info, c.Old) {
		return pending, nil
	}
	if info.IsDir() {
		switch {
		case c.New != nil && c.New.Mode.IsDir() && info.Mode()&modeBits == c.New.Mode:
			return finished, nil
		case c.New != nil && c.New.Mode.IsDir() && (c.Old == nil || !c.Old.Mode.IsDir()): // made by an Apply that was cut off, or never recorded
			return pending, nil
		case c.Old != nil && c.Old.Mode.IsDir() && (c.New == nil || !c.New.Mode.IsDir()):
			return pending, nil // removing it fails if anything is in it
		}
		return altered, nil
	}
	for _, want := range []struct {
		f *files.Fingerprint
		s state
	}{{c.New, finished}, {c.Old, pending}} {
		if want.f == nil || want.f.Mode != info.Mode()&modeBitsOf(info) {
			continue
		}
		fits, err := content(dir, base(c.Path), info, want.f)
		if err != nil || fits {
			return want.s, err
		}
	}
	return altered, nil
}

// blocked is the state of what is in something that is no folder: pending if the
// plan itself makes a folder of that.
func (a *applier) blocked(c *Change) state {
	for dir := parent(c.Path); dir != "."; dir = parent(dir) {
		if a.makes[dir] {
			return pending
		}
	}
	return altered
}

// modeBitsOf are those of its mode that a fingerprint has: of a symlink, the type.
func modeBitsOf(info fs.FileInfo) fs.FileMode {
	if info.Mode()&fs.ModeSymlink != 0 {
		return fs.ModeSymlink
	}
	return modeBits
}

func (a *applier) looksLike(info fs.FileInfo, f *files.Fingerprint) bool {
	if info.Mode()&modeBitsOf(info) != f.Mode {
		return false
	}
	if f.Mode.IsDir() {
		return true
	}
	racy := !time.Unix(0, f.ModTime).Before(a.plan.at.Add(-granularity))
	return !racy && f.Mode.IsRegular() && info.Size() == f.Size && info.ModTime().UnixNano() == f.ModTime
}

// content says whether a file or symlink has the content of a fingerprint.
func content(dir writer.FS, name string, info fs.FileInfo, f *files.Fingerprint) (bool, error) {
	if f.Mode&fs.ModeSymlink != 0 {
		target, err := dir.Readlink(name)
		return target == f.Target, err
	}
	if !f.Mode.IsRegular() || info.Size() != f.Size {
		return false, nil
	}
	file, _, err := writer.OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, struct{ io.Reader }{file}); err != nil {
		return false, writer.NewError("read", dir.Name()+"/"+name, writer.NotCommitted, err)
	}
	return blob.Hash(sum.Sum(nil)) == f.Hash, nil
}
