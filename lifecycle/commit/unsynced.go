package commit

import (
	"os"
	"sync"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// unsynced is the folder of a session that nobody sees yet. Nothing in it is durable before
// settle: a file that is replaced ten times costs no sync, and one that stays costs one.
type unsynced struct {
	writer.FS

	mu      sync.Mutex
	files   []writer.File       // that were written and closed. Guarded by mu.
	folders map[string]struct{} // with names that are not durable. Guarded by mu.
}

func (u *unsynced) OpenFile(name string, flag int, perm os.FileMode) (writer.File, error) {
	f, err := u.FS.OpenFile(name, flag, perm)
	if err != nil || flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return f, err
	}
	return unsyncedFile{f, u}, nil
}

func (u *unsynced) SyncDir(name string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.folders == nil {
		u.folders = map[string]struct{}{}
	}
	u.folders[name] = struct{}{}
	return nil
}

// settle makes the folder durable, but for its name. After an error some of it is not, and a
// later call says nothing of that: the session must not be shown.
func (u *unsynced) settle() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	err := u.syncFiles()
	for name := range u.folders {
		if err == nil {
			err = u.FS.SyncDir(name)
		}
	}
	if err != nil {
		return writer.NewError("create session", u.Name(), writer.NotCommitted, err)
	}
	return nil
}

// syncFiles syncs the files by the descriptors that wrote them: another one might not be told of
// an error. The caller holds mu.
func (u *unsynced) syncFiles() error {
	err := blob.SyncAll(u.files)
	u.files = nil
	return err
}

// unsyncedFile is a file that is open for writing. Its syncs are left to settle.
type unsyncedFile struct {
	writer.File
	of *unsynced
}

func (unsyncedFile) Sync() error     { return nil }
func (unsyncedFile) Datasync() error { return nil }

// Close leaves the file open for settle.
func (f unsyncedFile) Close() error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.of.files = append(f.of.files, f.File); len(f.of.files) < blob.MaxUnsynced {
		return nil
	}
	return f.of.syncFiles()
}
