package checkpoint

import (
	"bytes"
	"slices"

	"github.com/lopen-dev/lopen/writer/blob"
)

// Missing finds the objects that an entry needs and another place lacks. has returns which of some
// objects that place has; it has all that these name, too. Missing then calls put with each object
// that it lacks, once, with the objects that the object names: an object comes after all of those.
// It asks once for each level of folders. It holds one hash for each object that is missing, and
// returns an error if one that it has to look into cannot be read.
func (s *Store) Missing(e *Entry, has func([]blob.Hash) (map[blob.Hash]bool, error), put func(h blob.Hash, names []blob.Hash) error) error {
	if e == nil || has == nil || put == nil {
		return absent("look for objects", "entry or function")
	}
	m := missing{tree: s.Tree(e.Root), has: has, put: put, names: map[blob.Hash][]blob.Hash{}}
	nodes := e.nodes()
	if err := m.find(nodes[:]); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := m.give(n.hash); err != nil {
			return err
		}
	}
	return nil
}

// missing is a call of Missing.
type missing struct {
	tree *Tree
	has  func([]blob.Hash) (map[blob.Hash]bool, error)
	put  func(h blob.Hash, names []blob.Hash) error

	names map[blob.Hash][]blob.Hash // of each missing object that was not given yet
}

// find sets names, level by level.
func (m *missing) find(level []node) error {
	seen := map[node]bool{}
	for depth := 0; len(level) > 0; depth++ {
		if depth > maxDepth+1 {
			return tooDeep(level[0].hash.String())
		}
		hashes := make([]blob.Hash, len(level))
		for i, n := range level {
			hashes[i] = n.hash
		}
		there, err := m.has(hashes)
		if err != nil {
			return err
		}
		var next []node
		for _, n := range level {
			if there[n.hash] {
				continue
			}
			subs, err := m.tree.below(n)
			if err != nil {
				return err
			}
			all := m.names[n.hash] // a file may have the content of a folder's object
			for _, sub := range subs {
				if sub.kind == kindHidden {
					continue
				}
				all = append(all, sub.hash)
				if !seen[sub] {
					seen[sub], next = true, append(next, sub)
				}
			}
			slices.SortFunc(all, func(a, b blob.Hash) int { return bytes.Compare(a[:], b[:]) })
			m.names[n.hash] = slices.Compact(all)
		}
		level = next
	}
	return nil
}

// give calls put with an object after those that it names.
func (m *missing) give(h blob.Hash) error {
	names, ok := m.names[h]
	if !ok {
		return nil
	}
	delete(m.names, h)
	for _, n := range names {
		if err := m.give(n); err != nil {
			return err
		}
	}
	return m.put(h, names)
}
