package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// maxOnly bounds the paths of Entry.Only together, in bytes.
const maxOnly = 32 << 10

// CleanOnly returns the paths of [Meta.Only] sorted and without those beneath another. The error
// has class invalid.
func CleanOnly(paths []string) ([]string, error) {
	var only []string
	bytes := 0
	for _, path := range paths {
		clean, err := files.CleanPath(path)
		switch {
		case err != nil:
			return nil, err
		case clean == ".":
			return nil, badPath(path, errors.New("it is the whole tree, of which a checkpoint without a list is"))
		case !utf8.ValidString(clean):
			return nil, badPath(path, errors.New("its name is not UTF-8: give the folder that it is in"))
		}
		bytes += len(clean)
		only = append(only, clean)
	}
	slices.Sort(only)
	only = slices.Compact(only)
	only = slices.DeleteFunc(slices.Clone(only), func(path string) bool {
		return slices.ContainsFunc(only, func(dir string) bool { return strings.HasPrefix(path, dir+"/") })
	})
	if len(only) == 0 {
		return nil, badPath("", errors.New("the list is empty"))
	}
	if bytes > maxOnly {
		return nil, badPath("", fmt.Errorf("the list has %d bytes of paths, more than %d: give folders", bytes, maxOnly))
	}
	return only, nil
}

func badPath(path string, err error) error {
	return &writer.Error{Op: "checkpoint of a list", Path: path, Class: writer.ClassInvalid, Err: err}
}

// Among returns the paths that a rewind to the entry touches: those of paths that are in the list of
// the entry, or lead to it. nil is all of the list, and all paths for an entry without one. The error
// has class invalid.
func (e *Entry) Among(paths []string) ([]string, error) {
	if e.Only == nil || paths == nil {
		return slices.Concat(paths, e.Only), nil
	}
	var among []string
	for _, path := range paths {
		n := len(among)
		for _, only := range e.Only {
			switch {
			case path == "." || path == only || strings.HasPrefix(only, path+"/"):
				among = append(among, only)
			case strings.HasPrefix(path, only+"/"):
				among = append(among, path)
			}
		}
		if len(among) == n {
			return nil, badPath(path, fmt.Errorf("checkpoint %s is one of a list, and this is not in it", e.ID.Short()))
		}
	}
	return among, nil
}

// FilesAlone reports whether a rewind to the entry brings no tasks back: it is one of a list, or was
// made before there was a session.
func (e *Entry) FilesAlone() bool { return e.Only != nil || e.Session == "" }

// lookAt makes the sighting of an entry with a list: its tree is that of prev, except for the paths in
// the list. base and known are as for look, and stay so: nothing is known of the other paths.
func (l *looker) lookAt(ctx context.Context, e, prev *Entry, base *files.Snapshot, known *Tree) (*sighting, error) {
	s := l.s
	rules, err := s.Rules(prev)
	if err != nil {
		return nil, err
	}
	before := s.Tree(prev.Root)
	mounts := newMounting(prev, s, true) // what was mounted since is not taken
	now, err := files.Take(ctx, s.tree, base, files.Options{Paths: e.Only, InForce: rules.InForce, Keep: inAny([]*Tree{before}),
		Repository: s.opts.Repository, Hash: l.storing(base, known), Mounts: mounts.was, Mount: mounts.takes})
	if err != nil {
		return nil, err
	}
	p := overlay{l: l, now: now, rules: []*files.Rules{rules.InForce, rules.Found}}
	if e.Root, _, err = p.folder("", prev.Root, e.Only); err != nil {
		return nil, err
	}
	if err := l.batch.Commit(); err != nil {
		return nil, err
	}
	l.tree.Root, l.older = e.Root, now.Older
	e.Rules, e.Mounts, e.Volumes, e.Older = prev.Rules, prev.Mounts, prev.Volumes, l.olderIn(now)
	e.Files, e.Bytes = prev.Files, prev.Bytes
	err = paths(before, l.tree, func(_ string, old, next *files.Fingerprint) error {
		e.tally(old, -1)
		e.tally(next, 1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	skipped, err := l.tree.Skipped()
	if err != nil {
		return nil, err
	}
	for _, k := range skipped {
		if k.Reason == files.Hidden {
			e.Hidden++
		}
	}
	unstable, err := l.tree.Unstable()
	if err != nil {
		return nil, err
	}
	e.Unstable = len(unstable)
	diff, err := Diff(before, l.tree)
	e.Changed = len(diff)
	return &sighting{entry: e, snapshot: base, tree: known}, err
}

// tally adds a file to the numbers of the entry, or takes it out of these.
func (e *Entry) tally(f *files.Fingerprint, sign int) {
	if f == nil || f.Mode.IsDir() || unknown(f) || hidden(f) {
		return
	}
	e.Files += sign
	if f.Mode.IsRegular() {
		e.Bytes += int64(sign) * f.Size
	}
}

// An overlay makes a tree of another one in which some paths are as a snapshot of them has them.
type overlay struct {
	l     *looker
	now   *files.Snapshot // of the paths
	rules []*files.Rules  // of the entry before
}

// folder makes the folder prefix, which is "" or ends with '/', of the one before. paths are those
// beneath it. some reports whether one of them is there now.
func (p *overlay) folder(prefix string, old blob.Hash, paths []string) (h blob.Hash, some bool, err error) {
	items, err := p.l.s.Tree(old).folder(old)
	if err != nil {
		return h, false, err
	}
	items = slices.Clone(items)
	for len(paths) > 0 {
		name, _, deeper := strings.Cut(paths[0][len(prefix):], "/")
		n := 1
		if deeper {
			n = beneath(prefix+name, len(paths), func(i int) string { return paths[i] })
		}
		var it *item
		if deeper {
			it, err = p.through(prefix+name, at(items, name), paths[:n])
		} else {
			it, err = p.item(prefix + name)
		}
		if err != nil {
			return h, false, err
		}
		paths, some = paths[n:], some || it != nil
		items = replaced(items, name, it)
	}
	h, err = p.l.keepFolder(items, old)
	return h, some, err
}

// through makes the folder at a path that leads to some of the paths. before is what the entry before
// has there. What is no folder, now or there, is refused.
func (p *overlay) through(path string, before *item, paths []string) (*item, error) {
	info, err := p.l.s.tree.Lstat(filepath.FromSlash(path))
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !gone:
		return nil, writer.NewError("look at", path, writer.NotCommitted, err)
	case !gone && !info.IsDir():
		return nil, badPath(path, errors.New("it is no folder: give this path itself"))
	case before == nil:
		h, some, err := p.folder(path+"/", blob.Hash{}, paths)
		if err != nil || !some {
			return nil, err
		}
		return &item{name: base(path), kind: kindFolder, mode: info.Mode().Perm(), hash: h}, nil
	case before.kind != kindFolder:
		return nil, badPath(path, errors.New("the checkpoint before has no folder there: give this path itself"))
	}
	it := *before
	it.hash, _, err = p.folder(path+"/", before.hash, paths)
	return &it, err
}

// item makes what the snapshot has at one of the paths; nil if there is nothing.
func (p *overlay) item(path string) (*item, error) {
	f := p.now.Find(path)
	for _, r := range p.rules {
		if r.Ignored(path, isDir(f)) {
			return nil, badPath(path, errors.New("it is ignored: no checkpoint has it"))
		}
	}
	for _, k := range p.now.Skipped {
		if k.Path == path {
			return nil, badPath(path, fmt.Errorf("it cannot be recorded: %s", strings.TrimSuffix(string(k.Reason)+": "+k.Err, ": ")))
		}
	}
	if f == nil {
		return nil, nil
	}
	it := itemOf(f, base(path))
	if !f.Mode.IsDir() {
		return &it, nil
	}
	b := builder{known: p.l.s.Tree(blob.Hash{}), unstable: setOf(p.now.Unstable), put: p.l.keepFolder}
	var err error
	it.hash, err = b.folder(path+"/", under(p.now.Files, path, func(f files.Fingerprint) string { return f.Path }),
		under(p.now.Skipped, path, func(k files.Skip) string { return k.Path }), blob.Hash{})
	return &it, err
}

// under returns those of a list, which is sorted by path, that are beneath dir.
func under[T any](all []T, dir string, path func(T) string) []T {
	first := sort.Search(len(all), func(i int) bool { return path(all[i]) >= dir+"/" })
	return all[first : first+beneath(dir, len(all)-first, func(i int) string { return path(all[first+i]) })]
}

// replaced returns the sorted items with the one of a name replaced, or removed for nil.
func replaced(items []item, name string, it *item) []item {
	i, found := slices.BinarySearchFunc(items, name, func(it item, name string) int { return strings.Compare(it.name, name) })
	if found {
		items = slices.Delete(items, i, i+1)
	}
	if it != nil {
		items = slices.Insert(items, i, *it)
	}
	return items
}
