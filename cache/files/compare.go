package files

import (
	"cmp"
	"slices"
	"sort"
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
	Moved    Kind = "moved" // the same content at another path, and gone from its own; the mode may differ
	Mode     Kind = "mode"  // the permissions only
)

// A Change is one difference between two snapshots.
type Change struct {
	Kind     Kind
	Path     string       // where it is; of Deleted, where it was
	From     string       // of Moved: where it was
	Old, New *Fingerprint // nil where there is none; shared with the snapshots, not to be written
}

// Compare returns what differs, sorted by Path; times and inodes do not count. Paths that
// one of the snapshots does not cover are left out, and folders that come and go with
// what is recorded in them. A repository within the tree is Modified if its state is known and
// differs: Old and New are irregular then. So it is with a file that is or was too large.
func Compare(old, next *Snapshot) []Change {
	var changes []Change
	var gone, come []*Fingerprint
	each(old, next, func(a, b *Fingerprint) {
		switch {
		case b == nil:
			gone = append(gone, a)
		case a == nil:
			come = append(come, b)
		case !a.sameContent(b):
			changes = append(changes, Change{Kind: Modified, Path: b.Path, Old: a, New: b})
		case a.Mode != b.Mode:
			changes = append(changes, Change{Kind: Mode, Path: b.Path, Old: a, New: b})
		}
	})
	changes = append(changes, Moves(gone, come)...)
	changes = append(changes, stated(old, next)...)
	sortChanges(changes)
	return changes
}

// each calls fn with the fingerprints of each path that both snapshots cover, in order;
// nil is where there is none.
func each(old, next *Snapshot, fn func(a, b *Fingerprint)) {
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
				fn(&old.Files[i], nil)
			}
			i++
		case order > 0:
			if old.Covers(next.Files[j].Path) {
				fn(nil, &next.Files[j])
			}
			j++
		default:
			fn(&old.Files[i], &next.Files[j])
			i++
			j++
		}
	}
}

func sortChanges(changes []Change) {
	slices.SortFunc(changes, func(a, b Change) int {
		// A folder that became a file: the deletion of what was in it comes after, by path.
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.From, b.From))
	})
}

// Moves returns the changes that lead from what is gone to what has come, sorted by Path.
// It pairs files and symlinks by content. The inode chooses among several of one content,
// and alone proves nothing: file systems give the number of a deleted file to the next
// new one. Of empty files all have one content, so they are paired by inode only. A
// folder is reported only when nothing in it is gone, or has come, with it.
func Moves(gone, come []*Fingerprint) []Change {
	gone, come = changed(gone), changed(come)
	paired := pair(gone, come)
	used := make(map[*Fingerprint]bool, len(paired))
	var changes []Change
	for _, c := range come {
		if g := paired[c]; g != nil {
			used[g] = true
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
	sortChanges(changes)
	return changes
}

// pair returns the gone ones by what they became. Each goes at most once.
func pair(gone, come []*Fingerprint) map[*Fingerprint]*Fingerprint {
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
	paired := make(map[*Fingerprint]*Fingerprint, len(come))
	used := make(map[*Fingerprint]bool, len(gone))
	for _, c := range come {
		if g := byInode[inode{c.Hash, c.Inode}]; g != nil && !used[g] && g.sameContent(c) {
			paired[c], used[g] = g, true
		}
	}
	for _, c := range come {
		left := byHash[c.Hash]
		for len(left) > 0 && used[left[0]] {
			left = left[1:]
		}
		if paired[c] == nil && c.Size > 0 && len(left) > 0 && left[0].sameContent(c) {
			paired[c], used[left[0]] = left[0], true
		}
		byHash[c.Hash] = left
	}
	return paired
}

// changed returns what a change is listed of, sorted by path: all but the folders that
// have something in them.
func changed(all []*Fingerprint) []*Fingerprint {
	byPath := func(a, b *Fingerprint) int { return strings.Compare(a.Path, b.Path) }
	if !slices.IsSortedFunc(all, byPath) {
		all = slices.SortedFunc(slices.Values(all), byPath)
	}
	var left []*Fingerprint
	for i, f := range all {
		if f.Mode.IsDir() {
			from := all[i+1:]
			j := sort.Search(len(from), func(j int) bool { return from[j].Path > f.Path+"/" })
			if j < len(from) && strings.HasPrefix(from[j].Path, f.Path+"/") {
				continue
			}
		}
		left = append(left, f)
	}
	return left
}

// Count returns the number of files and symlinks; 0 of nil.
func (s *Snapshot) Count() (n int) {
	if s == nil {
		return 0
	}
	for i := range s.Files {
		if !s.Files[i].Mode.IsDir() {
			n++
		}
	}
	return n
}

// Every returns n if each of n files, of which there are several, is among the changes; else 0.
func Every(n int, changes []Change) int {
	changed := 0
	for _, c := range changes {
		if c.Kind != Created {
			changed++
		}
	}
	if n < 2 || changed < n {
		return 0
	}
	return n
}

// Refresh returns the base of further comparisons with s after next was compared
// with it: what was only touched is as in next. What was created, modified, moved or is
// gone, and what next does not cover, stays as it was in s: it is reported again, until
// somebody takes a new base.
func (s *Snapshot) Refresh(next *Snapshot) *Snapshot {
	touched := map[string]*Fingerprint{}
	each(s, next, func(a, b *Fingerprint) {
		switch {
		case a == nil || b == nil || *a == *b:
		case a.sameContent(b) && a.Mode == b.Mode:
			touched[a.Path] = b
		default:
			// The stat of what differs must not be taken for proof later, when At has moved
			// on: in the racy window the content changed under this very stat.
			f := *a
			f.ModTime, f.ChangeTime, f.Inode = 0, 0, 0
			touched[a.Path] = &f
		}
	})
	out := &Snapshot{At: next.At, Paths: s.Paths, Skipped: s.Skipped, Unstable: stillUnstable(s, next), Files: slices.Clone(s.Files)}
	for i := range out.Files {
		if f := touched[out.Files[i].Path]; f != nil {
			out.Files[i] = *f
		}
	}
	out.learn(s, next)
	return out
}
