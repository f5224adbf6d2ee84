package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"

	"crypto/rand"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// tempPrefix begins the names of what is not in its place yet.
const tempPrefix = ".lopen-rewind-"

// staged is a file or symlink that is complete and not in its place yet.
type staged struct{ dir, name string }

// clear removes what an Apply that was cut off left in the folders of the plan.
func (a *applier) clear() error {
	seen := map[string]bool{}
	for _, c := range a.changes {
		for dir := parent(c.Path); !seen[dir]; dir = parent(dir) {
			seen[dir] = true
			err := a.clearFolder(dir)
			if a.plan.Permitted && writer.ClassOf(err) == writer.ClassDenied {
				continue // nor can anything be done in it, which is reported then
			}
			if err != nil {
				return a.failed(dir, err)
			}
		}
	}
	return nil
}

func (a *applier) clearFolder(dir string) error {
	at, err := a.chain.to(dir)
	if unreachable(err) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := at.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) && !e.IsDir() {
			if err := at.Remove(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// room refuses at once what cannot be done: no space for what is to be written, or
// a content that is not stored.
func (a *applier) room() error {
	var need int64
	for _, c := range a.changes {
		if a.over[c] || !a.stages(c) || !c.New.Mode.IsRegular() {
			continue
		}
		need += c.New.Size
		has, err := a.s.blobs.Has(c.New.Hash)
		if err != nil {
			return a.failed(c.Path, err)
		}
		if !has {
			return &writer.Error{Op: "rewind", Path: c.Path, Class: writer.ClassCorrupt, Err: fmt.Errorf("its content, blob %s, is not stored: %w", c.New.Hash, fs.ErrNotExist)}
		}
	}
	// Where nobody knows how much is free the writing will tell.
	if free, err := writer.FreeBytes(a.s.tree.Name()); err == nil && need > 0 && free < uint64(need) {
		return &writer.Error{Op: "rewind", Path: a.s.tree.Name(), Class: writer.ClassNoSpace,
			Err: fmt.Errorf("%d bytes are to be written and %d are free: %w", need, free, syscall.ENOSPC)}
	}
	return nil
}

// stage writes every new content beside its place, verified and synced. The nearest
// folder that is there is on the file system of those that are to be made in it.
func (a *applier) stage(ctx context.Context) error {
	var unsynced []writer.File
	defer func() { _ = blob.SyncAll(unsynced) }() // after an error: closes them
	for _, c := range a.changes {
		if a.over[c] || !a.stages(c) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("rewind %s: %w", a.s.tree.Name(), context.Cause(ctx))
		}
		f, err := a.stageOne(c)
		if err != nil {
			if err := a.permitted(c, err); err != nil {
				return err
			}
			continue
		}
		if f == nil {
			continue // a symlink
		}
		if unsynced = append(unsynced, f); len(unsynced) == blob.MaxUnsynced {
			list := unsynced
			unsynced = nil
			if err := blob.SyncAll(list); err != nil {
				return a.failed(c.Path, err)
			}
		}
	}
	list := unsynced
	unsynced = nil
	return a.failed(".", blob.SyncAll(list))
}

// stageOne makes the new file or symlink of a change. A file is left open to be synced.
func (a *applier) stageOne(c *Change) (writer.File, error) {
	dir, at, err := a.chain.nearest(parent(c.Path))
	if err != nil {
		return nil, err
	}
	t := staged{at, tempPrefix + rand.Text()}
	a.temps[c] = t
	if c.New.Mode&fs.ModeSymlink != 0 {
		return nil, dir.Symlink(c.New.Target, t.name)
	}
	return a.write(dir, t.name, c)
}

// write writes a verified content to a new file, which is left open to be synced.
func (a *applier) write(dir writer.FS, name string, c *Change) (writer.File, error) {
	r, err := a.s.blobs.Open(c.New.Hash)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var f writer.File
	err = writer.Retry(func() (err error) {
		f, err = dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	w := blob.NewSparse(f)
	_, err = io.CopyBuffer(w, r, make([]byte, 64<<10))
	if err == nil {
		err = w.End()
	}
	if err == nil && w.Size() != c.New.Size {
		err = fmt.Errorf("blob %s has %d bytes, not %d", c.New.Hash, w.Size(), c.New.Size)
	}
	if err == nil {
		err = f.Chmod(c.New.Mode.Perm())
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// syncHandle syncs an open folder, where the system can.
func syncHandle(f writer.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// discard removes what was staged and did not come into its place.
func (a *applier) discard() {
	for _, t := range a.temps {
		if dir, err := a.chain.to(t.dir); err == nil {
			_ = dir.Remove(t.name)
		}
	}
}
