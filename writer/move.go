package writer

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lopen-dev/lopen/writer/mount"
)

const (
	// movingPrefix begins the name of the note next to a folder that is moved by a copy. The
	// note has the new path.
	movingPrefix = ".moving-"
	// movedPrefix begins the name of that note once the copy has the new name.
	movedPrefix = ".moved-"
	// copyPrefix begins the name of a copy that is not complete.
	copyPrefix = ".copy-"
	// maxNote bounds a note, in bytes.
	maxNote = 4 << 10
)

// MoveFolder renames a folder to a free name. The caller syncs both parents and holds the locks
// that keep others out of the folder.
//
// An overlay file system renames no folder of a lower layer, and its error is EXDEV. Then the
// folder is copied under a temporary name, synced, and renamed, all durably, and the old one is
// removed. After a crash one of the two is whole under its name; [Moved] tells whether the old
// one is over, and [FinishMoves] removes what is left. After an error the old one is in its place.
func MoveFolder(dir FS, from, to string) error {
	err := dir.Rename(from, to)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if info, err := dir.Lstat(from); err != nil || !info.IsDir() {
		return errors.Join(syscall.EXDEV, err)
	}
	if at, err := mount.Find(dir, from); at != "" || err != nil { // a copy would take what is on it along
		return &fs.PathError{Op: "move", Path: path.Join(dir.Name(), at), Err: cmp.Or(err, mount.ErrMounted)}
	}
	if _, err := dir.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(&fs.PathError{Op: "move", Path: to, Err: fs.ErrExist}, err)
	}
	note, temp := noteOf(movingPrefix, from), noteOf(copyPrefix, to)
	err = ReplaceFile(dir, note, []byte(to), tempPerm)
	if err == nil {
		err = dir.RemoveAll(temp) // of an earlier move that was cut off
	}
	if err == nil {
		err = copyFolder(dir, from, temp)
	}
	if err == nil {
		err = dir.Rename(temp, to)
	}
	if err != nil {
		_ = dir.RemoveAll(temp)
		_ = dir.Remove(note)
		return err
	}
	if err := dir.SyncDir(path.Dir(to)); err != nil {
		return err // the note stands: whoever finishes the move knows both names
	}
	endMove(dir, from)
	return nil
}

// noteOf returns the name of a note, or of a temporary copy, next to a folder.
func noteOf(prefix, folder string) string {
	return path.Join(path.Dir(folder), prefix+path.Base(folder))
}

// endMove removes a folder whose copy has its new name, durably. What cannot be removed is left
// to [FinishMoves].
func endMove(dir FS, from string) {
	note := noteOf(movedPrefix, from)
	if dir.Rename(noteOf(movingPrefix, from), note) == nil && dir.SyncDir(path.Dir(from)) == nil {
		removeMoved(dir, from)
	}
}

func removeMoved(dir FS, from string) {
	if dir.RemoveAll(from) == nil && dir.SyncDir(path.Dir(from)) == nil {
		_ = dir.Remove(noteOf(movedPrefix, from)) // after the folder, which it declares to be over
	}
}

// Moved reports whether a folder is what is left of one that was moved.
func Moved(dir FS, folder string) bool {
	_, err := dir.Lstat(noteOf(movedPrefix, folder))
	return err == nil
}

// MovedNames returns the names of which [Moved] is true in a listed folder, or nil.
func MovedNames(entries []fs.DirEntry) (names map[string]bool) {
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), movedPrefix); ok {
			if names == nil {
				names = map[string]bool{}
			}
			names[name] = true
		}
	}
	return names
}

// FinishMoves finishes the moves of folders in a folder that were cut off. The caller holds the
// locks under which such moves are made.
func FinishMoves(dir FS, in string) error {
	entries, err := dir.ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{RemoveTemps(dir, in, func(of string) bool { return strings.HasPrefix(of, movingPrefix) })}
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), movedPrefix); ok {
			removeMoved(dir, path.Join(in, name))
		}
		if name, ok := strings.CutPrefix(e.Name(), movingPrefix); ok {
			errs = append(errs, finishMove(dir, path.Join(in, name)))
		}
	}
	return errors.Join(append(errs, err)...)
}

// finishMove ends a move that was cut off before the old folder counted as moved. A folder of
// the new name that has not all of the old one is not its copy; then both stay.
func finishMove(dir FS, from string) error {
	note := noteOf(movingPrefix, from)
	to, err := ReadFile(dir, note, maxNote)
	if err == nil && path.Clean(string(to)) == string(to) && fs.ValidPath(string(to)) {
		// Without the copy a move that is still going on cannot come to its end any more.
		err = dir.RemoveAll(noteOf(copyPrefix, string(to)))
		if err == nil && has(dir, string(to), from) && dir.SyncDir(path.Dir(string(to))) == nil {
			endMove(dir, from)
			return nil
		}
	}
	if err == nil {
		err = dir.Remove(note)
	}
	if err != nil {
		return NewError("finish move", filepath.Join(dir.Name(), from), NotCommitted, err)
	}
	return nil
}

// has reports whether a folder has everything that another one has, with its size.
func has(dir FS, folder, other string) bool {
	entries, err := dir.ReadDir(other)
	for _, e := range entries {
		was, werr := dir.Lstat(path.Join(other, e.Name()))
		now, nerr := dir.Lstat(path.Join(folder, e.Name()))
		switch {
		case werr != nil || nerr != nil || was.Mode().Type() != now.Mode().Type():
			return false
		case was.IsDir() && !has(dir, path.Join(folder, e.Name()), path.Join(other, e.Name())):
			return false
		case was.Mode().IsRegular() && was.Size() != now.Size():
			return false
		}
	}
	return err == nil
}

// copyFolder copies a folder with everything in it, durably but for the name of the copy.
func copyFolder(dir FS, from, to string) error {
	info, err := dir.Lstat(from)
	if err == nil {
		err = dir.Mkdir(to, 0o700)
	}
	var entries []fs.DirEntry
	if err == nil {
		entries, err = dir.ReadDir(from)
	}
	for _, e := range entries {
		if err == nil {
			err = copyEntry(dir, path.Join(from, e.Name()), path.Join(to, e.Name()))
		}
	}
	if err == nil {
		err = dir.Chmod(to, info.Mode().Perm())
	}
	if err == nil {
		err = dir.SyncDir(to)
	}
	return err
}

func copyEntry(dir FS, from, to string) error {
	info, err := dir.Lstat(from)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return copyFolder(dir, from, to)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(from)
		if err != nil {
			return err
		}
		return dir.Symlink(target, to)
	}
	if err := CopyFile(dir, from, to, info.Mode().Perm()); err != nil { // it refuses what is no file
		return err
	}
	return dir.Chmod(to, info.Mode().Perm()) // the umask may have cleared bits
}
