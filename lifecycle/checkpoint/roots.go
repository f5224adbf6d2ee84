package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// kindRules is the kind of a node with the rules of an entry.
const kindRules = 'r'

// A node is an object with its kind. The kind is needed because a file's content may have the
// bytes of a folder's object and must not be read as a folder.
type node struct {
	kind byte // kindFile for every content, kindHidden for what may have been moved away
	hash blob.Hash
	size int64 // of a content, in bytes; -1 if what names it does not say
}

// nodes returns the two objects that an entry names.
func (e *Entry) nodes() [2]node { return [2]node{{kindRules, e.Rules, -1}, {kindFolder, e.Root, -1}} }

// below returns the objects that a node names.
func (t *Tree) below(n node) (all []node, err error) {
	switch n.kind {
	case kindFolder:
		items, err := t.folder(n.hash)
		for i := range items {
			switch it := &items[i]; it.kind {
			case kindFile:
				all = append(all, node{it.kind, it.hash, it.size})
			case kindFolder, kindHidden:
				all = append(all, node{it.kind, it.hash, -1})
			}
		}
		return all, err
	case kindRules:
		lists, err := readRules(t.blobs, n.hash)
		for _, f := range slices.Concat(lists[0], lists[1]) {
			all = append(all, node{kindFile, f.hash, -1})
		}
		return all, err
	}
	return nil, nil
}

// walk calls visit with a node and, if visit returns true, with the nodes below it.
func (t *Tree) walk(n node, depth int, visit func(node) bool) error {
	if !visit(n) {
		return nil
	}
	all, err := t.below(n)
	if err == nil && depth > maxDepth+1 {
		err = tooDeep(n.hash.String())
	}
	if err != nil {
		return err
	}
	for _, sub := range all {
		if err := t.walk(sub, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

// Objects calls visit with the hash of each object that an entry needs: its rules, its folders
// from the root down, and the contents of its files, for which the tree has the size in bytes; it
// is -1 for others. It descends into an object only if visit
// returned true. It returns an error if a tree cannot be read.
func (s *Store) Objects(e *Entry, visit func(h blob.Hash, size int64) bool) error {
	if e == nil || visit == nil {
		return absent("look for objects", "entry or function")
	}
	for _, n := range e.nodes() {
		if err := s.Tree(e.Root).walk(n, 1, func(n node) bool { return n.kind != kindHidden && visit(n.hash, n.size) }); err != nil {
			return err
		}
	}
	return nil
}

// Roots adds the hashes of all objects that an entry of any chain in dir needs to into, and those of
// what is hidden in its tree. It is for [SweepMoved] and [blob.Store.Sweep], which calls it under its lock. An entry needs its objects until its
// removal is durable. Roots returns an error if a tree cannot be read or a chain is of a newer
// version; then nothing may be swept.
func Roots(dir writer.FS, blobs *blob.Store, into map[blob.Hash]struct{}) error {
	names, err := dir.ReadDir(".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return writer.NewError("look for checkpoints", dir.Name(), writer.NotCommitted, err)
	}
	entries, err := readChains(dir, names)
	if err != nil {
		return err
	}
	tree := &Tree{blobs: blobs, cache: &folderCache{}}
	visited := map[node]bool{}
	visit := func(n node) bool {
		into[n.hash] = struct{}{}
		if n.kind == kindFile || n.kind == kindHidden || visited[n] {
			return false
		}
		visited[n] = true
		return true
	}
	for _, e := range entries {
		for _, n := range e.nodes() {
			if err := tree.walk(n, 1, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// readChains returns the entries of all chains that were not removed. It reads them under the
// chains' lock, so that no unsynced append is in progress. The lock need not be held longer:
// the caller's sweep excludes new entries, and the objects of an entry that is removed
// meanwhile just stay until the next sweep.
func readChains(dir writer.FS, names []fs.DirEntry) (entries []*Entry, err error) {
	lock, err := writer.LockWait(context.Background(), dir, lockName, writer.OwnerOf(os.Getpid(), "sweep of checkpoints"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Unlock() }()
	for _, f := range names {
		if !strings.HasSuffix(f.Name(), chainSuffix) {
			continue
		}
		c, err := readChain(dir, f.Name())
		if err != nil {
			return nil, err
		}
		for _, e := range c.entries {
			if e.Removed == "" {
				entries = append(entries, e)
			}
		}
	}
	return entries, nil
}

// readChain reads a chain and makes what it read durable, because the process that appended it
// may have been killed before its sync. The caller has the chain's lock.
func readChain(dir writer.FS, name string) (*chain, error) {
	path := filepath.Join(dir.Name(), name)
	f, _, err := writer.OpenRegular(dir, "read checkpoints", name, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := writer.ReadText(dir, name, maxChain)
	if err != nil {
		return nil, err
	}
	if err := f.Datasync(); err != nil {
		return nil, writer.NewError("read checkpoints", path, writer.NotDurable, err)
	}
	c, err := parse(data, path, nil)
	if err != nil {
		return nil, damaged(path, err)
	}
	return c, nil
}

// Unseen returns a visit function for [Store.Objects] that is true the first time for each
// hash.
func Unseen(seen map[blob.Hash]struct{}) func(blob.Hash, int64) bool {
	return func(h blob.Hash, _ int64) bool {
		_, known := seen[h]
		seen[h] = struct{}{}
		return !known
	}
}
