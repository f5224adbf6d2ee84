package files

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// A folder is one that is open for looking at what is in it.
type folder interface {
	// names returns what is in it, in any order.
	names() ([]string, error)
	// stat looks at one of the names, which is the last part of path.
	stat(path, name string) (stat, error)
	// open opens a folder in it, and fails for anything else, a symlink too.
	open(path, name string) (folder, error)
	close()
}

// start looks at what was asked for.
func (w *walker) start(ctx context.Context, paths []string) error {
	top, err := openTop(w.root)
	if err != nil {
		return writer.NewError("open folder", w.root.Name(), writer.NotCommitted, err)
	}
	if paths == nil {
		return w.walk(ctx, top, place{path: "."})
	}
	defer top.close()
	for _, p := range paths {
		if err := w.named(ctx, top, p); err != nil {
			return err
		}
	}
	return nil
}

// A place is where the walk is.
type place struct {
	path  string
	rules *rules // of the folders above
	depth int
	mode  fs.FileMode
}

// named goes down to a path that was asked for. The folders on the way are not
// judged, but their rules hold below.
func (w *walker) named(ctx context.Context, dir folder, path string) error {
	p := place{depth: 1, rules: w.rules(nil, ".", ignoreFiles)}
	for end := 0; ; end++ {
		i := strings.IndexByte(path[end:], '/')
		if i < 0 {
			p.path = path
			return w.entry(ctx, dir, path[end:], p, true)
		}
		name := path[end : end+i]
		end += i
		p.path = path[:end]
		st, err := dir.stat(p.path, name)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && st.mode.IsRegular():
			return nil // nothing has such a path
		case err == nil && st.mode.Type() == fs.ModeSymlink:
			w.skip(path, Symlinked, nil)
			return nil
		}
		sub, err := dir.open(p.path, name)
		if err != nil {
			w.failed(path, err)
			return nil
		}
		defer sub.close()
		w.folder(p.path, st.mode&modeBits)
		dir, p.rules, p.depth = sub, w.rules(p.rules, p.path, ignoreFiles), p.depth+1
	}
}

// walk looks at all that is in a folder, and closes it.
func (w *walker) walk(ctx context.Context, dir folder, at place) error {
	defer dir.close()
	if err := ctx.Err(); err != nil {
		return err
	}
	names, err := dir.names()
	if err != nil {
		w.failed(at.path, err)
		return nil
	}
	if len(names) == 0 && at.path != "." {
		if w.opts.Only != nil {
			return nil
		}
		return w.take(ctx, Fingerprint{Path: at.path, Mode: at.mode})
	}
	below := place{rules: w.rules(at.rules, at.path, names), depth: at.depth + 1}
	prefix := at.path + "/"
	if at.path == "." {
		prefix = ""
	}
	for _, name := range names {
		if never(name) {
			continue
		}
		below.path = prefix + name
		if err := w.entry(ctx, dir, name, below, false); err != nil {
			return err
		}
	}
	return nil
}

// entry looks at one name in a folder. named says that it was asked for.
func (w *walker) entry(ctx context.Context, dir folder, name string, at place, named bool) error {
	st, err := dir.stat(at.path, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.failed(at.path, err)
		return nil
	}
	if !named && at.rules.ignored(at.path, name, st.mode.IsDir()) {
		if w.base.knows(at.path) {
			w.skip(at.path, Ignored, nil)
		}
		return nil
	}
	f := st.fingerprint(at.path)
	if !f.Mode.IsDir() && w.opts.Only != nil && !w.opts.Only(at.path) {
		return nil
	}
	switch f.Mode.Type() {
	case fs.ModeDir:
		if at.depth > maxDepth {
			w.skip(at.path, TooDeep, nil)
			return nil
		}
		sub, err := dir.open(at.path, name)
		if err != nil {
			w.failed(at.path, err)
			return nil
		}
		at.mode = f.Mode
		w.folder(at.path, f.Mode)
		return w.spawn(func() error { return w.walk(ctx, sub, at) })
	case 0, fs.ModeSymlink:
		return w.take(ctx, f)
	}
	w.skip(at.path, Special, nil)
	return nil
}

func (w *walker) folder(path string, mode fs.FileMode) {
	if w.opts.Folder != nil {
		w.opts.Folder(path, mode)
	}
}

// failed notes a path that could not be looked at, unless it has vanished.
func (w *walker) failed(path string, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case writer.ClassOf(err) == writer.ClassInvalid: // it is not any more what it was a moment ago
		w.skip(path, Unstable, nil)
	default:
		w.skip(path, Unreadable, err)
	}
}
