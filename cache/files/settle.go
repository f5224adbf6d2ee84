package files

import (
	"context"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/lopen-dev/lopen/writer"
)

// passes bounds how often a folder's names are read in one Take.
const passes = 5

// A visit is a folder whose names were read.
//
// All folders are looked at before any of them is compared with its stat from before. So at the
// moment between the two each folder that has not changed held exactly what was recorded, and a
// path is in one of them or in a folder that did change.
type visit struct {
	at    place
	own   *enclosing // of the folder itself; nil of the root, and where no folder is recorded
	named bool       // it was asked for
	empty bool       // it has no names at all
	st    stat       // from before the names were read
	tick  int64      // the time of the file system's changes then
}

// racy says that a change within this tick of the clock may have left no other stat.
func (l *visit) racy() bool { return l.st.changed() >= l.tick && l.st.changed() <= l.tick+maxTick }

// maxTick is far more than a tick, and says which times are set into the future.
const maxTick = 100e6

// changed is when a folder's names last changed: no program can set the time of change back.
func (s stat) changed() int64 {
	if s.chgTime != 0 {
		return s.chgTime
	}
	return s.modTime
}

// same says that a folder is the one that was looked at, with the same names in it.
func (s stat) same(t stat) bool {
	return s.mode == t.mode && s.inode == t.inode && s.mount == t.mount && s.modTime == t.modTime && s.chgTime == t.chgTime
}

// visited remembers a folder whose names were read.
func (w *walker) visited(l *visit) {
	w.mu.Lock()
	w.visits = append(w.visits, l)
	w.mu.Unlock()
	if w.opts.looked != nil {
		w.opts.looked(l.at.path)
	}
}

// settle compares each folder with its stat from before its names were read. Those that differ
// are read again, and returned once they have changed in every pass.
func (w *walker) settle(ctx context.Context) (unstable []string, err error) {
	for pass := 1; ; pass++ {
		moved, err := w.moved()
		if err != nil || len(moved) == 0 {
			return nil, err
		}
		if pass == passes {
			return w.unsettled(ctx, moved)
		}
		if pass > 1 || slices.ContainsFunc(moved, (*visit).racy) {
			w.opts.wait() // so that one more look can be certain
		}
		if err := w.again(ctx, moved); err != nil {
			return nil, err
		}
	}
}

// moved returns the folders that are not what they were, or may not be, sorted by path.
func (w *walker) moved() ([]*visit, error) {
	top, _, err := openTop(w.root)
	if err != nil {
		return nil, writer.NewError("open folder", w.root.Name(), writer.NotCommitted, err)
	}
	defer top.close()
	parts := runtime.GOMAXPROCS(0)
	found := make([][]*visit, parts)
	var group sync.WaitGroup
	for n := range parts {
		some := w.visits[len(w.visits)*n/parts : len(w.visits)*(n+1)/parts]
		group.Go(func() {
			for _, l := range some {
				st, err := top.stat(l.at.path, l.at.path)
				if err != nil || !st.same(l.st) || l.racy() {
					found[n] = append(found[n], l)
				}
			}
		})
	}
	group.Wait()
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b *visit) int { return strings.Compare(a.at.path, b.at.path) })
	return all, nil
}

// unsettled records the folders that never settled, and returns their paths.
func (w *walker) unsettled(ctx context.Context, moved []*visit) (unstable []string, err error) {
	for _, l := range moved {
		if err := w.record(ctx, l.own); err != nil {
			return nil, err
		}
		unstable = append(unstable, l.at.path)
	}
	return unstable, nil
}

// again reads folders again, one after the other, the outer ones first.
func (w *walker) again(ctx context.Context, moved []*visit) error {
	w.mended = true
	byPath := make(map[string]*visit, len(w.visits))
	for _, l := range w.visits {
		byPath[l.at.path] = l
	}
	for _, l := range moved {
		if byPath[l.at.path] != l {
			continue // it went with a folder above
		}
		err := w.run(ctx, func(ctx context.Context) error { return w.reread(ctx, l, byPath) })
		if err != nil {
			return err
		}
	}
	return nil
}

// reread replaces what was found in a folder. Folders in it that are still the same stay.
func (w *walker) reread(ctx context.Context, l *visit, byPath map[string]*visit) error {
	at := l.at
	dir, st, err := w.reopen(at.path)
	if err != nil {
		return w.lose(ctx, l, byPath, err)
	}
	defer dir.close()
	if st.mount != l.st.mount && at.path != "." { // the folder above decides what is mounted in it
		return w.reread(ctx, byPath[parent(at.path)], byPath)
	}
	w.beforeTick, l.st, l.tick = l.tick, st, w.opts.tick()
	names, err := dir.names()
	switch {
	case err != nil:
		return w.lose(ctx, l, byPath, err)
	case !l.named && w.nested(dir, at.path, names):
		w.dropAll(at.path, byPath)
		w.skipRepository(ctx, at.path)
		return w.record(ctx, at.in)
	}
	if w.opts.looked != nil {
		w.opts.looked(at.path)
	}
	w.before = map[string]Fingerprint{}
	rules := w.dropDirect(at.path)
	if err := w.remode(ctx, l); err != nil {
		return err
	}
	if l.empty = len(names) == 0; l.empty {
		w.dropBelow(at.path, nil, byPath)
		return w.record(ctx, l.own)
	}
	return w.replace(ctx, l, dir, names, rules, byPath)
}

// replace looks at all names in a folder that is read again, but for the folders that stay. rules
// are those that it had.
func (w *walker) replace(ctx context.Context, l *visit, dir folder, names []string, rules []IgnoreFile, byPath map[string]*visit) (err error) {
	at := l.at
	below := place{in: l.own, depth: at.depth + 1, mount: at.mount}
	if below.judge, err = w.enter(at, names); err != nil {
		return err
	}
	stay := map[string]bool{}
	if w.opts.Paths == nil && slices.EqualFunc(rules, w.rulesIn(at.path), IgnoreFile.equal) {
		stay = staying(dir, at.path, names, byPath)
	}
	w.dropBelow(at.path, stay, byPath)
	for _, name := range names {
		if below.path = path.Join(at.path, name); never(name) || stay[below.path] {
			continue
		}
		if err := w.entry(ctx, dir, name, below, false); err != nil {
			return err
		}
	}
	return nil
}

// staying returns the folders in a folder that are the ones that were looked at.
func staying(dir folder, at string, names []string, byPath map[string]*visit) map[string]bool {
	stay := map[string]bool{}
	for _, name := range names {
		below := path.Join(at, name)
		if l := byPath[below]; l != nil {
			st, err := dir.stat(below, name)
			stay[below] = err == nil && st.mode.IsDir() && st.inode == l.st.inode && st.mount == l.st.mount
		}
	}
	return stay
}

// reopen opens a folder from the root down, and returns its stat from before.
func (w *walker) reopen(path string) (folder, stat, error) {
	dir, _, err := openTop(w.root)
	if err != nil {
		return nil, stat{}, err
	}
	st, err := dir.stat(".", ".")
	for end := 0; err == nil && path != "." && end < len(path); end++ {
		from := end
		if end = strings.IndexByte(path[from:], '/'); end < 0 {
			end = len(path)
		} else {
			end += from
		}
		var sub folder
		if st, err = dir.stat(path[:end], path[from:end]); err == nil && !st.mode.IsDir() {
			err = fs.ErrNotExist
		}
		if err == nil {
			if sub, err = dir.open(path[:end], path[from:end]); err == nil {
				dir.close()
				dir = sub
			}
		}
	}
	if err != nil {
		dir.close()
		return nil, stat{}, err
	}
	return dir, st, nil
}

// lose drops a folder that can be opened no more.
func (w *walker) lose(ctx context.Context, l *visit, byPath map[string]*visit, err error) error {
	w.dropAll(l.at.path, byPath)
	w.failed(l.at.path, err)
	return w.record(ctx, l.at.in)
}

// remode records a folder that is recorded with the mode that it has now.
func (w *walker) remode(ctx context.Context, l *visit) error {
	mode := l.st.mode & modeBits
	if l.own == nil || l.own.mode == mode {
		return nil
	}
	l.own.mode = mode
	if !l.own.recorded.Swap(false) {
		return nil
	}
	w.drop(func(path string) bool { return path == l.at.path }, nil)
	return w.record(ctx, l.own)
}
