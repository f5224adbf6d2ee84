package writer

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lopen-dev/lopen/writer/internal/open"
)

// tempPrefix begins the name of every temporary file, so that the leftovers of
// a crash can be recognized.
const tempPrefix = ".tmp-"

// tempPerm is the mode of a file that is not complete: nobody else reads it.
const tempPerm = 0o600

// ReplaceFile makes data the content of a file, durably: a temporary file in the
// same folder is written, synced and closed, renamed over name, and the folder is
// synced. When it returns nil the content survives a power cut. After an error
// the [*Error]'s Outcome says what stands: NotCommitted, the old content whole, or
// NotDurable, the new content whole but perhaps not for long. There is never a
// mixture. Callers make sure that there is one writer to a name.
func ReplaceFile(dir FS, name string, data []byte, perm fs.FileMode) error {
	return replaceFile(dir, name, data, perm, true)
}

// ReplaceUnsynced is ReplaceFile without the syncs, for a file that can be made again:
// whoever reads it while the system runs finds the old content or the new one, whole.
// After a power cut it may be either, or torn, or empty.
func ReplaceUnsynced(dir FS, name string, data []byte, perm fs.FileMode) error {
	return replaceFile(dir, name, data, perm, false)
}

func replaceFile(dir FS, name string, data []byte, perm fs.FileMode, durable bool) error {
	temp, err := writeTemp(dir, name, data, perm, durable)
	if err != nil {
		return NewError("replace", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	return publish(dir, temp, name, durable, func() (bool, error) {
		now, err := ReadFile(dir, name, int64(len(data)))
		return bytes.Equal(now, data), err
	})
}

// publish renames a complete temporary file into place and syncs the folder, where it is
// to be durable.
// A failed rename may have been done all the same (a network server's answer got
// lost): stands re-reads whether name is the new file.
func publish(dir FS, temp, name string, durable bool, stands func() (bool, error)) error {
	full := filepath.Join(dir.Name(), name)
	if err := Retry(func() error { return dir.Rename(temp, name) }); err != nil {
		return NewError("replace", full, failedRename(dir, temp, stands), err)
	}
	if !durable {
		return nil
	}
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		return NewError("replace", full, NotDurable, err)
	}
	return nil
}

// failedRename finds out what stands, and removes the temporary file if it is
// still there, which says that nothing was renamed.
func failedRename(dir FS, temp string, stands func() (bool, error)) Outcome {
	_, err := dir.Lstat(temp)
	if err == nil {
		_ = dir.Remove(temp)
		return NotCommitted
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return OutcomeUnknown
	}
	switch done, err := stands(); {
	case err == nil && done:
		return NotDurable
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrInvalid): // ErrInvalid: another length or kind
		return NotCommitted
	}
	return OutcomeUnknown
}

// CreateFile is ReplaceFile for a file that must not exist yet: the error is an
// fs.ErrExist otherwise, and what is there is left alone. The content appears
// under the name whole or, after a crash, not at all; where the file system knows no
// hard links it may be empty then.
func CreateFile(dir FS, name string, data []byte, perm fs.FileMode) error {
	full := filepath.Join(dir.Name(), name)
	temp, err := writeTemp(dir, name, data, perm, true)
	if err != nil {
		return NewError("create", full, NotCommitted, err)
	}
	if err = dir.Link(temp, name); err != nil && sameName(dir, temp, name) {
		err = nil // it was made all the same: a network server's answer got lost
	}
	if err != nil && RefusesLinks(err) {
		return claim(dir, temp, name, data, perm)
	}
	_ = dir.Remove(temp)
	if err != nil {
		return NewError("create", full, NotCommitted, err)
	}
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		return NewError("create", full, NotDurable, err)
	}
	return nil
}

// sameName says that two names are links of one file, without following symlinks.
func sameName(dir FS, a, b string) bool {
	ai, err := dir.Lstat(a)
	if err != nil {
		return false
	}
	bi, err := dir.Lstat(b)
	return err == nil && SameFile(ai, bi)
}

// claim publishes a new file where hard links are refused: the name is taken by
// an empty file, so that of two creators one loses, and that one is replaced.
func claim(dir FS, temp, name string, data []byte, perm fs.FileMode) error {
	full := filepath.Join(dir.Name(), name)
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|open.NoFollow, perm)
	if err != nil {
		_ = dir.Remove(temp)
		return NewError("create", full, NotCommitted, err)
	}
	if err = f.Close(); err != nil {
		_ = dir.Remove(temp)
		err = NewError("create", full, NotCommitted, err)
	} else {
		err = publish(dir, temp, name, true, func() (bool, error) {
			now, err := ReadFile(dir, name, int64(len(data)))
			return bytes.Equal(now, data), err
		})
	}
	var e *Error
	if errors.As(err, &e) && e.Outcome == NotCommitted {
		_ = dir.Remove(name) // or nobody could create it any more
	}
	return err
}

// ReplaceSymlink points a symlink at target, atomically and durably. The error
// is one that [RefusesLinks] knows where the system or the file system refuses symlinks.
func ReplaceSymlink(dir FS, target, name string) error {
	temp := TempName(name)
	if err := dir.Symlink(target, temp); err != nil {
		return NewError("link", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	return publish(dir, temp, name, true, func() (bool, error) {
		now, err := dir.Readlink(name)
		return now == target, err
	})
}

// MkdirDurable makes a folder, 0700, and its name durable. One that is there is
// fine, and its name is synced too: who made it may have been killed before that.
// Anything else in its place is an error. A new one whose name cannot be synced is
// removed, so that the next try makes it anew: after a failed sync another one reports
// success for a name that is not on the disk.
func MkdirDurable(dir FS, name string) error {
	full := filepath.Join(dir.Name(), name)
	err := Retry(func() error { return dir.Mkdir(name, 0o700) })
	made := err == nil
	if errors.Is(err, fs.ErrExist) {
		info, err := dir.Lstat(name)
		if err != nil {
			return NewError("make folder", full, NotCommitted, err)
		}
		if !info.IsDir() {
			return &Error{Op: "make folder", Path: full, Class: ClassInvalid, Err: errors.New("something that is no folder has this name; move it away")}
		}
	} else if err != nil {
		return NewError("make folder", full, NotCommitted, err)
	}
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		if made {
			_ = dir.Remove(name)
		}
		return NewError("make folder", full, NotDurable, err)
	}
	return nil
}

// RemoveTemps removes the temporary files that crashed writers left in a folder:
// those of the files that of picks by name, or of all. Only the one writer of
// these files may call it.
func RemoveTemps(dir FS, name string, of func(name string) bool) error {
	temps, err := Temps(dir, name)
	if err != nil {
		return err
	}
	for _, temp := range temps {
		base := strings.TrimPrefix(path.Base(temp), tempPrefix)
		if of != nil && !of(base[:max(0, strings.LastIndexByte(base, '-'))]) {
			continue
		}
		if err := dir.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return NewError("clear temporary files", filepath.Join(dir.Name(), temp), NotCommitted, err)
		}
	}
	return nil
}

// Temps are the paths of the temporary files in a folder: those of writes that go
// on, or that a crash cut off.
func Temps(dir FS, name string) (temps []string, err error) {
	entries, err := dir.ReadDir(name)
	if err != nil {
		return nil, NewError("list temporary files", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) && !e.IsDir() {
			temps = append(temps, path.Join(name, e.Name()))
		}
	}
	return temps, nil
}

// writeTemp writes a new temporary file in the folder of name, and syncs it where it is to be durable. On an error it
// is removed again, as far as that goes.
func writeTemp(dir FS, name string, data []byte, perm fs.FileMode, durable bool) (temp string, err error) {
	temp = TempName(name)
	var f File
	err = Retry(func() (err error) {
		f, err = dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|open.NoFollow, tempPerm)
		return err
	})
	if err != nil {
		return "", err
	}
	for written := 0; written < len(data) && err == nil; {
		var n int
		n, err = f.Write(data[written:])
		if written += n; err == nil && n <= 0 {
			err = io.ErrShortWrite
		}
	}
	if err == nil && perm != tempPerm {
		err = f.Chmod(perm) // not at the open, where the umask would take bits off a file that is replaced
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = dir.Remove(temp)
	}
	return temp, err
}

// TempName is a fresh name for a temporary file in the folder of name, which RemoveTemps
// will know for one.
func TempName(name string) string {
	return path.Join(path.Dir(name), tempPrefix+path.Base(name)+"-"+rand.Text())
}
