package files

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer/blob"
)

// skipLarge notes a file that is too large to be read, with its stat: it shows that the file was
// changed.
func (w *walker) skipLarge(f Fingerprint) {
	w.addSkip(Skip{Path: f.Path, Reason: TooLarge, State: f.state()})
}

// state is the State of a file that is too large.
func (f *Fingerprint) state() blob.Hash {
	return sha256.Sum256(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(f.Size)), uint64(f.ModTime)))
}

// stated returns the changes of paths of which one of two snapshots has no more than a State: of a
// repository within the tree if it is known in both, and of a file that is too large also if it was
// smaller in the other one, or was not there.
func stated(old, next *Snapshot) (changes []Change) {
	for i := range next.Skipped {
		b := next.Skipped[i].stated()
		if b == nil {
			continue
		}
		if k := old.skip(b.Path); k != nil {
			if a := k.stated(); a != nil && a.Target == b.Target && a.Hash != b.Hash {
				changes = append(changes, Change{Kind: Modified, Path: b.Path, Old: a, New: b})
			}
		} else if b.Target == string(TooLarge) && old.Covers(b.Path) {
			switch a := old.Find(b.Path); {
			case a == nil:
				changes = append(changes, Change{Kind: Created, Path: b.Path, New: b})
			case a.state() != b.Hash: // else only the bound differs
				changes = append(changes, Change{Kind: Modified, Path: b.Path, Old: a, New: b})
			}
		}
	}
	return append(changes, noLongerLarge(old, next)...)
}

// noLongerLarge returns the changes of files that were too large and are not any more.
func noLongerLarge(old, next *Snapshot) (changes []Change) {
	for i := range old.Skipped {
		a := old.Skipped[i].stated()
		if a == nil || a.Target != string(TooLarge) || !next.Covers(a.Path) {
			continue
		}
		switch b := next.Find(a.Path); {
		case b == nil:
			changes = append(changes, Change{Kind: Deleted, Path: a.Path, Old: a})
		case b.state() != a.Hash:
			changes = append(changes, Change{Kind: Modified, Path: a.Path, Old: a, New: b})
		}
	}
	return changes
}

// skip returns the Skip of a path, or nil.
func (s *Snapshot) skip(path string) *Skip {
	i, ok := slices.BinarySearchFunc(s.Skipped, path, func(k Skip, p string) int { return strings.Compare(k.Path, p) })
	if !ok {
		return nil
	}
	return &s.Skipped[i]
}
