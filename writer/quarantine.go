package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// Quarantine moves the folder from into the folder to. It never destroys anything: it
// writes the reason to a file next to the new name, then renames the folder, then syncs
// both parents. It returns the new name, which is label in the folder to, with a number
// when label is taken. After an error the folder is still in its place, unless the
// Outcome is NotDurable.
//
// The caller must hold the lock of the folder.
func Quarantine(dir FS, from, to, label string, reason []byte) (string, error) {
	if err := MkdirDurable(dir, to); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		name := path.Join(to, label)
		if n > 1 {
			name = fmt.Sprintf("%s.%d", name, n)
		}
		if _, err := dir.Lstat(name); !errors.Is(err, fs.ErrNotExist) && n < maxTaken {
			continue
		}
		err := CreateFile(dir, name+".json", reason, tempPerm)
		if errors.Is(err, fs.ErrExist) && n < maxTaken {
			continue
		}
		if err != nil {
			return "", err
		}
		if err := MoveFolder(dir, from, name); err != nil {
			_ = dir.Remove(name + ".json")
			return "", NewError("move aside", path.Join(dir.Name(), from), NotCommitted, err)
		}
		for _, parent := range []string{path.Dir(from), to} {
			if err := dir.SyncDir(parent); err != nil {
				return name, NewError("move aside", path.Join(dir.Name(), name), NotDurable, err)
			}
		}
		return name, nil
	}
}

// maxTaken bounds the number of names that Quarantine tries.
const maxTaken = 1000
