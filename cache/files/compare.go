package files

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer/blob"
)

// A Kind is a way in which a path differs.
type Kind string

// The kinds.
const (
	Created  Kind = "created"
	Modified Kind = "modified" // the content or the type; the mode may differ as well
	Deleted  Kind = "deleted"
	Moved    Kind = "moved"   // the same content at another path, and gone from its own; the mode may differ
	Mode     Kind = "mode"    // the permissions only
	Touched  Kind = "touched" // nothing but times or the inode: not a change, but the newer snapshot spares the next reading
)

// A Change is one difference between two snapshots.
type Change struct {
	Kind     Kind
	Path     string       // where it is; of Deleted, where it was
	From     string       // of Moved: where it was
	Old, New *Fingerprint // nil where there is none; shared with the snapshots, not to be written
}

// Compare returns what differs, sorted by Path. Paths that one of the snapshots
// does not cover are left out.
func Compare(old, next *Snapshot) []Change {
	var changes []Change
	var gone, come []*Fingerprint
	i, j := 0, 0
	for i < len(old.Files) || j < len(next.Files) {
		order := 1
		switch {
		case j == len(next.Files):
			order = -1
		case i < len(old.Files):
			order = strings.Compare(old.Files[i].Path, next.Files[j].Path)
		}
		switch {
		case order < 0:
			if next.Covers(old.Files[i].Path) {
				gone = append(gone, &old.Files[i])
			}
			i++
		case order > 0:
			if old.Covers(next.Files[j].Path) {
				come = append(come, &next.Files[j])
			}
			j++
		default:
			if kind := differ(&old.Files[i], &next.Files[j]); kind != "" {
				changes = append(changes, Change{Kind: kind, Path: next.Files[j].Path, Old: &old.Files[i], New: &next.Files[j]})
			}
			i++
			j++
		}
	}
	changes = append(changes, moves(gone, come)...)
	slices.SortFunc(changes, func(a, b Change) int {
		// A folder that became a file: the deletion of what was in it comes after, by path.
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.From, b.From))
	})
	return changes
}

// differ tells how one path's fingerprints differ, "" when they do not.
func differ(a, b *Fingerprint) Kind {
	switch {
	case !a.sameContent(b):
		return Modified
	case a.Mode != b.Mode:
		return Mode
	case !a.sameStat(b):
		return Touched
	}
	return ""
}

// moves pairs what is gone with what has come by content. The inode chooses among
// several of one content, and alone proves nothing: file systems give the number of
// a deleted file to the next new one. Of empty files all have one content, so they
// are paired by inode only; empty folders not at all.
func moves(gone, come []*Fingerprint) []Change {
	// What is left of the gone ones, by what must be equal. Each goes at most once.
	type inode struct {
		hash blob.Hash
		n    uint64
	}
	byInode, byHash := map[inode]*Fingerprint{}, map[blob.Hash][]*Fingerprint{}
	for _, g := range gone {
		if g.Mode.IsDir() {
			continue
		}
		if g.Inode != 0 {
			byInode[inode{g.Hash, g.Inode}] = g
		}
		byHash[g.Hash] = append(byHash[g.Hash], g)
	}
	paired := make(map[*Fingerprint]*Fingerprint, len(come)) // old by new
	used := make(map[*Fingerprint]bool, len(gone))
	pair := func(c, g *Fingerprint) { paired[c], used[g] = g, true }
	for _, c := range come {
		if g := byInode[inode{c.Hash, c.Inode}]; g != nil && !used[g] && g.sameContent(c) {
			pair(c, g)
		}
	}
	for _, c := range come {
		left := byHash[c.Hash]
		for len(left) > 0 && used[left[0]] {
			left = left[1:]
		}
		if paired[c] == nil && c.Size > 0 && len(left) > 0 && left[0].sameContent(c) {
			pair(c, left[0])
		}
		byHash[c.Hash] = left
	}

	var changes []Change
	for _, c := range come {
		if g := paired[c]; g != nil {
			changes = append(changes, Change{Kind: Moved, Path: c.Path, From: g.Path, Old: g, New: c})
		} else {
			changes = append(changes, Change{Kind: Created, Path: c.Path, New: c})
		}
	}
	for _, g := range gone {
		if !used[g] {
			changes = append(changes, Change{Kind: Deleted, Path: g.Path, Old: g})
		}
	}
	return changes
}
