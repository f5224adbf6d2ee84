package sqlite

import "github.com/ncruces/go-sqlite3/vfs"

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
	return unmappedFile{f}, flags, nil
}

// An unmappedFile has nothing of a file but what is written here and in vfs.File.
type unmappedFile struct{ vfs.File }

func (f unmappedFile) SharedMemory() vfs.SharedMemory {
	if s, ok := f.File.(vfs.FileSharedMemory); ok {
		return s.SharedMemory()
	}
	return nil
}
