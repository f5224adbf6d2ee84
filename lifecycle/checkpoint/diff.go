package checkpoint

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer/blob"
)

// Diff returns the changes from a to b, sorted by path, as [files.Compare] does. It finds
// moves. It leaves out folders, and paths that one of the trees could not record, but for a
// repository whose state is known in both and differs. What is hidden is one change, whose fingerprint
// has [files.ModeHidden]. It reads only folders that differ.
func Diff(a, b *Tree) (diff []files.Change, err error) {
	if a == nil || b == nil {
		return nil, absent("compare checkpoints", "tree")
	}
	var gone, come []*files.Fingerprint
	err = paths(a, b, func(path string, old, next *files.Fingerprint) error {
		kind := files.Modified
		switch {
		case unseen(path, old, next):
			return nil
		case inHidden(path, old, next):
			return nil
		case hidden(old) || hidden(next):
			kind = kindOfHidden(old, next)
		case next == nil:
			gone = append(gone, old)
			return nil
		case old == nil:
			come = append(come, next)
			return nil
		case old.Mode.Type() == next.Mode.Type() && old.Hash == next.Hash:
			kind = files.Mode
		}
		diff = append(diff, files.Change{Kind: kind, Path: path, Old: old, New: next})
		return nil
	})
	if err != nil {
		return nil, err
	}
	diff = append(diff, files.Moves(gone, come)...)
	slices.SortFunc(diff, func(a, b files.Change) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.From, b.From))
	})
	return diff, nil
}

// unseen reports whether it is not known if a path changed, because a tree could not record it.
func unseen(path string, old, next *files.Fingerprint) bool {
	return (unknown(old) || unknown(next)) && !moved(old, next) && !grown(path, old, next) && !grown(path, next, old)
}

// kindOfHidden is the kind of a change of which one side is hidden.
func kindOfHidden(old, next *files.Fingerprint) files.Kind {
	switch {
	case next == nil:
		return files.Deleted
	case old == nil:
		return files.Created
	}
	return files.Modified
}

// paths calls fn with each path that differs from a to b, a folder before its contents, and
// without pairing moves. old and next are nil if there is nothing. For a path that a tree could
// not record, and for every path beneath it that the other tree has, fn gets a fingerprint
// for which [unknown] is true, whose Path is the unrecorded path. The same holds for what is [hidden]. A path that neither tree
// could record does not differ, but for such a repository.
func paths(a, b *Tree, fn func(path string, old, next *files.Fingerprint) error) error {
	return pathsIn("", [2]side{{tree: a, root: a.Root}, {tree: b, root: b.Root}}, 1, fn)
}

// moved reports whether two fingerprints are of one repository within the tree in two states.
func moved(a, b *files.Fingerprint) bool {
	zero := blob.Hash{}
	return unknown(a) && unknown(b) && a.Path == b.Path && a.Hash != zero && b.Hash != zero && a.Hash != b.Hash
}

// grown reports whether a file is too large to be recorded at a path where the other tree has
// nothing, or something that it could record.
func grown(path string, from, to *files.Fingerprint) bool {
	return unknown(to) && to.Path == path && to.Target == string(files.TooLarge) && to.Hash != (blob.Hash{}) && !unknown(from)
}

// blind reports whether two fingerprints are unknown, and not of a repository that moved.
func blind(a, b *files.Fingerprint) bool { return unknown(a) && unknown(b) && !moved(a, b) }

// A side is a folder of one of two trees that are compared.
type side struct {
	tree    *Tree
	root    blob.Hash          // zero if the tree has no such folder
	unknown *files.Fingerprint // this folder, or one above it, if it is hidden or could not be recorded
	// unstable says that the folder changed while it was looked at.
	unstable bool
}

// pathsIn is paths for the folders of one path, which ends with '/' unless it is empty.
func pathsIn(prefix string, sides [2]side, depth int, fn func(path string, old, next *files.Fingerprint) error) error {
	if sides[0].root == sides[1].root {
		return nil
	}
	if depth > maxDepth {
		return tooDeep(prefix)
	}
	var left [2][]item
	for n := range sides {
		s := &sides[n]
		var err error
		if left[n], err = s.tree.folder(s.root); err != nil {
			return err
		}
		if isUnstable(left[n]) {
			left[n], s.unstable = left[n][1:], true
		}
	}
	for len(left[0])+len(left[1]) > 0 {
		name, pair := nextPair(&left)
		if pair[0] != nil && pair[1] != nil && *pair[0] == *pair[1] {
			continue
		}
		path := prefix + name
		var below [2]side
		var found [2]*files.Fingerprint
		for n, it := range pair {
			found[n], below[n] = sides[n].step(path, it)
		}
		if blind(found[0], found[1]) {
			continue
		}
		if !same(found[0], found[1]) {
			if err := fn(path, found[0], found[1]); err != nil {
				return err
			}
		}
		if err := pathsIn(path+"/", below, depth+1, fn); err != nil {
			return err
		}
	}
	return nil
}

// step returns what a side has at a path, and the side of the folder there.
func (s side) step(path string, it *item) (*files.Fingerprint, side) {
	found := s.tree.fingerprint(path, it)
	below := side{tree: s.tree, unknown: s.unknown}
	switch {
	case s.unknown != nil:
		found = s.unknown
	case it != nil && it.kind == kindFolder:
		below.root = it.hash
	case it == nil && s.unstable:
		found = &files.Fingerprint{Path: path, Mode: fs.ModeIrregular, Target: string(unsettled)}
		below.unknown = found
	case unknown(found) || hidden(found):
		below.unknown = found
	}
	return found, below
}

// nextPair takes the items of the first name from two sorted lists. An item is nil if its list
// lacks the name.
func nextPair(left *[2][]item) (name string, pair [2]*item) {
	take := [2]bool{len(left[0]) > 0, len(left[1]) > 0}
	if take[0] && take[1] {
		order := strings.Compare(left[0][0].name, left[1][0].name)
		take = [2]bool{order <= 0, order >= 0}
	}
	for n := range left {
		if take[n] {
			pair[n], left[n] = &left[n][0], left[n][1:]
			name = pair[n].name
		}
	}
	return name, pair
}
