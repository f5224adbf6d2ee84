package files

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"

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
	top, mount, err := openTop(w.root)
	if err != nil {
		return writer.NewError("open folder", w.root.Name(), writer.NotCommitted, err)
	}
	outside, _ := split(w.opts.Outside)
	at := place{path: ".", mount: mount, judge: judge{}.enter("", outside, w.opts.InForce.of(""))}
	if paths == nil {
		st, err := top.stat(".", ".")
		if err != nil {
			top.close()
			return writer.NewError("look at folder", w.root.Name(), writer.NotCommitted, err)
		}
		return w.walk(ctx, top, at, st, true)
	}
	defer top.close()
	for _, p := range paths {
		if err := w.named(ctx, top, at, p); err != nil {
			return err
		}
	}
	return nil
}

// A place is where the walk is.
type place struct {
	judge // of the folder that the path is in
	path  string
	depth int
	mode  fs.FileMode
	mount uint64 // of the folder that the path is in
	in    *enclosing
}

// An enclosing is a folder that is walked. It is recorded once something in it is, or
// is skipped, so that a folder of which all is left out is not. nil is none.
type enclosing struct {
	above    *enclosing
	path     string
	mode     fs.FileMode
	recorded atomic.Bool
}

// record records a folder and those above it, once.
func (w *walker) record(ctx context.Context, dir *enclosing) error {
	for ; dir != nil && !dir.recorded.Load() && dir.recorded.CompareAndSwap(false, true); dir = dir.above {
		if err := w.take(ctx, Fingerprint{Path: dir.path, Mode: dir.mode}); err != nil {
			return err
		}
	}
	return nil
}

// named goes down to a path that was asked for. The folders on the way are not
// judged, but their rules hold below.
func (w *walker) named(ctx context.Context, dir folder, top place, path string) error {
	rules, err := w.enter(top, ignoreFiles)
	if err != nil {
		return err
	}
	p := place{depth: 1, judge: rules, mount: top.mount}
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
		case err == nil && w.elsewhere(p.path, st.mount != p.mount):
			return nil
		}
		p.mount = st.mount
		sub, err := dir.open(p.path, name)
		if err != nil {
			w.failed(path, err)
			return nil
		}
		defer sub.close()
		if p.judge, err = w.enter(p, ignoreFiles); err != nil {
			return err
		}
		dir, p.depth = sub, p.depth+1
	}
}

// walk looks at all that is in a folder, and closes it. st is from before it was opened.
// named says that it was asked for.
func (w *walker) walk(ctx context.Context, dir folder, at place, st stat, named bool) error {
	defer dir.close()
	if err := ctx.Err(); err != nil {
		return err
	}
	l := &visit{at: at, st: st, named: named, tick: w.opts.tick()}
	names, err := dir.names()
	if err != nil {
		w.failed(at.path, err)
		return w.record(ctx, at.in)
	}
	if !named && w.nested(dir, at.path, names) {
		w.skipRepository(ctx, at.path)
		return w.record(ctx, at.in)
	}
	below := place{depth: at.depth + 1, mount: at.mount}
	if at.path != "." && w.opts.Only == nil {
		below.in = &enclosing{above: at.in, path: at.path, mode: at.mode}
	}
	l.own, l.empty = below.in, len(names) == 0
	w.visited(l)
	if l.empty {
		return w.record(ctx, below.in)
	}
	if below.judge, err = w.enter(at, names); err != nil {
		return err
	}
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
		return w.record(ctx, at.in)
	}
	f := st.fingerprint(at.path)
	isDir := f.Mode.IsDir()
	if !named {
		in := at
		if out, noted := w.leftOut(&at, name, f.Mode, st); noted {
			return w.record(ctx, at.in)
		} else if out && !w.besideTaken(dir, name, in) {
			return nil
		} else if out {
			w.skip(at.path, Ignored, nil)
			return w.record(ctx, at.in)
		}
	}
	if mounted := st.mount != at.mount; (mounted || w.opts.Mounts[at.path]) && w.wants(at.path, isDir) && w.elsewhere(at.path, mounted) {
		return w.record(ctx, at.in)
	}
	if !isDir {
		return w.file(ctx, f, at)
	}
	if at.depth > maxDepth {
		w.skip(at.path, TooDeep, nil)
		return w.record(ctx, at.in)
	}
	sub, err := dir.open(at.path, name)
	if err != nil {
		w.failed(at.path, err)
		return w.record(ctx, at.in)
	}
	below := at // for a folder only: what the function has is on the heap
	below.mode, below.mount = f.Mode, st.mount
	return w.spawn(func() error { return w.walk(ctx, sub, below, st, named) })
}

// nested says whether a folder with these names is a repository that is not gone into.
func (w *walker) nested(dir folder, path string, names []string) bool {
	return !w.opts.Nested && isRepository(dir, names) && !w.keeps(path)
}

// leftOut judges a name in a folder by the ignore rules. out says that it is not taken, and noted that
// the Snapshot names it as ignored or hidden.
func (w *walker) leftOut(at *place, name string, mode fs.FileMode, st stat) (out, noted bool) {
	switch fate := w.judge(at, name, mode); {
	case fate == hidden && st.mount == at.mount:
		w.hide(at.path)
		return true, true
	case fate == left && (w.opts.Keep == nil && w.base.knows(at.path) || w.keeps(at.path) || w.opts.Hidden[at.path]):
		w.skip(at.path, Ignored, nil)
		return true, true
	default:
		return fate == left, false
	}
}

func (w *walker) wants(path string, isDir bool) bool {
	return isDir || w.opts.Only == nil || w.opts.Only(path)
}

// file takes what is no folder.
func (w *walker) file(ctx context.Context, f Fingerprint, at place) error {
	if !w.wants(at.path, false) {
		return nil
	}
	if err := w.record(ctx, at.in); err != nil {
		return err
	}
	if f.Mode.IsRegular() || f.Mode.Type() == fs.ModeSymlink {
		return w.take(ctx, f)
	}
	w.skip(at.path, Special, nil)
	return nil
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
