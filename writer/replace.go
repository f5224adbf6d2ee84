package writer

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// tempPrefix begins the name of every temporary file, so that the leftovers of
// a crash can be told from everything else.
const tempPrefix = ".tmp-"

// attempts bounds the retries of a call that failed for want of a resource.
// fsync and close are never retried: after a failure the kernel may have dropped
// the pages, and a second call that says "fine" proves nothing.
const attempts = 4

// ReplaceFile makes data the content of a file, durably: a temporary file in the
// same folder is written, synced and closed, renamed over name, and the folder is
// synced. When it returns nil the content survives a power cut. After an error
// the [*Error]'s Outcome says what stands: NotCommitted, the old content whole, or
// NotDurable, the new content whole but perhaps not for long. There is never a
// mixture. Callers make sure that there is one writer to a name.
func ReplaceFile(dir FS, name string, data []byte, perm fs.FileMode) error {
	temp, err := writeTemp(dir, name, data, perm)
	if err != nil {
		return newError("replace", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	return publish(dir, temp, name)
}

// publish renames a complete temporary file into place and syncs the folder.
func publish(dir FS, temp, name string) error {
	full := filepath.Join(dir.Name(), name)
	if err := retry(func() error { return dir.Rename(temp, name) }); err != nil {
		_ = dir.Remove(temp)
		return newError("replace", full, NotCommitted, err)
	}
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		return newError("replace", full, NotDurable, err)
	}
	return nil
}

// CreateFile is ReplaceFile for a file that must not exist yet: the error is an
// fs.ErrExist otherwise, and what is there is left alone. The content appears
// under the name whole or, after a crash, not at all; where the file system knows no
// hard links it may be empty then.
func CreateFile(dir FS, name string, data []byte, perm fs.FileMode) error {
	full := filepath.Join(dir.Name(), name)
	temp, err := writeTemp(dir, name, data, perm)
	if err != nil {
		return newError("create", full, NotCommitted, err)
	}
	err = dir.Link(temp, name)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// No hard links here: the name is claimed with an empty file, so that of
		// two creators one loses, and that is replaced.
		var f File
		if f, err = dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|noFollow, perm); err == nil {
			if err = f.Close(); err == nil {
				return publish(dir, temp, name)
			}
		}
	}
	_ = dir.Remove(temp)
	if err != nil {
		return newError("create", full, NotCommitted, err)
	}
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		return newError("create", full, NotDurable, err)
	}
	return nil
}

// ReplaceSymlink points a symlink at target, atomically and durably. The error
// is ErrNoSymlinks where the system or the file system refuses symlinks.
func ReplaceSymlink(dir FS, target, name string) error {
	temp := tempName(name)
	if err := dir.Symlink(target, temp); err != nil {
		return fmt.Errorf("%w: %w", ErrNoSymlinks, newError("link", filepath.Join(dir.Name(), name), NotCommitted, err))
	}
	return publish(dir, temp, name)
}

// ErrNoSymlinks is returned by ReplaceSymlink where a symlink cannot be made.
var ErrNoSymlinks = errors.New("no symlinks here")

// MkdirDurable makes a folder, 0700, and its name durable. One that is there is
// fine; anything else in its place is an error.
func MkdirDurable(dir FS, name string) error {
	full := filepath.Join(dir.Name(), name)
	err := retry(func() error { return dir.Mkdir(name, 0o700) })
	if errors.Is(err, fs.ErrExist) {
		info, err := dir.Lstat(name)
		if err != nil {
			return newError("make folder", full, NotCommitted, err)
		}
		if !info.IsDir() {
			return &Error{Op: "make folder", Path: full, Class: ClassInvalid, Err: errors.New("something that is no folder has this name; move it away")}
		}
		return nil
	}
	if err != nil {
		return newError("make folder", full, NotCommitted, err)
	}
	if err := dir.SyncDir(path.Dir(name)); err != nil {
		return newError("make folder", full, NotDurable, err)
	}
	return nil
}

// ReadFile reads a regular file of at most limit bytes. A symlink, a FIFO or a
// folder in its place is refused with class invalid, as is a larger file.
func ReadFile(dir FS, name string, limit int64) ([]byte, error) {
	full := filepath.Join(dir.Name(), name)
	var f File
	info, err := dir.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, &Error{Op: "read", Path: full, Class: ClassInvalid, Err: fmt.Errorf("it is no regular file but %s", info.Mode().Type())}
	}
	if err == nil {
		err = retry(func() (err error) {
			f, err = dir.OpenFile(name, os.O_RDONLY|noFollow, 0)
			return err
		})
	}
	if err != nil {
		return nil, newError("read", full, NotCommitted, err)
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, newError("read", full, NotCommitted, err)
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, &Error{Op: "read", Path: full, Class: ClassInvalid, Err: fmt.Errorf("it has %d bytes, more than the %d that are read", info.Size(), limit)}
	}
	data := make([]byte, 0, info.Size()+1) // one more, so that the end is seen without growing
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, newError("read", full, NotCommitted, err)
		}
		if int64(len(data)) > limit {
			return nil, &Error{Op: "read", Path: full, Class: ClassInvalid, Err: fmt.Errorf("it grew beyond the %d bytes that are read", limit)}
		}
	}
}

// RemoveTemps removes the temporary files that crashed writers left in a folder.
// Only the one writer of the folder may call it.
func RemoveTemps(dir FS, name string) error {
	entries, err := dir.ReadDir(name)
	if err != nil {
		return newError("clear temporary files", filepath.Join(dir.Name(), name), NotCommitted, err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) && !e.IsDir() {
			if err := dir.Remove(path.Join(name, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return newError("clear temporary files", filepath.Join(dir.Name(), name, e.Name()), NotCommitted, err)
			}
		}
	}
	return nil
}

// writeTemp writes and syncs a new temporary file beside name. On an error it
// is removed again, as far as that goes.
func writeTemp(dir FS, name string, data []byte, perm fs.FileMode) (temp string, err error) {
	temp = tempName(name)
	var f File
	err = retry(func() (err error) {
		f, err = dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|noFollow, perm)
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
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = dir.Remove(temp)
	}
	return temp, err
}

func tempName(name string) string {
	return path.Join(path.Dir(name), tempPrefix+path.Base(name)+"-"+rand.Text())
}

// retry calls fn again while it fails for want of a resource.
func retry(fn func() error) error {
	var err error
	for range attempts {
		if err = fn(); err == nil || ClassOf(err) != ClassTransient {
			return err
		}
	}
	return err
}
