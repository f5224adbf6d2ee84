package checkpoint

import (
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// state is how far a change has come.
type state int

const (
	pending  state = iota // what stands is what the plan saw
	vacant                // nothing stands, or a folder where one is wanted
	finished              // what stands is what the plan wants
	altered               // somebody changed it since: it is not ours to replace
)

// state looks at what stands in a change's place. Once changes can be seen what is to be
// replaced or removed is read: to change a content need not change any time.
func (a *applier) state(c *Change) (state, error) {
	dir, info, err := a.descent.stat(c.Path)
	if unreachable(err) {
		return c.absent(), nil
	}
	if err != nil {
		return 0, err
	}
	switch {
	case info.IsDir() && isDir(c.New) && !isDir(c.Old):
		return vacant, nil // made by an Apply that was cut off, or what it would make
	case info.IsDir() && isDir(c.Old) && (!isDir(c.New) || ours(c, info.Mode())):
		return pending, nil // removing it fails if anything is in it
	case info.IsDir():
		return altered, nil
	}
	if fits, err := a.fits(c.New, dir, base(c.Path), info, true); err != nil || fits {
		return finished, err
	}
	if fits, err := a.fits(c.Old, dir, base(c.Path), info, a.begun); err != nil || fits {
		return pending, err
	}
	return altered, nil
}

// absent is the state of a change in whose place nothing stands.
func (c *Change) absent() state {
	switch {
	case c.New == nil:
		return finished
	case c.Kind == KindMode:
		return altered // there is nothing to change
	}
	return vacant // what it stood for is gone: nothing is lost by making it
}

// fits says whether a file or symlink is what a fingerprint says, its content too where
// that is to be read.
func (a *applier) fits(f *files.Fingerprint, dir writer.FS, name string, info fs.FileInfo, read bool) (bool, error) {
	bits := modeBits
	if info.Mode()&fs.ModeSymlink != 0 {
		bits = fs.ModeSymlink
	}
	if f == nil || f.Mode != info.Mode()&bits {
		return false, nil
	}
	if !read && f.Mode.IsRegular() {
		return info.Size() == f.Size, nil
	}
	return a.s.content(dir, name, info, f)
}

// content says whether a file or symlink has the content of a fingerprint.
func (s *Store) content(dir writer.FS, name string, info fs.FileInfo, f *files.Fingerprint) (bool, error) {
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
	sum, buf := s.blobs.NewHash(), buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	if _, err := io.CopyBuffer(sum, struct{ io.Reader }{file}, buf[:]); err != nil {
		return false, writer.NewError("read", dir.Name()+"/"+name, writer.NotCommitted, err)
	}
	return blob.Hash(sum.Sum(nil)) == f.Hash, nil
}

// buffers are for copying contents.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// modeBits are those that a fingerprint has; specialBits are those that a checkpoint does
// not keep, and a rewind neither sets nor clears.
const (
	modeBits    = fs.ModeType | fs.ModePerm
	specialBits = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)
