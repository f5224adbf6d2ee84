package carry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/lifecycle/repair"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

const (
	// stagingPrefix begins the name of a folder that an import gathers what comes in. Nothing
	// in it is listed or read by anything but the import.
	stagingPrefix = ".import-"
	stagingLock   = ".lock" // in that folder; the import holds it
	opImport      = "import"
	filePerm      = 0o600
	copyBytes     = 64 << 10
)

// A Staging is the folder that an import gathers what comes in, until all of it was checked. Its
// files and folders are durable after Sync.
type Staging struct {
	writer.FS
	root writer.FS // the folder that it is in
	name string
	lock *writer.Lock
	temp bool // nothing of it is kept: nothing is synced

	unsynced []writer.File
	folders  map[string]bool // that have new names since the last Sync
}

// NewStaging makes a staging folder in root, and holds its lock. The caller has the store lock,
// so that nobody clears a folder that is not locked yet.
func NewStaging(root writer.FS, owner writer.Owner) (*Staging, error) {
	s := &Staging{root: root, name: stagingPrefix + strings.ToLower(rand.Text()), folders: map[string]bool{}}
	err := root.Mkdir(s.name, 0o700)
	if err == nil {
		s.FS, err = writer.OpenDir(root, s.name)
	}
	if err == nil {
		s.lock, err = writer.TryLock(s.FS, stagingLock, owner)
	}
	if err != nil {
		return nil, errors.Join(writer.NewError(opImport, filepath.Join(root.Name(), s.name), writer.NotCommitted, err), s.Remove())
	}
	return s, nil
}

// Remove removes the folder with all that is still in it. It is idempotent.
func (s *Staging) Remove() error {
	s.close()
	err := s.root.RemoveAll(s.name)
	if s.lock != nil {
		err = errors.Join(err, s.lock.Unlock())
	}
	if s.FS != nil {
		err = errors.Join(err, s.Close())
	}
	s.lock, s.FS = nil, nil
	if err != nil {
		return writer.NewError("remove", filepath.Join(s.root.Name(), s.name), writer.NotDurable, err)
	}
	return nil
}

func (s *Staging) close() {
	for _, f := range s.unsynced {
		_ = f.Close()
	}
	s.unsynced = nil
}

// Path returns the path of the folder below the root.
func (s *Staging) Path() string { return s.name }

// path returns the path of a name in the folder, below the root.
func (s *Staging) path(name string) string { return s.name + "/" + name }

func (s *Staging) failed(name string, err error) error {
	return writer.NewError(opImport, filepath.Join(s.root.Name(), s.name, name), writer.NotCommitted, err)
}

// mkdir makes a folder and those above it, for new names.
func (s *Staging) mkdir(name string) error {
	if s.folders[name] {
		return nil
	}
	if name != "." {
		if err := s.mkdir(path.Dir(name)); err != nil {
			return err
		}
		if err := s.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return s.failed(name, err)
		}
	}
	s.folders[name] = true
	return nil
}

// sub makes a folder and opens it.
func (s *Staging) sub(name string) (writer.FS, error) {
	if err := s.mkdir(name); err != nil {
		return nil, err
	}
	return writer.OpenDir(s.FS, name)
}

// put writes a new file with what r has. The error of r is returned as it is.
func (s *Staging) put(ctx context.Context, name string, r io.Reader) error {
	if err := s.mkdir(path.Dir(name)); err != nil {
		return err
	}
	f, err := s.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, filePerm)
	if err != nil {
		return s.failed(name, err)
	}
	s.unsynced = append(s.unsynced, f)
	err = pump(ctx, r, func(p []byte) error {
		n, err := f.Write(p)
		if err == nil && n < len(p) {
			err = io.ErrShortWrite
		}
		if err != nil {
			err = s.failed(name, err)
		}
		return err
	})
	switch {
	case err != nil || len(s.unsynced) < blob.MaxUnsynced:
	case s.temp:
		s.close()
	default:
		err = s.syncFiles()
	}
	return err
}

func (s *Staging) syncFiles() error {
	err := blob.SyncAll(s.unsynced)
	if s.unsynced = nil; err != nil {
		return s.failed("", err)
	}
	return nil
}

// Sync makes what was put durable, but for the name of the folder itself.
func (s *Staging) Sync() error {
	if err := s.syncFiles(); err != nil {
		return err
	}
	for name := range s.folders {
		if err := s.SyncDir(name); err != nil {
			return s.failed(name, err)
		}
	}
	s.folders = map[string]bool{}
	return nil
}

// pump reads r to its end, and gives what it reads to write.
func pump(ctx context.Context, r io.Reader, write func(p []byte) error) error {
	for buf := make([]byte, copyBytes); ; {
		n, err := r.Read(buf)
		if n > 0 {
			if werr := write(buf[:n]); werr != nil {
				return werr
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", opImport, context.Cause(ctx))
		}
	}
}

// stagings returns the names of staging folders of imports that are gone. The caller has the
// store lock, so that no import is about to lock its own.
func stagings(root writer.FS) (names []string, err error) {
	entries, err := root.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("look for interrupted imports: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stagingPrefix) {
			continue
		}
		if held, _, err := writer.Locked(root, e.Name()+"/"+stagingLock); !held && err == nil {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// ClearStagings removes what interrupted imports left behind, and reports whether there was
// anything: then they may have left unfinished contents, which a sweep removes. The caller has
// the store lock.
func ClearStagings(root writer.FS) (cleared bool, err error) {
	names, err := stagings(root)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		err := bringBack(root, name)
		if err == nil {
			err = root.RemoveAll(name)
		}
		if err != nil {
			return cleared, fmt.Errorf("clear an interrupted import: %w", err)
		}
		cleared = true
	}
	return cleared, nil
}

// bringBack moves the sessions back, durably, that had made way for others which did not come: an import
// was cut off between the two renames.
func bringBack(root writer.FS, staging string) error {
	entries, err := root.ReadDir(staging + "/" + replacedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		to := sessionsDir + "/" + e.Name()
		if _, err := root.Lstat(to); err == nil {
			continue
		}
		if err := writer.MoveFolder(root, staging+"/"+replacedDir+"/"+e.Name(), to); err != nil {
			return err
		}
		if err := root.SyncDir(sessionsDir); err != nil {
			return err
		}
	}
	return nil
}

// Interrupted reports the folders of imports that were cut off. The caller has the store lock.
func Interrupted(root writer.FS, now time.Time) (all []repair.Check) {
	names, err := stagings(root)
	if err != nil {
		return []repair.Check{repair.Failed("imports", err)}
	}
	for _, name := range names {
		info, err := root.Lstat(name)
		if err != nil {
			all = append(all, repair.Failed("imports", err))
			continue
		}
		all = append(all, repair.Check{
			Name: "imports", Found: fmt.Sprintf("%s is of an import that was cut off %s ago", name, now.Sub(info.ModTime()).Round(time.Second)),
			Mend: "nothing is lost; it is removed when a session is made, deleted or imported, and by: lopen session prune",
		})
	}
	return all
}
