package checkpoint

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
	"github.com/lopen-dev/lopen/writer/blob"
)

// movedDir is the folder in .lopen to which rewinds move what is hidden. A name in it is the hash of
// the listing, the begin of the ID of the rewind's entry, and the number of bytes. An entry needs it
// whose tree has that hash.
const movedDir = "moved"

// A movedName is a name in movedDir.
type movedName struct {
	name  string
	hash  blob.Hash
	bytes int64
}

// movedAs returns the name that Apply gives what is hidden. The next Apply of the plan gives the same.
func (a *applier) movedAs(f *files.Fingerprint) string {
	return nameOfMoved(f, a.id)
}

// nameOfMoved returns the name in movedDir of what the rewind with this entry before it moves away.
func nameOfMoved(f *files.Fingerprint, id string) string {
	return fmt.Sprintf("%s-%.16s-%d", f.Hash, id, f.Size)
}

// movedNames returns what was moved away. root is the .lopen folder; nil has none.
func movedNames(root writer.FS) (all []movedName, dir writer.FS, err error) {
	if root == nil {
		return nil, nil, nil
	}
	dir, err = writer.OpenDir(root, movedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	for _, e := range entries {
		parts := strings.Split(e.Name(), "-")
		sum, err := hex.DecodeString(parts[0])
		if err != nil || len(sum) != len(blob.Hash{}) || len(parts) != 3 {
			continue
		}
		if n, err := strconv.ParseInt(parts[2], 10, 64); err == nil && n >= 0 {
			all = append(all, movedName{e.Name(), blob.Hash(sum), n})
		}
	}
	return all, dir, nil
}

// MovedBytes returns the size of what rewinds moved away, in bytes. root is the .lopen folder.
func MovedBytes(root writer.FS) (n int64, err error) {
	all, dir, err := movedNames(root)
	if dir != nil {
		err = errors.Join(err, dir.Close())
	}
	for _, m := range all {
		n += m.bytes
	}
	return n, err
}

// SweepMoved removes what rewinds moved away and no entry needs, durably, and returns its size.
// needed is what [Roots] returned. What cannot be removed stays.
func SweepMoved(root writer.FS, needed map[blob.Hash]struct{}) (freed int64, err error) {
	all, dir, err := movedNames(root)
	if dir == nil {
		return 0, err
	}
	defer dir.Close()
	for _, m := range all {
		if _, is := needed[m.hash]; is {
			continue
		}
		if rerr := removeMoved(dir, m.name); rerr == nil {
			freed += m.bytes
		} else {
			err = errors.Join(err, rerr)
		}
	}
	if freed > 0 {
		err = errors.Join(err, dir.SyncDir("."))
	}
	return freed, err
}

// removeMoved removes a name with all that is in it. Its folders may forbid that.
func removeMoved(dir writer.FS, name string) error {
	err := dir.RemoveAll(name)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	d := ownDescent(dir)
	d.unlock(name)
	d.cut(0)
	return dir.RemoveAll(name)
}

// ownDescent returns a descent that crosses no mount.
func ownDescent(dir writer.FS) *descent { return &descent{root: dir, crosses: map[string]bool{}} }

// unlock makes the folders beneath a path such that names in them can be removed, as far as possible.
func (c *descent) unlock(path string) {
	dir, info, err := c.stat(path)
	if err != nil || !info.IsDir() {
		return
	}
	if info.Mode()&letsIn != letsIn {
		_ = dir.Chmod(base(path), info.Mode()|letsIn)
	}
	at, err := c.to(path)
	if err != nil {
		return
	}
	entries, _ := at.ReadDir(".")
	for _, e := range entries {
		if e.IsDir() {
			c.unlock(path + "/" + e.Name())
		}
	}
}

// lookForMoved retains what is to be moved back and is not there any more. What an Apply that was
// interrupted moved back already stands at its path.
func (p *planner) lookForMoved(s *Store) error {
	all, dir, err := movedNames(s.opts.Lopen)
	if dir != nil {
		err = errors.Join(err, dir.Close())
	}
	if err != nil {
		return writer.NewError("plan a rewind", movedDir, writer.NotCommitted, err)
	}
	d := descent{root: s.tree}
	defer d.cut(0)
	there := map[blob.Hash]bool{}
	for _, m := range all {
		there[m.hash] = true
	}
	for path, c := range p.changes {
		if c.Kind != KindBack || there[c.New.Hash] {
			continue
		}
		if _, _, err := d.stat(path); err != nil {
			why, err := s.whyNotThere(c.New, p.now.Number)
			if err != nil {
				return err
			}
			delete(p.changes, path)
			p.retained[path] = Retained{Path: path, Why: why}
		}
	}
	return nil
}

// whyNotThere returns why what was hidden is not in movedDir: no rewind before an entry moved it
// there, or it is lost.
func (s *Store) whyNotThere(f *files.Fingerprint, before uint64) (Why, error) {
	all, err := s.movedAway(before)
	if slices.ContainsFunc(all, func(m Moved) bool { return m.Hash == f.Hash }) {
		return Lost, err
	}
	return Unstored, err
}

// moveAll moves what is hidden, away or back.
func (a *applier) moveAll(kind Kind, move func(*Change) (Why, error)) error {
	for _, c := range a.moves {
		if c.Kind != kind || a.over[c] {
			continue
		}
		a.touched[parent(c.Path)] = true
		if _, err := a.descent.moved(); err != nil {
			return a.failed(c.Path, err)
		}
		why, err := move(c)
		switch {
		case errors.Is(err, errMounted):
			a.keep(c, Mounted)
		case Refused(err): // as if the path were another disk's: the rest of the plan does not need it
			a.denied = append(a.denied, c.Path)
			a.retain(c, Retained{Path: c.Path, Why: Fixed, Cause: cause(err)})
		case unreachable(err): // somebody renamed it in this moment
			a.keep(c, Meanwhile)
		case err != nil:
			return a.failed(c.Path, err)
		case why != "":
			a.keep(c, why)
		}
	}
	return nil
}

func (a *applier) moveAway() error { return a.hoarding(a.moveAll(KindAway, a.away)) }
func (a *applier) moveBack() error { return a.hoarding(a.moveAll(KindBack, a.back)) }

// A hoard is movedDir while an Apply moves something into it or out of it.
type hoard struct {
	dir   writer.FS
	names map[blob.Hash][]string
	got   map[string]bool // folders of the tree into which something was moved back
}

// openHoard opens movedDir once. It returns nil if there is none.
func (a *applier) openHoard() (*hoard, error) {
	if a.hoard != nil {
		return a.hoard, nil
	}
	all, dir, err := movedNames(a.s.opts.Lopen)
	if dir == nil {
		return nil, err
	}
	a.hoard = &hoard{dir: dir, names: map[blob.Hash][]string{}, got: map[string]bool{}}
	for _, m := range all {
		a.hoard.names[m.hash] = append(a.hoard.names[m.hash], m.name)
	}
	return a.hoard, nil
}

// hoarding ends a step that moved something into movedDir or out of it, or found it moved by an Apply
// that was interrupted: it makes the names durable, first where they are now.
func (a *applier) hoarding(err error) error {
	h := a.hoard
	if a.hoard = nil; h == nil {
		return err
	}
	defer h.dir.Close()
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(h.got)) {
		dir, err := a.descent.to(path)
		if err == nil {
			err = dir.SyncDir(".")
		}
		if err != nil && !unreachable(err) { // somebody renamed it
			return a.failed(path, err)
		}
	}
	return a.failed(".lopen/"+movedDir, h.dir.SyncDir("."))
}

// away moves one path away. If there is nothing, it was moved already, or somebody removed it.
func (a *applier) away(c *Change) (Why, error) {
	dir, err := a.descent.to(parent(c.Path))
	if unreachable(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	l, used, err := a.measure(dir, c)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err := a.openHoard()
		return "", err
	case used || err != nil:
		return "", err
	case l.Hash != c.Old.Hash:
		return Meanwhile, nil
	case l.Fixed || a.s.opts.Lopen == nil:
		return Fixed, nil
	}
	if a.hoard == nil {
		if err := writer.MkdirDurable(a.s.opts.Lopen, movedDir); err != nil {
			return "", err
		}
	}
	to, err := a.openHoard()
	if err != nil {
		return "", err
	}
	a.descent.forget(c.Path)
	if dir, err = a.descent.again(parent(c.Path)); err != nil {
		return "", err
	}
	err = writer.RenameTo(dir, base(c.Path), to.dir, a.movedAs(c.Old))
	if errors.Is(err, fs.ErrExist) { // moved away by this plan, and made again
		return Meanwhile, nil
	}
	if err != nil {
		return "", err
	}
	a.s.grown.Add(c.Old.Size)
	return "", nil
}

// measure lists what is to be moved away, and keeps it if somebody has a file of it open for writing:
// the descriptor would stay valid, and the file would be gone from its path. Only files whose inode
// number some process has open are asked for.
func (a *applier) measure(dir writer.FS, c *Change) (l files.Listing, used bool, err error) {
	var perhaps []string
	l, err = files.Measure(a.ctx, dir, base(c.Path), c.Path, func(rel string, inode uint64) {
		if a.openers.Any(inode) {
			perhaps = append(perhaps, c.Path+rel)
		}
	})
	for _, path := range perhaps {
		who, is, uerr := a.user(path)
		if is && path != c.Path {
			who = cmp.Or(who, "another program") + ": " + path
		}
		if is && a.inUse(c, answer{c, who, is}) {
			return l, true, err
		}
		err = errors.Join(err, uerr)
	}
	return l, false, err
}

// back moves one path back.
func (a *applier) back(c *Change) (Why, error) {
	dir, err := a.descent.to(parent(c.Path))
	if unreachable(err) {
		return Blocked, nil
	}
	if err != nil {
		return "", err
	}
	switch l, err := files.Measure(a.ctx, dir, base(c.Path), c.Path, nil); {
	case err == nil && l.Hash == c.New.Hash:
		if h, err := a.openHoard(); h == nil {
			return "", err
		}
		a.hoard.got[parent(c.Path)] = true // its name may not be durable
		return "", nil
	case err == nil:
		return Meanwhile, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	from, err := a.openHoard()
	if from == nil {
		return Lost, err
	}
	for i, name := range from.names[c.New.Hash] {
		l, err := files.Measure(a.ctx, from.dir, name, c.Path, nil)
		if err != nil || l.Hash != c.New.Hash { // a part of it was removed, or it was moved back just now
			continue
		}
		if err := a.reach(parent(c.Path)); err != nil {
			return "", err
		}
		if dir, err = a.descent.again(parent(c.Path)); err != nil {
			return "", err
		}
		if err = writer.RenameTo(from.dir, name, dir, base(c.Path)); err == nil {
			from.got[parent(c.Path)] = true
			from.names[c.New.Hash] = slices.Delete(from.names[c.New.Hash], i, i+1)
		}
		return "", err
	}
	return Lost, nil
}

// reach makes the names on the way to a folder durable, so that what is moved into it is not lost
// with a folder that Apply has made.
func (a *applier) reach(folder string) error {
	for ; folder != "." && !a.reached[folder]; folder = parent(folder) {
		dir, err := a.descent.to(parent(folder))
		if err == nil {
			err = dir.SyncDir(".")
		}
		if err != nil {
			return err
		}
		if a.reached == nil {
			a.reached = map[string]bool{}
		}
		a.reached[folder] = true
	}
	return nil
}

// standingMoved is standing for what is hidden.
func (a *applier) standingMoved(c *Change) state {
	want := c.Old // where it stands
	there, gone := pending, finished
	if c.Kind == KindBack {
		want, there, gone = c.New, finished, pending
	}
	dir, err := a.descent.to(parent(c.Path))
	if unreachable(err) {
		return gone
	}
	if err != nil {
		return altered
	}
	switch l, err := files.Measure(a.ctx, dir, base(c.Path), c.Path, nil); {
	case errors.Is(err, fs.ErrNotExist):
		return gone
	case err == nil && l.Hash == want.Hash:
		return there
	}
	return altered
}
