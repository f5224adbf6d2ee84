package crashfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lopen-dev/lopen/writer"
)

// lowerFS is a disk on which one folder cannot be renamed, as one in the lower layer of an
// overlay file system.
type lowerFS struct {
	writer.FS
	lower string
}

func (l lowerFS) Rename(from, to string) error {
	if from == l.lower {
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EXDEV}
	}
	return l.FS.Rename(from, to)
}

func sessionOn(t *testing.T, d *Disk) writer.FS {
	t.Helper()
	dir := d.FS()
	for _, name := range []string{"in", "in/s", "in/s/history", "aside"} {
		require.NoError(t, writer.MkdirDurable(dir, name))
	}
	for name, text := range map[string]string{"in/s/log": strings.Repeat("record\n", 200), "in/s/history/1": "one", "in/s/empty": ""} {
		require.NoError(t, writer.CreateFile(dir, name, []byte(text), 0o600))
	}
	return lowerFS{dir, "in/s"}
}

func whole(t *testing.T, dir writer.FS, folder string) error {
	t.Helper()
	for name, want := range map[string]string{"log": strings.Repeat("record\n", 200), "history/1": "one", "empty": ""} {
		got, err := writer.ReadFile(dir, folder+"/"+name, 1<<20)
		if err != nil || string(got) != want {
			return errors.Join(fmt.Errorf("%s/%s is not whole: %q", folder, name, got), err)
		}
	}
	return nil
}

// A folder that can only be moved by a copy is whole under one of its names after every power
// cut, and a folder that is not whole says that it was moved. What a later command finishes
// leaves one of the two.
func TestMoveFolderByCopyEveryCut(t *testing.T) {
	for _, mode := range []Mode{Ext4, XFS} {
		t.Run(mode.String(), func(t *testing.T) {
			d := New(mode)
			lower := sessionOn(t, d)
			bad := cuts(t, d, 10, func(writer.FS) error {
				if err := writer.MoveFolder(lower, "in/s", "aside/s"); err != nil {
					return err
				}
				return errors.Join(lower.SyncDir("in"), lower.SyncDir("aside"))
			}, func(dir writer.FS, done bool) error {
				was, now := whole(t, dir, "in/s"), whole(t, dir, "aside/s")
				there := func(name string) bool { _, err := dir.Lstat(name); return err == nil }
				switch {
				case was != nil && now != nil:
					return errors.Join(was, now)
				case was != nil && there("in/s") && !writer.Moved(dir, "in/s"):
					return fmt.Errorf("what is left of the old one counts as a session: %w", was)
				case now != nil && there("aside/s"):
					return fmt.Errorf("a part of the copy has its name: %w", now)
				case done && there("in/s"):
					return errors.New("the old one is there")
				}
				if err := errors.Join(writer.FinishMoves(dir, "in"), writer.FinishMoves(dir, "aside")); err != nil {
					return err
				}
				if there("in/s") == there("aside/s") {
					return errors.New("both or none are left")
				}
				for _, folder := range []string{"in", "aside"} {
					if left := names(t, dir, folder); len(left) > 1 {
						return fmt.Errorf("%s has %q", folder, left)
					}
				}
				return errors.Join(map[bool]error{there("in/s"): whole(t, dir, "in/s"), there("aside/s"): whole(t, dir, "aside/s")}[true])
			})
			require.Empty(t, bad)
		})
	}
}

// An error in the copy leaves the folder in its place and nothing else. A name that is taken is
// not replaced, and a folder of the new name that is not the copy takes nothing away.
func TestMoveFolderByCopyFails(t *testing.T) {
	d := New(Ext4)
	dir := sessionOn(t, d)
	d.SetHook(func(op Op) Fault {
		if op.Call == "sync" && strings.HasPrefix(op.Name, "aside/.copy-s") {
			return Fault{Err: syscall.ENOSPC}
		}
		return Fault{}
	})
	require.ErrorIs(t, writer.MoveFolder(dir, "in/s", "aside/s"), syscall.ENOSPC)
	d.SetHook(nil)
	require.NoError(t, whole(t, dir, "in/s"))
	require.Equal(t, []string{"s"}, names(t, dir, "in"))
	require.Empty(t, names(t, dir, "aside"))

	require.NoError(t, dir.Mkdir("aside/s", 0o700))
	require.ErrorIs(t, writer.MoveFolder(dir, "in/s", "aside/s"), fs.ErrExist)
	require.NoError(t, writer.CreateFile(dir, "in/.moving-s", []byte("aside/s"), 0o600))
	require.NoError(t, writer.FinishMoves(dir, "in"))
	require.NoError(t, whole(t, dir, "in/s"))
	require.Equal(t, []string{"s"}, names(t, dir, "in"))
}
