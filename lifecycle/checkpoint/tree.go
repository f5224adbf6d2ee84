package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
)

// A Tree is the files of a work tree at one moment. It is immutable, and reads its folders on
// demand. It may be used by several goroutines.
type Tree struct {
	Root     blob.Hash
	blobs    *blob.Store
	cache    *folderCache
	unstored map[blob.Hash][]item // folders of a look, which are not stored
}

// Tree returns the tree of a root.
func (s *Store) Tree(root blob.Hash) *Tree {
	return &Tree{Root: root, blobs: s.blobs, cache: &s.folders}
}

// folder returns the items of an object; the zero hash is an empty folder.
func (t *Tree) folder(h blob.Hash) ([]item, error) {
	if items, ok := t.unstored[h]; ok || h == (blob.Hash{}) {
		return items, nil
	}
	if items, ok := t.cache.get(h); ok {
		return items, nil
	}
	data, err := readObject(t.blobs, h, maxObject)
	if err != nil {
		return nil, err
	}
	items, err := decodeFolder(data)
	if err != nil {
		return nil, damaged(h.String(), err)
	}
	t.cache.add(h, items)
	return items, nil
}

// unknown reports whether a fingerprint stands for something that could not be recorded. Its
// Mode is fs.ModeIrregular, its Target the [files.Reason], and its Hash that of a repository's state.
func unknown(f *files.Fingerprint) bool { return f != nil && f.Mode == fs.ModeIrregular }

// fingerprint returns the fingerprint of an item, or nil for nil.
func (t *Tree) fingerprint(path string, it *item) *files.Fingerprint {
	if it == nil {
		return nil
	}
	f := &files.Fingerprint{Path: path, Mode: it.mode}
	switch it.kind {
	case kindFolder:
		f.Mode |= fs.ModeDir
	case kindFile:
		f.Size, f.Hash = it.size, it.hash
	case kindHidden:
		return it.listing().Fingerprint(path)
	case kindLink:
		sum := t.blobs.NewHash()
		_, _ = sum.Write([]byte(it.text)) // never fails
		f.Mode, f.Size, f.Target, f.Hash = fs.ModeSymlink, int64(len(it.text)), it.text, blob.Hash(sum.Sum(nil))
	default:
		f.Mode, f.Target, f.Hash = fs.ModeIrregular, it.text, it.hash
	}
	return f
}

// find returns the item at a path, the unknown or hidden item above it, or nil.
func (t *Tree) find(path string) (*item, error) {
	there := &item{kind: kindFolder, hash: t.Root}
	for name := range strings.SplitSeq(path, "/") {
		if there.kind == kindUnknown || there.kind == kindHidden {
			return there, nil
		}
		if there.kind != kindFolder {
			return nil, nil
		}
		items, err := t.folder(there.hash)
		if err != nil {
			return nil, err
		}
		if there = at(items, name); there == nil {
			if isUnstable(items) {
				return &item{kind: kindUnknown, text: string(unsettled)}, nil
			}
			return nil, nil
		}
	}
	return there, nil
}

// at returns the item of a name, or nil.
func at(items []item, name string) *item {
	i, ok := slices.BinarySearchFunc(items, name, func(it item, name string) int { return strings.Compare(it.name, name) })
	if !ok {
		return nil
	}
	return &items[i]
}

// Find returns what is at a path, or nil; times and inode are 0. known is false if something at
// the path or above it could not be recorded, or something above it is hidden. Find fails if an
// object cannot be read.
func (t *Tree) Find(path string) (f *files.Fingerprint, known bool, err error) {
	it, err := t.find(path)
	if err != nil || it != nil && (it.kind == kindUnknown || it.kind == kindHidden && it.name != base(path)) {
		return nil, false, err
	}
	return t.fingerprint(path, it), true, nil
}

// All yields everything in the tree by path, a folder before its contents, but for what [Tree.Skipped]
// returns. The iteration ends after an error.
func (t *Tree) All() iter.Seq2[*files.Fingerprint, error] {
	return func(yield func(*files.Fingerprint, error) bool) {
		err := t.each("", t.Root, 1, func(path string, it *item) error {
			if it.kind != kindUnknown && it.kind != kindHidden && it.kind != kindUnstable && !yield(t.fingerprint(path, it), nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// Skipped returns the paths that could not be recorded or are hidden.
func (t *Tree) Skipped() (skipped []files.Skip, err error) {
	err = t.each("", t.Root, 1, func(path string, it *item) error {
		switch it.kind {
		case kindHidden:
			skipped = append(skipped, files.Skip{Path: path, Reason: files.Hidden, Listing: it.listing()})
		case kindUnknown:
			skipped = append(skipped, files.Skip{Path: path, Reason: files.Reason(it.text), State: it.hash})
		}
		return nil
	})
	return skipped, err
}

// Unstable returns the folders that changed while they were looked at, sorted.
func (t *Tree) Unstable() (folders []string, err error) {
	err = t.each("", t.Root, 1, func(path string, it *item) error {
		if it.kind == kindUnstable {
			folders = append(folders, cmp.Or(strings.TrimSuffix(path, "/"), "."))
		}
		return nil
	})
	slices.Sort(folders)
	return folders, err
}

// errStop ends an iteration.
var errStop = errors.New("stop")

// each calls fn with everything beneath a folder in the byte order of the paths. In this order
// the contents of a folder come after siblings whose names continue with a byte below '/'.
func (t *Tree) each(prefix string, h blob.Hash, depth int, fn func(path string, it *item) error) error {
	items, err := t.folder(h)
	if err == nil && depth > maxDepth {
		err = tooDeep(prefix)
	}
	if err != nil {
		return err
	}
	var open []*item // folders whose contents come later
	until := func(name string) error {
		for len(open) > 0 && (name == "" || open[len(open)-1].name+"/" < name) {
			last := open[len(open)-1]
			open = open[:len(open)-1]
			if err := t.each(prefix+last.name+"/", last.hash, depth+1, fn); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range items {
		it := &items[i]
		if err := until(it.name); err != nil {
			return err
		}
		if err := fn(prefix+it.name, it); err != nil {
			return err
		}
		if it.kind == kindFolder {
			open = append(open, it)
		}
	}
	return until("")
}

func tooDeep(path string) error {
	return damaged(path, fmt.Errorf("its folders are more than %d deep", maxDepth))
}

// maxCached bounds the folders in memory, in bytes, each half of a folderCache.
const maxCached = 8 << 20

// A folderCache caches folders that were read or built. It has two halves: folders that were
// used since the newer half was begun, and those used in the period before.
type folderCache struct {
	mu           sync.Mutex
	newer, older map[blob.Hash][]item // Guarded by mu.
	bytes        int                  // of newer. Guarded by mu.
}

func (c *folderCache) get(h blob.Hash) ([]item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	items, ok := c.newer[h]
	if !ok {
		if items, ok = c.older[h]; ok {
			c.put(h, items)
		}
	}
	return items, ok
}

func (c *folderCache) add(h blob.Hash, items []item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(h, items)
}

// put is add under the lock.
func (c *folderCache) put(h blob.Hash, items []item) {
	if c.newer == nil || c.bytes > maxCached {
		c.older, c.newer, c.bytes = c.newer, map[blob.Hash][]item{}, 0
	}
	c.newer[h] = items
	c.bytes += 64
	for i := range items {
		c.bytes += 128 + len(items[i].name) + len(items[i].text)
	}
}
