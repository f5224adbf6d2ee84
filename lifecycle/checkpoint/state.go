package checkpoint

import (
	"context"
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
	pending  state = iota // the path is what the plan saw
	vacant                // there is nothing, or a folder where one is wanted
	finished              // the path is what the plan wants
	altered               // the path was changed since: it must not be replaced
)

// state returns the state of a change. Once changes are visible it reads the content that is to
// be replaced or removed, because a content may change without its times.
func (a *applier) state(c *Change) (state, error) {
	dir, info, err := a.descent.stat(c.Path)
	if a.saw[c] = info; unreachable(err) {
		return c.absent(), nil
	}
	if err != nil {
		return 0, err
	}
	switch {
	case info.IsDir() && isDir(c.New) && !isDir(c.Old):
		return vacant, nil // made by an interrupted Apply, or by somebody else
	case info.IsDir() && isDir(c.Old) && (!isDir(c.New) || ours(c, info.Mode())):
		return pending, nil // its removal fails if it is not empty
	case info.IsDir():
		return altered, nil
	}
	if fits, err := a.fits(c.New, dir, base(c.Path), info, true, nil); err != nil || fits {
		return finished, err
	}
	ask := a.asking(c)
	if fits, err := a.fits(c.Old, dir, base(c.Path), info, a.begun, ask); err != nil || fits {
		return pending, err
	}
	return altered, nil
}

// asking returns a function that asks who has the file open that a change takes away, or nil.
func (a *applier) asking(c *Change) func(writer.File, fs.FileInfo) {
	if !a.begun || !a.takes(c) {
		return nil
	}
	return func(f writer.File, info fs.FileInfo) {
		who, is := a.openers.On(f, base(c.Path), info)
		a.asked = answer{c, who, is}
	}
}

// absent returns the state of a change whose path does not exist.
func (c *Change) absent() state {
	switch {
	case c.New == nil:
		return finished
	case c.Kind == KindMode:
		return altered // there is no file whose mode could be changed
	case c.Old != nil && isDir(c.Old) == isDir(c.New):
		return altered // Apply replaces it by one rename: somebody renamed or removed it
	}
	return vacant // making the file loses nothing
}

// fits reports whether a file or symlink agrees with a fingerprint. Without read it compares
// only the size of a file, not the content. ask, unless nil, is called with a file that agrees.
func (a *applier) fits(f *files.Fingerprint, dir writer.FS, name string, info fs.FileInfo, read bool, ask func(writer.File, fs.FileInfo)) (bool, error) {
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
	return a.s.content(a.ctx, dir, name, info, f, ask)
}

// content reports whether a file or symlink has the content of a fingerprint. The end of ctx ends
// the hashing of a large one. ask, unless nil, is called with a file that has it.
func (s *Store) content(ctx context.Context, dir writer.FS, name string, info fs.FileInfo, f *files.Fingerprint, ask func(writer.File, fs.FileInfo)) (bool, error) {
	if f.Mode&fs.ModeSymlink != 0 {
		target, err := dir.Readlink(name)
		return target == f.Target, err
	}
	if !f.Mode.IsRegular() || info.Size() != f.Size {
		return false, nil
	}
	file, opened, err := writer.OpenRegular(dir, "read", name, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer file.Close()
	sum, buf := s.blobs.NewHash(), buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	if _, err := io.CopyBuffer(sum, inContext{ctx, io.LimitReader(file, f.Size+1)}, buf[:]); err != nil {
		return false, writer.NewError("read", dir.Name()+"/"+name, writer.NotCommitted, err)
	}
	if blob.Hash(sum.Sum(nil)) != f.Hash {
		return false, nil
	}
	if ask != nil {
		ask(file, opened)
	}
	return true, nil
}

// buffers pools the buffers for copying contents.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// modeBits are the bits of a mode that a fingerprint has. specialBits are those that a
// checkpoint does not record and a rewind neither sets nor clears.
const (
	modeBits    = fs.ModeType | fs.ModePerm
	specialBits = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
)
