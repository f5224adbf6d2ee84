package checkpoint

import (
	"cmp"
	"errors"
	"io/fs"
	"path"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// unsettled is the reason why nothing is known of a path that is not in an unstable folder. No
// object has it.
const unsettled files.Reason = "unsettled"

var unstableItem = item{kind: kindUnstable}

// isUnstable reports whether the items are of a folder that changed while it was looked at.
func isUnstable(items []item) bool { return len(items) > 0 && items[0].kind == kindUnstable }

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// A content identifies what a file or symlink has. Empty files have it in common, so their names
// tell them apart.
type content struct {
	hash blob.Hash
	name string
}

func contentOf(f *files.Fingerprint) content {
	if f.Size > 0 {
		return content{hash: f.Hash}
	}
	return content{f.Hash, base(f.Path)}
}

// unpair retains what a move through an unstable folder may explain. A file that is retained at
// one path because its folder was unstable is neither removed from nor made at another: it would
// be gone, or there twice.
//
// A file that one of the trees missed altogether may be at a path whose folder was stable. It is
// retained where the target has an unstable folder and the file is older than the target, or where
// now an unstable folder has a file of that name.
func (p *planner) unpair(s *Store, target *Entry, tree *Tree) error {
	if target.Unstable == 0 && p.now.Unstable == 0 {
		return nil
	}
	m := mover{p: p, target: target, hidden: p.unsettledContents(), d: descent{root: s.tree}}
	defer m.d.cut(0)
	var err error
	if m.places, err = tree.Unstable(); err != nil {
		return err
	}
	for _, file := range p.order {
		c, ok := p.changes[file]
		if !ok || isDir(c.Old) || isDir(c.New) {
			continue
		}
		moved, err := m.may(&c)
		if err != nil {
			return writer.NewError("plan a rewind", file, writer.NotCommitted, err)
		}
		if moved {
			delete(p.changes, file)
			p.retained[file] = Retained{Path: file, Why: Unsettled}
		}
	}
	return nil
}

// unsettledContents returns what is at the paths that are retained because their folder was
// unstable.
func (p *planner) unsettledContents() map[content]bool {
	all := map[content]bool{}
	for file, k := range p.retained {
		if k.Why != Unsettled {
			continue
		}
		for _, f := range []*files.Fingerprint{p.differ[file].now, p.differ[file].was} {
			if f != nil && !unknown(f) && !isDir(f) {
				all[contentOf(f)] = true
			}
		}
	}
	return all
}

// A mover decides which changes a move through an unstable folder may explain.
type mover struct {
	p      *planner
	target *Entry
	hidden map[content]bool
	places []string // the folders that are unstable now
	d      descent
}

func (m *mover) may(c *Change) (bool, error) {
	switch {
	case c.Old != nil && c.New != nil:
		return false, nil
	case m.hidden[contentOf(cmp.Or(c.Old, c.New))]:
		return true, nil
	case c.New == nil:
		if m.target.Unstable == 0 {
			return false, nil
		}
		return older(&m.d, c.Path, m.target)
	}
	for _, dir := range m.places {
		other := path.Join(dir, base(c.Path))
		if m.p.differ[other].now != nil {
			continue
		}
		if there, err := exists(&m.d, other); there || err != nil {
			return there, err
		}
	}
	return false, nil
}

// older reports whether a file was written before an entry was made.
func older(d *descent, file string, than *Entry) (bool, error) {
	_, info, err := d.stat(file)
	if err != nil {
		return false, tolerable(err)
	}
	return !info.ModTime().After(than.At), nil
}

func exists(d *descent, file string) (bool, error) {
	_, _, err := d.stat(file)
	return err == nil, tolerable(err)
}

// tolerable returns nil for a path that is not there or may not be looked at.
func tolerable(err error) error {
	if unreachable(err) || errors.Is(err, fs.ErrNotExist) || writer.ClassOf(err) == writer.ClassDenied {
		return nil
	}
	return err
}
