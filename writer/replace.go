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

// tempPrefix begins the name of every temporary file, so that RemoveTemps recognizes
// what a crash left.
const tempPrefix = ".tmp-"

// tempPerm is the mode of an incomplete file: no other user may read it.
const tempPerm = 0o600

// ReplaceFile makes data the content of a file, durably. It writes a temporary file in
// the same folder, syncs and closes it, renames it over name, and syncs the folder. When
// it returns nil, the content survives a power cut. After an error the Outcome of the
// [*Error] says what the file has: NotCommitted means the old content, NotDurable the new
// content until a power cut perhaps brings the old one back, OutcomeUnknown one of the
// two. The file never has a mixture. The caller is the only writer of the name.
func ReplaceFile(dir FS, name string, data []byte, perm fs.FileMode) error {
	return replaceFile(dir, name, data, perm, true)
}

// ReplaceUnsynced is ReplaceFile without the syncs, for a file that can be derived again.
// While the system runs, a reader finds the old or the new content, whole. After a power
// cut the file may be either, or torn, or empty.
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

// publish renames a complete temporary file to name and, if durable is set, syncs the
// folder. A rename that failed may have been carried out when a network server's answer
// got lost. Then stands reads the file again and reports whether it has the new content.
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

// failedRename finds out which content the file has after a failed rename. If the
// temporary file is still there, nothing was renamed, and failedRename removes it.
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
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrInvalid): // ErrInvalid: longer, or not regular
		return NotCommitted
	}
	return OutcomeUnknown
}

// CreateFile is ReplaceFile for a file that must not exist yet. If it exists, the error
// is fs.ErrExist and the file is left alone. After a crash the file is there whole or not
// at all; on a file system without hard links it may also be empty.
func CreateFile(dir FS, name string, data []byte, perm fs.FileMode) error {
	full := filepath.Join(dir.Name(), name)
	temp, err := writeTemp(dir, name, data, perm, true)
	if err != nil {
		return NewError("create", full, NotCommitted, err)
	}
	if err = dir.Link(temp, name); err != nil && sameName(dir, temp, name) {
		err = nil // the link was made; a network server's answer got lost
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

// sameName reports whether two names are hard links of one file. It follows no symlink.
func sameName(dir FS, a, b string) bool {
	ai, err := dir.Lstat(a)
	if err != nil {
		return false
	}
	bi, err := dir.Lstat(b)
	return err == nil && SameFile(ai, bi)
}

// claim publishes a new file where hard links are refused. It first creates an empty
// file with O_EXCL, so that only one of two creators succeeds, and then renames the
// temporary file over it.
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
	if e, ok := errors.AsType[*Error](err); ok && e.Outcome == NotCommitted {
		_ = dir.Remove(name) // or no later CreateFile could succeed
	}
	return err
}

// ReplaceSymlink points a symlink at target, atomically and durably. Where the system or
// the file system refuses symlinks, [RefusesLinks] is true for the error.
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

// MkdirDurable makes a folder with mode 0700 and makes its name durable. The name of an
// existing folder is synced too, because its creator may have been killed before that.
// Anything else of that name is an error. When the name of a new folder cannot be synced,
// the folder is removed, so that the next call makes it again: a second sync after a
// failed one reports success for a name that is not on the disk.
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

// RemoveTemps removes the temporary files that crashed writers left in a folder. It
// removes those for whose final name of returns true, or all if of is nil. Only the one
// writer of these files may call it. A folder that is not there has none.
func RemoveTemps(dir FS, name string, of func(name string) bool) error {
	temps, err := Temps(dir, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// Temps returns the paths of the temporary files in a folder: of writes in progress, and
// of those that a crash interrupted.
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

// writeTemp writes a new temporary file in the folder of name and, if durable is set, syncs
// it. After an error it tries to remove the file.
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
		err = f.Chmod(perm) // not at the open, where the umask would clear bits of the mode
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

// TempName returns a new random name for a temporary file in the folder of name.
// RemoveTemps recognizes such names.
func TempName(name string) string {
	return path.Join(path.Dir(name), tempPrefix+path.Base(name)+"-"+rand.Text())
}
