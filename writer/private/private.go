package private

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"

	"github.com/lopen-dev/lopen/writer"
)

const (
	gitignore = ".gitignore"
	all       = "*\n"
	filePerm  = 0o600
)

// Make makes a folder if it is missing, durably, and keeps it private; see [Keep].
func Make(dir writer.FS, name string) error {
	if err := writer.MkdirDurable(dir, name); err != nil {
		return err
	}
	return Keep(dir, name)
}

// Keep closes a folder to other users and has git ignore all that is in it. It writes only what is not so yet: a
// full or read-only disk is no error where nothing is to do.
func Keep(dir writer.FS, name string) error {
	if err := Close(dir, name); err != nil {
		return err
	}
	name = path.Join(name, gitignore)
	for again := true; ; again = false {
		if data, err := writer.ReadFile(dir, name, int64(len(all))); err == nil && string(data) == all {
			return nil
		}
		err := writer.ReplaceFile(dir, name, []byte(all), filePerm)
		if !again || !errors.Is(err, fs.ErrNotExist) { // else whoever owns the folder took the temporary file for left behind
			return err
		}
	}
}

// Offer has git ignore all that is in a folder that has no .gitignore. One that is there stays, whatever is in it.
func Offer(dir writer.FS, name string) error {
	name = path.Join(name, gitignore)
	if _, err := dir.Lstat(name); err == nil {
		return nil // so that nothing is written, and a full or read-only disk is no error
	}
	err := writer.CreateFile(dir, name, []byte(all), filePerm)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Close takes the rights of other users from a folder. On Windows it only looks whether it is one.
func Close(dir writer.FS, name string) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &writer.Error{Op: "keep private", Path: filepath.Join(dir.Name(), name), Class: writer.ClassInvalid, Err: errors.New("something that is no folder has this name; move it away")}
	}
	if info.Mode().Perm()&0o077 == 0 || runtime.GOOS == "windows" {
		return nil
	}
	return dir.Chmod(name, 0o700)
}
