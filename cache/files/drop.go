package files

import (
	"slices"
	"sort"
	"strings"
)

// drop forgets what was found at the paths for which fn is true, and returns the ignore files
// among it. Of the base it looks only at the files from the first to the last of within, if
// that is not nil. No folder is walked meanwhile.
func (w *walker) drop(fn func(path string) bool, within *string) (rules []IgnoreFile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.before == nil {
		w.before = map[string]Fingerprint{}
	}
	had := len(w.found)
	w.found = slices.DeleteFunc(w.found, func(f Fingerprint) bool {
		gone := fn(f.Path)
		if gone {
			w.before[f.Path] = f
		}
		return gone
	})
	w.skips = slices.DeleteFunc(w.skips, func(k Skip) bool { return fn(k.Path) })
	w.mounts = slices.DeleteFunc(w.mounts, fn)
	w.candidates = slices.DeleteFunc(w.candidates, func(c candidate) bool { return fn(c.path) })
	w.count.Add(int64(len(w.found) - had))
	w.rules = slices.DeleteFunc(w.rules, func(f IgnoreFile) bool {
		gone := !f.outside() && fn(f.Path)
		if gone {
			rules = append(rules, f)
			w.ruleBytes -= len(f.Data)
		}
		return gone
	})
	from, to := 0, len(w.base.Files)
	if within != nil {
		from = sort.Search(to, func(i int) bool { return w.base.Files[i].Path >= *within })
		to = sort.Search(to, func(i int) bool { return w.base.Files[i].Path >= *within+"0" }) // '0' is the byte after '/'
	}
	for i := from; i < to; i++ {
		if w.unchanged[i] && fn(w.base.Files[i].Path) {
			w.unchanged[i] = false
			w.count.Add(-1)
		}
	}
	return rules
}

// dropDirect forgets what is in a folder, and not the folders in it. It returns the folder's
// ignore files.
func (w *walker) dropDirect(dir string) []IgnoreFile {
	looked := map[string]bool{}
	for _, l := range w.visits {
		looked[l.at.path] = true
	}
	direct := func(path string) bool { return parent(path) == dir && !looked[path] }
	if dir == "." {
		return w.drop(direct, nil)
	}
	return w.drop(direct, &dir)
}

// dropAll forgets a path and all beneath it, the looks too.
func (w *walker) dropAll(path string, byPath map[string]*visit) {
	in := func(p string) bool { return beneath(p, path) }
	w.drop(in, &path)
	w.visits = slices.DeleteFunc(w.visits, func(l *visit) bool {
		if in(l.at.path) {
			delete(byPath, l.at.path)
			return true
		}
		return false
	})
}

// dropBelow forgets the folders in a folder, but for those that stay.
func (w *walker) dropBelow(dir string, stay map[string]bool, byPath map[string]*visit) {
	var gone []string
	for _, l := range w.visits {
		if l.at.path != "." && parent(l.at.path) == dir && !stay[l.at.path] {
			gone = append(gone, l.at.path)
		}
	}
	for _, path := range gone {
		w.dropAll(path, byPath)
	}
}

// rulesIn are the ignore files that were found in a folder.
func (w *walker) rulesIn(dir string) (in []IgnoreFile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.rules {
		if !f.outside() && parent(f.Path) == dir {
			in = append(in, f)
		}
	}
	return in
}

// hollow returns the files without the folders in which nothing is recorded any more, since some
// were read again. A folder stays that is empty, or unstable.
func (w *walker) hollow(all []Fingerprint, skips []Skip, unstable []string) []Fingerprint {
	if !w.mended {
		return all
	}
	holds := map[string]bool{".": true}
	hold := func(path string) {
		for ; !holds[path]; path = parent(path) {
			holds[path] = true
		}
	}
	for i := range all {
		if !all[i].Mode.IsDir() {
			hold(parent(all[i].Path))
		}
	}
	for i := range skips {
		hold(parent(skips[i].Path))
	}
	for _, c := range w.candidates {
		hold(parent(c.path))
	}
	for _, path := range unstable {
		hold(path)
	}
	for _, l := range w.visits {
		if l.empty {
			hold(l.at.path)
		}
	}
	var left []Fingerprint
	for i := range all {
		if f := &all[i]; !f.Mode.IsDir() || holds[f.Path] {
			left = append(left, *f)
		}
	}
	return left
}

// unsettledAt says whether nothing is known of a path that is not recorded, because the nearest
// folder above it that is recorded changed while it was looked at.
func (s *Snapshot) unsettledAt(path string) bool {
	if len(s.Unstable) == 0 || s.Find(path) != nil {
		return false
	}
	for path != "." {
		path = parent(path)
		if _, ok := slices.BinarySearch(s.Unstable, path); ok {
			return true
		}
		if s.Find(path) != nil {
			return false
		}
	}
	return false
}

// stillUnstable returns the folders that are unstable in both, sorted.
func stillUnstable(a, b *Snapshot) (both []string) {
	for _, path := range a.Unstable {
		if _, ok := slices.BinarySearchFunc(b.Unstable, path, strings.Compare); ok {
			both = append(both, path)
		}
	}
	return both
}

// learn adds what next has where before knew nothing: it was not created since.
func (s *Snapshot) learn(before, next *Snapshot) {
	if len(before.Unstable) == 0 {
		return
	}
	for _, f := range next.Files {
		if before.unsettledAt(f.Path) {
			s.Files = append(s.Files, f)
		}
	}
	slices.SortFunc(s.Files, func(a, b Fingerprint) int { return strings.Compare(a.Path, b.Path) })
}
