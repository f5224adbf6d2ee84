package sqlite

import (
	"encoding/binary"
	"os"
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
	database := flags&vfs.OPEN_MAIN_DB != 0
	if flags&vfs.OPEN_CREATE != 0 {
		private(name.String())
		if database {
			private(name.String() + "-shm")
		}
	}
	f, flags, err := u.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &unmappedFile{File: f, room: room{dir: filepath.Dir(name.String())}, database: database}, flags, nil
}

// private makes a file that only its owner may read, unless it exists: SQLite would let others read it.
func private(path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		_ = f.Close()
	}
}

// An unmappedFile has nothing of a file but what is written here and in vfs.File. It leaves room on
// the disk, and knows each page of a database by its place.
type unmappedFile struct {
	vfs.File
	room
	database bool
}

func (f *unmappedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	if n == len(p) {
		f.placed(p, off)
	}
	return n, err
}

func (f *unmappedFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.take(f.File, off+int64(len(p))); err != nil {
		return 0, err
	}
	f.placed(p, off)
	n, err := f.File.WriteAt(p, off)
	f.placed(p, off) // as SQLite has it
	if err != nil && writer.ClassOf(err) == writer.ClassNoSpace {
		err = vfs.SystemError(err, sqlite3.FULL)
	}
	return n, err
}

// placed puts the number of a page into the checksum at its end, or takes it out. The driver's checksum is of what a
// page has, and so the same in the place of another one.
func (f *unmappedFile) placed(page []byte, off int64) {
	if !f.database || len(page) != pageSize || off%pageSize != 0 {
		return
	}
	sum := page[pageSize-8:]
	binary.LittleEndian.PutUint64(sum, binary.LittleEndian.Uint64(sum)^uint64(off/pageSize))
}

// pageSize is that of the databases that are made here, in bytes. SQLite takes it unless it is told another.
const pageSize = 4096

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
