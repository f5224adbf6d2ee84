package sqlite

import (
	"path/filepath"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/lopen-dev/lopen/writer"
)

// unmappedVFS is the name of the operating system's files without memory mapping. The
// driver (0.37) panics when a write-ahead log is put into a file that has checksums and
// could be mapped.
const unmappedVFS = "lopen"

func init() { vfs.Register(unmappedVFS, unmapped{vfs.Find("").(vfs.VFSFilename)}) }

type unmapped struct{ vfs.VFSFilename }

func (u unmapped) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := u.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &unmappedFile{File: f, room: room{dir: filepath.Dir(name.String())}}, flags, nil
}

// An unmappedFile has nothing of a file but what is written here and in vfs.File. It leaves room on
// the disk.
type unmappedFile struct {
	vfs.File
	room
}

func (f *unmappedFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.take(f.File, off+int64(len(p))); err != nil {
		return 0, err
	}
	n, err := f.File.WriteAt(p, off)
	if err != nil && writer.ClassOf(err) == writer.ClassNoSpace {
		err = vfs.SystemError(err, sqlite3.FULL)
	}
	return n, err
}

func (f *unmappedFile) Truncate(size int64) error {
	f.end = min(f.end, size)
	return f.File.Truncate(size)
}

func (f *unmappedFile) SharedMemory() vfs.SharedMemory {
	if s, ok := f.File.(vfs.FileSharedMemory); ok {
		return s.SharedMemory()
	}
	return nil
}
