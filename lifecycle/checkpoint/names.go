package checkpoint

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// A lister reads the folders of a plan, each once.
type lister struct {
	a     *applier
	temps map[string]bool            // temporary names that an interrupted Apply may have left
	names map[string]map[string]bool // the names in each folder
	known map[string]bool            // whether a path exists under exactly this name
}

// list removes the temporary files of an interrupted Apply from the folders of the plan. It
// also finds paths that have another spelling on the disk. A change that wants such a path
// waits for the removal of the other name, if the plan has that; if not, both are retained.
func (a *applier) list() error {
	a.descent.folded = map[string]string{}
	a.names = map[string]map[string]bool{}
	l := &lister{a: a, temps: a.ownNames(), names: a.names, known: map[string]bool{".": true}}
	for _, c := range a.changes {
		_, err := l.there(c.Path)
		if err != nil && !errors.Is(err, errMounted) && !(a.plan.Permitted && Refused(err)) { // look reports such a path
			return a.failed(c.Path, err)
		}
	}
	if len(a.descent.folded) == 0 {
		return nil
	}
	stay := map[string]bool{}
	for _, c := range a.changes {
		for path := c.Path; path != "." && c.New != nil; path = parent(path) {
			other, folds := a.descent.folded[path]
			if !folds {
				continue
			}
			if i := slices.IndexFunc(a.changes, func(c *Change) bool { return c.Path == other }); i >= 0 && a.changes[i].New == nil {
				a.turns[other] = true
			} else {
				stay[path], stay[other] = true, true
			}
		}
	}
	for _, c := range a.changes {
		if underOne(stay, c.Path) {
			a.keep(c, Blocked)
		}
	}
	return nil
}

// ownNames returns the temporary names of the plan, and of the one that it takes back.
func (a *applier) ownNames() map[string]bool {
	names := map[string]bool{}
	for _, c := range a.changes {
		names[a.tempName(c)] = true
		if a.plan.takes != "" {
			names[a.tempOf(a.plan.takes, c)] = true
		}
	}
	return names
}

// underOne reports whether a path or a folder above it is in a set.
func underOne(set map[string]bool, path string) bool {
	for ; path != "."; path = parent(path) {
		if set[path] {
			return true
		}
	}
	return false
}

// there reports whether a path exists under exactly this name. If another spelling is found, it
// is added to folded.
func (l *lister) there(path string) (bool, error) {
	is, known := l.known[path]
	if known {
		return is, nil
	}
	dir, name := parent(path), base(path)
	is, err := l.there(dir)
	if is && err == nil {
		is, err = l.in(dir, name, path)
	}
	if unreachable(err) {
		is, err = false, nil
	}
	if err == nil {
		l.known[path] = is
	}
	return is, err
}

func (l *lister) in(dir, name, path string) (bool, error) {
	at, err := l.a.descent.to(dir)
	if err == nil && l.names[dir] == nil {
		err = l.read(at, dir)
	}
	if err != nil || l.names[dir][name] {
		return l.names[dir][name], err
	}
	info, err := at.Lstat(name)
	if err != nil {
		return false, err
	}
	for other := range l.names[dir] {
		found, err := at.Lstat(other)
		if err == nil && writer.SameFile(info, found) && (l.a.descent.folded[path] == "" || strings.EqualFold(name, other)) {
			l.a.descent.folded[path] = strings.TrimPrefix(dir+"/"+other, "./")
		}
	}
	return false, nil
}

// read lists a folder and removes the temporary files in it.
func (l *lister) read(at writer.FS, dir string) error {
	entries, err := at.ReadDir(".")
	l.names[dir] = make(map[string]bool, len(entries))
	for _, e := range entries {
		l.names[dir][e.Name()] = true
		if err == nil && l.temps[e.Name()] && !e.IsDir() {
			if err = at.Remove(e.Name()); errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
	}
	return err
}

// Reserved reports whether a path is or is beneath a .git or .lopen, which is never changed.
func Reserved(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(name string) bool {
		return strings.EqualFold(name, ".git") || strings.EqualFold(name, ".lopen")
	})
}
