package checkpoint

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// lookInFolders looks on the disk into the folders that the plan removes, or replaces by a file,
// for a name that no checkpoint has, such as an ignored file. The first one is retained, and its
// folders stay. Of a folder without a recorded name no checkpoint knows: in the place of a file
// it is the reason why the file does not come back, whoever changed the path.
//
// A plan that is made again after a crash finds the same names: Apply removes none of them. The
// temporary files of Apply do not count.
func (p *planner) lookInFolders(s *Store) error {
	d := descent{root: s.tree, crosses: p.crosses}
	defer d.cut(0)
	for _, file := range p.order {
		x := p.differ[file]
		if isDir(x.was) || x.now != nil && !isDir(x.now) || !p.wanted(file) {
			continue
		}
		found, err := p.lookIn(&d, file, x.now == nil)
		if errors.Is(err, errMounted) { // after the entry; Apply retains it
			err = nil
		}
		if err != nil && !unreachable(err) && writer.ClassOf(err) != writer.ClassDenied {
			return writer.NewError("plan a rewind", file, writer.NotCommitted, err)
		}
		if _, ok := p.changes[file]; found && !ok {
			p.retained[file] = Retained{Path: file, Why: Blocked}
		}
	}
	return nil
}

// wanted reports whether a path is changed, or would be if others had not changed it.
func (p *planner) wanted(file string) bool {
	if _, ok := p.changes[file]; ok {
		return true
	}
	k, ok := p.retained[file]
	return ok && p.differ[file].now == nil && (k.Why == Foreign || k.Why == Contested || k.Why == Apart)
}

// lookIn retains the first name in a folder that no checkpoint has, and reports whether there is
// one. If the folder itself is not recorded, it must have exactly this name: on a file system that
// folds names another one may be found, whose folder the plan removes.
func (p *planner) lookIn(d *descent, dir string, unrecorded bool) (found bool, err error) {
	at, err := d.to(dir)
	if err != nil {
		return false, err
	}
	entries, err := at.ReadDir(".")
	if err != nil {
		return false, err
	}
	if unrecorded {
		if at, err = d.to(parent(dir)); err != nil {
			return false, err
		}
		above, err := at.ReadDir(".")
		if err != nil || !slices.ContainsFunc(above, func(e fs.DirEntry) bool { return e.Name() == base(dir) }) {
			return false, err
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		file := dir + "/" + e.Name()
		if p.differ[file].now != nil || strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		k := Retained{Path: file, Why: Ignored}
		switch {
		case Reserved(e.Name()):
			k.Why = Nested
		case !e.IsDir() && !p.found.InForce.Ignored(file, false):
			k.Why = Foreign // it was made after the checkpoint
		}
		p.retained[file] = k
		p.stands = append(p.stands, file)
		return true, nil
	}
	return false, nil
}
