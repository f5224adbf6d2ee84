package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// take records what is at a path: as the base has it when that is certain to be
// the same, else after reading it.
func (w *walker) take(ctx context.Context, f Fingerprint) error {
	i, ok := w.base.lookup(f.Path)
	if ok {
		b := &w.base.Files[i]
		if b.Mode == f.Mode && b.sameStat(&f) && max(b.ModTime, b.ChangeTime) < w.fresh {
			w.unchanged[i] = true
			return w.counted()
		}
	} else if !f.Mode.IsDir() {
		w.noteOlder(f.Path)
	}
	if e, ok := w.before[f.Path]; ok && e.Mode == f.Mode && e.sameStat(&f) && max(e.ModTime, e.ChangeTime) < w.beforeTick {
		return w.add(e)
	}
	switch {
	case f.Mode.IsDir():
		return w.add(f)
	case f.Mode.Type() == fs.ModeSymlink:
		return w.readlink(f)
	case f.Size > w.opts.MaxBytes:
		w.skipLarge(f)
		return nil
	}
	return w.spawn(func() error { return w.read(ctx, f.Path) })
}

// read reads a regular file, again when it was changed meanwhile.
func (w *walker) read(ctx context.Context, path string) error {
	for range attempts {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, certain, err := w.readOnce(ctx, path)
		var rerr *readError
		switch {
		case errors.As(err, &rerr):
			w.failed(path, rerr.error)
			return nil
		case err != nil:
			return err
		case f.Size > w.opts.MaxBytes:
			w.skipLarge(f)
			return nil
		case certain:
			return w.add(f)
		}
	}
	w.skip(path, Unstable, nil)
	return nil
}

// A readError is one of the file, as others are of who keeps the content.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

// readOnce reads a file and says whether its stat before and after was the same.
func (w *walker) readOnce(ctx context.Context, path string) (Fingerprint, bool, error) {
	file, before, err := writer.OpenRegular(w.root, "read", path, os.O_RDONLY|nonBlock)
	if err != nil {
		return Fingerprint{}, false, &readError{err}
	}
	defer file.Close()
	f := statOf(before).fingerprint(path)
	if f.Size > w.opts.MaxBytes {
		return f, false, nil
	}
	// One byte more shows that the file grew, and no more is read of one that grows
	// without end.
	r := &reader{ctx: ctx, r: io.LimitReader(file, f.Size+1)}
	hash, n, err := w.opts.Hash(ctx, path, r)
	switch {
	case ctx.Err() != nil:
		return f, false, ctx.Err()
	case r.err != nil:
		return f, false, &readError{writer.NewError("read", path, writer.NotCommitted, r.err)}
	case err != nil:
		return f, false, fmt.Errorf("hash %s: %w", path, err)
	}
	after, err := file.Stat()
	if err != nil {
		return f, false, &readError{writer.NewError("read", path, writer.NotCommitted, err)}
	}
	g := statOf(after).fingerprint(path)
	f.Hash = hash
	return f, n == f.Size && f.Mode == g.Mode && f.sameStat(&g), nil
}

// A reader ends with the context, and remembers its error.
type reader struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// readlink records a symlink. A link cannot be changed, only replaced, so its
// stat before and after tells.
func (w *walker) readlink(f Fingerprint) error {
	for range attempts {
		target, err := w.root.Readlink(f.Path)
		if err != nil {
			w.failed(f.Path, err)
			return nil
		}
		info, err := w.root.Lstat(f.Path)
		if err != nil {
			w.failed(f.Path, err)
			return nil
		}
		g := statOf(info).fingerprint(f.Path)
		if g.Mode == f.Mode && g.sameStat(&f) {
			f.Target = target
			f.Hash, _, _ = sum(context.Background(), f.Path, strings.NewReader(target))
			return w.add(f)
		}
		f = g
	}
	w.skip(f.Path, Unstable, nil)
	return nil
}
