package checkpoint

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A builder makes a tree of a snapshot. It reuses the folders that have not changed since the
// snapshot before.
type builder struct {
	known *Tree           // of the snapshot before
	dirty map[string]bool // the folders in which something differs from it
	// unstable are the folders that changed while they were looked at.
	unstable map[string]bool
	// put stores a folder. stored is the hash that the path had before, or zero.
	put func(items []item, stored blob.Hash) (blob.Hash, error)
}

// dirtyFolders returns the folders in which two snapshots differ, and those above them.
func dirtyFolders(a, b *files.Snapshot) map[string]bool {
	dirty := map[string]bool{}
	mark := func(file string) {
		for dir := parent(file); !dirty[dir]; dir = parent(dir) {
			dirty[dir] = true
		}
	}
	if !sameFiles(a, b) {
		i, j := 0, 0
		for i < len(a.Files) && j < len(b.Files) {
			f, g := &a.Files[i], &b.Files[j]
			order := strings.Compare(f.Path, g.Path)
			switch {
			case order < 0:
				mark(f.Path)
			case order > 0:
				mark(g.Path)
			case !same(f, g):
				mark(f.Path)
			}
			if order <= 0 {
				i++
			}
			if order >= 0 {
				j++
			}
		}
		for _, left := range [][]files.Fingerprint{a.Files[i:], b.Files[j:]} {
			for k := range left {
				mark(left[k].Path)
			}
		}
	}
	if !slices.Equal(a.Skipped, b.Skipped) {
		for _, k := range slices.Concat(a.Skipped, b.Skipped) {
			mark(k.Path)
		}
	}
	for _, dir := range unstableOf(a, b) {
		mark(path.Join(dir, "any"))
	}
	return dirty
}

// unstableOf returns the folders that are unstable in one of two snapshots, if they differ in that.
func unstableOf(a, b *files.Snapshot) []string {
	if slices.Equal(a.Unstable, b.Unstable) {
		return nil
	}
	return slices.Concat(a.Unstable, b.Unstable)
}

// sameFiles reports whether two snapshots share one list of files.
func sameFiles(a, b *files.Snapshot) bool {
	return len(a.Files) == len(b.Files) && (len(a.Files) == 0 || &a.Files[0] == &b.Files[0])
}

// folder builds the folder prefix, which is "" or ends with '/', of the files and skips beneath
// it, whose paths begin with prefix. old is the folder in the tree before, or zero.
func (b *builder) folder(prefix string, list []files.Fingerprint, skips []files.Skip, old blob.Hash) (blob.Hash, error) {
	was, err := b.known.folder(old)
	if err != nil { // it is damaged: build and store all of it again
		was, old = nil, blob.Hash{}
	}
	items, below := split(prefix, list, skips, len(was)+8)
	if b.unstable[cmp.Or(strings.TrimSuffix(prefix, "/"), ".")] {
		items = slices.Insert(items, 0, unstableItem)
	}
	for i := range items {
		it := &items[i]
		if it.kind != kindFolder {
			continue
		}
		var before blob.Hash
		if w := at(was, it.name); w != nil && w.kind == kindFolder {
			before = w.hash
		}
		p := below[it.name]
		delete(below, it.name)
		if it.hash = before; before == (blob.Hash{}) || b.dirty[prefix+it.name] {
			if it.hash, err = b.folder(prefix+it.name+"/", p.list, p.skips, before); err != nil {
				return blob.Hash{}, err
			}
		}
	}
	for name := range below {
		return blob.Hash{}, fmt.Errorf("the snapshot has paths in %q and not the folder", prefix+name)
	}
	h, err := b.put(items, old)
	if err != nil {
		return blob.Hash{}, fmt.Errorf("keep folder %q: %w", strings.TrimSuffix(prefix, "/"), err)
	}
	return h, nil
}

// A part is the part of a snapshot beneath a folder.
type part struct {
	list  []files.Fingerprint
	skips []files.Skip
}

// split returns the items of a folder, sorted, and the part beneath each of its folders. The
// folders have no hash yet. n is an estimate of the number of items.
func split(prefix string, list []files.Fingerprint, skips []files.Skip, n int) (items []item, below map[string]part) {
	items, below = make([]item, 0, n), map[string]part{}
	for len(list) > 0 {
		f := &list[0]
		name, _, deeper := strings.Cut(f.Path[len(prefix):], "/")
		if !deeper {
			items = append(items, itemOf(f, name))
			list = list[1:]
			continue
		}
		n := beneath(prefix+name, len(list), func(i int) string { return list[i].Path })
		below[name] = part{list: list[:n]}
		list = list[n:]
	}
	recorded := items // sorted
	for len(skips) > 0 {
		k := skips[0]
		name, _, deeper := strings.Cut(k.Path[len(prefix):], "/")
		if !deeper {
			if at(recorded, name) == nil {
				it := item{name: name, kind: kindUnknown, text: string(k.Reason), hash: k.State}
				if k.Reason == files.Hidden {
					it = hiddenItem(name, k.Listing)
				}
				items = append(items, it)
			}
			skips = skips[1:]
			continue
		}
		n := beneath(prefix+name, len(skips), func(i int) string { return skips[i].Path })
		p := below[name]
		p.skips = skips[:n]
		below[name] = p
		skips = skips[n:]
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return items, below
}

// beneath returns how many of n sorted paths, from the first on, are beneath dir.
func beneath(dir string, n int, path func(int) string) int {
	end := dir + "0" // '0' is the byte after '/'
	return sort.Search(n, func(i int) bool { return path(i) >= end })
}

func itemOf(f *files.Fingerprint, name string) item {
	switch {
	case f.Mode.IsDir():
		return item{name: name, kind: kindFolder, mode: f.Mode.Perm()}
	case f.Mode.IsRegular():
		return item{name: name, kind: kindFile, mode: f.Mode.Perm(), size: f.Size, hash: f.Hash}
	}
	return item{name: name, kind: kindLink, text: f.Target}
}
