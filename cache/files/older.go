package files

import (
	"slices"
	"strings"
	"time"

	"github.com/lopen-dev/lopen/writer"
)

// tickOfBirth is more than a tick of the clock that gives a file the time of its birth.
const tickOfBirth = 50 * time.Millisecond

// A birth is what a file system says of a path's beginning. A time of 0 is not known.
type birth struct {
	time  int64
	inode uint64
	links uint32
	isDir bool
}

// noteOlder notes a path that the base does not have although what is there was there before the base
// was taken: somebody moved it from where nothing is recorded. What was moved from a recorded path,
// and what has another name, is not noted. Nothing is where another machine's clock gives the times.
func (w *walker) noteOlder(path string) {
	if w.opts.Keep == nil || w.base.At.IsZero() {
		return
	}
	b := bornAt(w.root, path)
	if b.time == 0 || b.time >= w.base.At.Add(-tickOfBirth).UnixNano() || !b.isDir && (b.links > 1 || w.base.hasInode(b.inode)) {
		return
	}
	if _, network, err := writer.FSType(w.root.Name()); network || err != nil {
		return
	}
	w.mu.Lock()
	w.older = append(w.older, path)
	w.mu.Unlock()
}

// hasInode reports whether a file of the Snapshot has this inode number.
func (s *Snapshot) hasInode(inode uint64) bool {
	s.inodesOnce.Do(func() {
		s.inodes = map[uint64]struct{}{}
		for i := range s.Files {
			s.inodes[s.Files[i].Inode] = struct{}{}
		}
	})
	_, has := s.inodes[inode]
	return has
}

// olderIn returns the noted paths that a Snapshot has, sorted. A new folder of which all files are noted
// stands for them.
func (w *walker) olderIn(s *Snapshot) (older []string) {
	if len(w.older) == 0 {
		return nil
	}
	noted := map[string]bool{}
	for _, path := range w.older {
		noted[path] = true
	}
	other := map[string]bool{} // folders that were there, or have something that is not noted
	for i := range s.Files {
		if f := &s.Files[i]; f.Mode.IsDir() && w.base.Find(f.Path) == nil || noted[f.Path] {
			continue
		}
		for dir := s.Files[i].Path; !other[dir]; dir = parent(dir) {
			other[dir] = true
		}
	}
	for path := range noted {
		for up := parent(path); !other[up] && up != "."; up = parent(path) {
			path = up
		}
		older = append(older, path)
	}
	slices.SortFunc(older, strings.Compare)
	return slices.Compact(older)
}
