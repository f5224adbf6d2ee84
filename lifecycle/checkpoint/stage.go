package checkpoint

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// tempPrefix begins the names of staged files.
const tempPrefix = ".lopen-rewind-"

// tempSum is the length of the hash that follows, in bytes.
const tempSum = 16

// Temporary reports whether a path is named as the files that a rewind stages. What is left of a rewind
// that has ended, as in a folder that could not be changed then, no later one needs.
func Temporary(path string) bool {
	rest, is := strings.CutPrefix(base(path), tempPrefix)
	sum, err := hex.DecodeString(rest)
	return is && err == nil && len(sum) == tempSum
}

// staged is a file or symlink that is complete and not renamed yet.
type staged struct{ dir, name string }

// tempName returns the temporary name for a change. It depends only on the plan and the path, so
// that a later Apply of the same plan recognizes exactly its own files.
func (a *applier) tempName(c *Change) string { return a.tempOf(a.id, c) }

// tempOf returns the temporary name for a change of the plan with this id.
func (a *applier) tempOf(id string, c *Change) string {
	sum := a.s.blobs.NewHash()
	_, _ = io.WriteString(sum, id+"\x00"+c.Path)
	return tempPrefix + hex.EncodeToString(sum.Sum(nil)[:tempSum])
}

// room returns an error if the disk has too little space for the new contents, or if one of them
// is not stored.
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
	// If the free space is not known, a full disk is found while writing.
	if free, err := writer.FreeBytes(a.s.tree.Name()); err == nil && need > 0 && free < uint64(need) {
		return &writer.Error{Op: "rewind", Path: a.s.tree.Name(), Class: writer.ClassNoSpace,
			Err: fmt.Errorf("%d bytes are to be written and %d are free: %w", need, free, syscall.ENOSPC)}
	}
	return nil
}

// stage writes every new content to a temporary file, verified and synced. The file is in the
// nearest existing folder, which is on the same file system as the folders to be made in it.
func (a *applier) stage(ctx context.Context) error {
	var unsynced []writer.File
	flush := func() error {
		list := unsynced
		unsynced = nil
		return blob.SyncAll(list)
	}
	defer func() { _ = flush() }() // after an error it closes the files
	err := a.each(a.changes, func(c *Change) bool { return a.stages(c) && !a.renames(c) }, func(c *Change) (state, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if a.refuse() != nil {
			return pending, nil // nothing will be changed
		}
		f, err := a.stageOne(ctx, c)
		if f != nil { // nil for a symlink
			unsynced = append(unsynced, f)
		}
		if len(unsynced) == blob.MaxUnsynced {
			err = flush()
		}
		return pending, err
	})
	if err != nil {
		return err
	}
	return a.failed(".", flush())
}

// stageLate stages a file that was to be moved back by a rename, and could not.
func (a *applier) stageLate(c *Change) (staged, error) {
	f, err := a.stageOne(a.ctx, c)
	if f != nil {
		err = errors.Join(err, blob.SyncAll([]writer.File{f}))
	}
	return a.temps[c], err
}

// stageOne makes the new file or symlink of a change. The caller syncs and closes the file.
func (a *applier) stageOne(ctx context.Context, c *Change) (writer.File, error) {
	dir, at, err := a.descent.nearest(parent(c.Path))
	if err != nil {
		return nil, err
	}
	t := staged{at, a.tempName(c)}
	a.temps[c] = t
	if c.New.Mode&fs.ModeSymlink != 0 {
		return nil, anew(dir, t.name, func() error { return dir.Symlink(c.New.Target, t.name) })
	}
	return a.write(ctx, dir, t.name, c)
}

// write writes a verified content to a new file. The caller syncs and closes the file.
func (a *applier) write(ctx context.Context, dir writer.FS, name string, c *Change) (writer.File, error) {
	r, err := a.s.blobs.OpenSized(c.New.Hash, c.New.Size)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var f writer.File
	err = anew(dir, name, func() error {
		return writer.Retry(func() (err error) {
			f, err = dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	w, buf := blob.NewSparse(f), buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buf)
	_, err = io.CopyBuffer(w, inContext{ctx, r}, buf[:])
	if err == nil {
		err = w.End()
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

// anew calls create to make a temporary name. If the name exists, left by an interrupted Apply,
// it removes it and tries once more.
func anew(dir writer.FS, name string, create func() error) error {
	err := create()
	if errors.Is(err, fs.ErrExist) {
		if err = dir.Remove(name); err == nil {
			err = create()
		}
	}
	return err
}

// discard removes staged files that were not renamed.
func (a *applier) discard() {
	for _, t := range a.temps {
		if dir, err := a.descent.to(t.dir); err == nil {
			_ = dir.Remove(t.name)
		}
	}
}
