package checkpoint

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A builder makes a tree of a snapshot. What the snapshot that it was derived from has in
// common with it is not built again.
type builder struct {
	known *Tree           // of the snapshot before
	dirty map[string]bool // the folders in which something differs from it
	// put keeps a folder. stored is what the path had before, or zero.
	put func(items []item, stored blob.Hash) (blob.Hash, error)
}

// dirtyFolders are those in which two snapshots differ, and those above them.
func dirtyFolders(a, b *files.Snapshot) map[string]bool {
	dirty := map[string]bool{}
	mark := func(path string) {
		for dir := parent(path); !dirty[dir]; dir = parent(dir) {
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
	return dirty
}

// sameFiles says whether two snapshots have one list.
func sameFiles(a, b *files.Snapshot) bool {
	return len(a.Files) == len(b.Files) && (len(a.Files) == 0 || &a.Files[0] == &b.Files[0])
}

// folder builds the folder of a path, "" or with a '/' at its end, of what is beneath it:
// files and skips begin with that. old is the folder in the tree before, zero for none.
func (b *builder) folder(prefix string, list []files.Fingerprint, skips []files.Skip, old blob.Hash) (blob.Hash, error) {
	was, err := b.known.folder(old)
	if err != nil { // it is damaged: all of it is built and stored anew
		was, old = nil, blob.Hash{}
	}
	items, below := split(prefix, list, skips, len(was)+8)
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

// A part is what a snapshot has beneath a folder.
type part struct {
	list  []files.Fingerprint
	skips []files.Skip
}

// split returns the items of a folder, sorted, and what is beneath each of its folders.
// About n items are expected; folders have no hash yet.
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
				items = append(items, item{name: name, kind: kindUnknown, text: string(k.Reason)})
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

// beneath is how many of n sorted paths, from the first on, are in a folder.
func beneath(dir string, n int, path func(int) string) int {
	end := dir + "0" // '0' is the byte behind '/'
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
