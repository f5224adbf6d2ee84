package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// A database is the changes of one database's files.
type database struct {
	paths   []string // of its files that are in the plan or on the disk
	changes []*Change
	moves   []*Change // of what is hidden
	begun   bool      // one of the files was changed
	held    string    // the file because of which all stay, or ""
}

// filesOf returns the paths that the files of a database have.
func filesOf(path string) []string {
	all := []string{path}
	for _, suffix := range files.Beside {
		all = append(all, path+suffix)
	}
	return all
}

// signatures are what SQLite's files begin with, by the ends of their names.
var signatures = map[string][]string{
	"":         {"SQLite format 3\x00"},
	"-wal":     {"\x37\x7f\x06\x82", "\x37\x7f\x06\x83"},
	"-journal": {"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"},
}

// isDatabase reports whether files that have the names of a database's are one: one of them begins
// as SQLite's does, on the disk or as the plan makes it. An encrypted database shows it by its log.
// wanted returns what the plan makes of a path, or nil.
func (s *Store) isDatabase(d *descent, path string, wanted func(string) *files.Fingerprint) bool {
	for suffix, all := range signatures {
		heads := []string{s.headOnDisk(d, path+suffix)}
		if f := wanted(path + suffix); isFile(f) {
			heads = append(heads, s.headStored(f))
		}
		for _, head := range heads {
			if slices.ContainsFunc(all, func(with string) bool { return strings.HasPrefix(head, with) }) {
				return true
			}
		}
	}
	return false
}

// headOnDisk returns the first bytes of a regular file, and "" if it cannot be read.
func (s *Store) headOnDisk(d *descent, path string) string {
	dir, info, err := d.stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, _, err := writer.OpenRegular(dir, "read", base(path), os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	return headOf(f)
}

// headStored returns the first bytes of a content, and "" if it cannot be read.
func (s *Store) headStored(f *files.Fingerprint) string {
	r, err := s.blobs.OpenSized(f.Hash, f.Size)
	if err != nil {
		return ""
	}
	defer r.Close()
	return headOf(r)
}

func headOf(r io.Reader) string {
	head := make([]byte, 16)
	n, _ := io.ReadFull(r, head) // of a shorter one what it has
	return string(head[:n])
}

// Ask returns the changes of a plan that Apply would not make now because somebody has the path
// open for writing, or because another file of the same database stays, or, if the plan tolerates
// that, because the attributes of the path or its folder forbid the change. If it does not, the
// error is the one with which Apply would refuse the plan. It changes nothing, and so it does not
// find a refusal that only a try meets.
func (s *Store) Ask(ctx context.Context, p *Plan) (Applied, error) {
	if p == nil || ctx == nil {
		return Applied{}, absent("ask who has files open", "plan or context")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.applier(ctx, p)
	defer a.descent.cut(0)
	err := a.ask()
	if err == nil {
		err = a.refuse()
	}
	if err != nil {
		return a.out, fmt.Errorf("%w: %w", ErrUnchanged, err)
	}
	for _, c := range a.changes {
		if a.over[c] {
			continue
		}
		if _, err := a.opened(c); err != nil {
			return a.out, a.failed(c.Path, err)
		}
	}
	for _, c := range a.moves {
		if dir, err := a.descent.to(parent(c.Path)); c.Kind == KindAway && err == nil {
			_, _, _ = a.measure(dir, c) // Apply returns the error
		}
	}
	err = a.askDatabases()
	return a.out, err
}

// askDatabases keeps, before the first change, databases of which a file stays. What somebody has
// open is asked for each path directly before it is changed: see spared.
func (a *applier) askDatabases() error {
	if err := a.group(); err != nil {
		return err
	}
	for _, c := range slices.Concat(a.changes, a.moves) {
		if d := a.databases[c.Path]; d != nil && d.held == "" {
			if err := a.holds(d); err != nil {
				return a.failed(c.Path, err)
			}
		}
	}
	return nil
}

// takes reports whether a change takes the content of a regular file away.
func (a *applier) takes(c *Change) bool {
	return isFile(c.Old) && (c.New == nil || isDir(c.New) || a.stages(c))
}

func isFile(f *files.Fingerprint) bool { return f != nil && f.Mode.IsRegular() }

// opened reports whether somebody has the file open for writing that a change takes away, and
// keeps it then.
func (a *applier) opened(c *Change) (bool, error) {
	if !a.takes(c) {
		return false, nil
	}
	who, is, err := a.user(c.Path)
	return err == nil && a.inUse(c, answer{c, who, is}), err
}

// inUse keeps a file that somebody has open, and reports whether it does. If the plan takes such
// files too, it notes once who has it open.
func (a *applier) inUse(c *Change, of answer) bool {
	if !of.is {
		return false
	}
	k := Retained{Path: c.Path, Why: InUse, By: of.who}
	if a.plan.InUse {
		if !a.warned[c] {
			a.out.Taken = append(a.out.Taken, k)
		}
		a.warned[c] = true
		return false
	}
	a.retain(c, k)
	return true
}

// An answer is whether somebody has the file of a change open for writing, and who. It is asked with
// the descriptor by which the content was read, so that the path is not opened once more.
type answer struct {
	of  *Change
	who string
	is  bool
}

// user returns who has a path open for writing, and whether anybody has.
func (a *applier) user(path string) (string, bool, error) {
	dir, err := a.descent.to(parent(path))
	if barred(err) || a.descent.folded[path] != "" {
		return "", false, nil
	}
	who, is := "", false
	if err == nil {
		who, is, err = a.openers.Of(dir, base(path))
	}
	if Refused(err) {
		err = nil // the change itself says so
	}
	return who, is, err
}

// group finds the databases of which more than one file is in the plan or on the disk. Files that
// only have such names are no database.
func (a *applier) group() error {
	of := map[string]*Change{}
	for _, c := range slices.Concat(a.changes, a.moves) {
		if l, hidden := c.Old.Hidden(); isFile(c.Old) || isFile(c.New) || !isDir(c.Old) && !isDir(c.New) && (!hidden || !l.Folder) {
			of[c.Path] = c
		}
	}
	for _, c := range slices.Concat(a.changes, a.moves) {
		if of[c.Path] != c || a.databases[c.Path] != nil {
			continue
		}
		d, err := a.database(files.DatabaseOf(c.Path), of)
		if err != nil {
			return err
		}
		for _, path := range d.paths {
			a.databases[path] = d
		}
	}
	return nil
}

// database returns the database with this path, without paths if there is none. of are the changes
// of files.
func (a *applier) database(path string, of map[string]*Change) (*database, error) {
	d := &database{}
	for _, path := range filesOf(path) {
		c := of[path]
		switch {
		case c == nil:
			if is, err := a.isFile(path); err != nil {
				return nil, a.failed(path, err)
			} else if !is && !a.plan.retains(path) { // one that was there at the target is retained
				continue
			}
		case c.moves():
			d.moves = append(d.moves, c)
		default:
			d.changes = append(d.changes, c)
		}
		d.paths = append(d.paths, path)
	}
	if len(d.paths) > 1 && a.s.isDatabase(&a.descent, path, func(path string) *files.Fingerprint {
		if c := of[path]; c != nil {
			return c.New
		}
		return nil
	}) {
		return d, nil
	}
	return &database{}, nil
}

// barred reports whether an error means that a path does not exist, or is on a mount that the
// plan does not know.
func barred(err error) bool { return unreachable(err) || errors.Is(err, errMounted) }

// isFile reports whether there is a regular file.
func (a *applier) isFile(path string) (bool, error) {
	if names := a.names[parent(path)]; names != nil && !names[base(path)] {
		return false, nil
	}
	_, info, err := a.descent.stat(path)
	if barred(err) || writer.ClassOf(err) == writer.ClassDenied {
		return false, nil
	}
	return err == nil && info.Mode().IsRegular(), err
}

// holds keeps all files of a database if one of them stays: because it is kept for any reason, or
// because somebody has it open for writing, also if the plan does not change it.
func (a *applier) holds(d *database) error {
	for _, path := range d.paths {
		stays := a.stays[path] || a.plan.retains(path)
		if !stays && !a.plan.InUse {
			var err error
			if _, stays, err = a.user(path); err != nil {
				return err
			}
		}
		if stays {
			return a.hold(d, path)
		}
	}
	return nil
}

// hold keeps the files of a database because one of them stays.
func (a *applier) hold(d *database, by string) error {
	d.held = by
	for _, c := range d.changes {
		if a.over[c] {
			continue
		}
		if is, err := a.opened(c); is || err != nil { // it names who has it open
			if err != nil {
				return err
			}
			continue
		}
		a.retain(c, Retained{Path: c.Path, Why: Together, By: by})
	}
	for _, c := range d.moves {
		a.retain(c, Retained{Path: c.Path, Why: Together, By: by})
	}
	return nil
}

// spared is called directly before a change takes a file away or gives it another content. It
// reports whether the change must not be made, and keeps the path then. All files of a database
// are looked at before the first of them is changed. Then those that go are removed first: a log
// that is left beside another database than its own would be taken for that one's.
func (a *applier) spared(c *Change) (bool, error) {
	d := a.databases[c.Path]
	if d != nil && !d.begun && d.held == "" {
		if err := a.begins(d, c); err != nil {
			return false, err
		}
	}
	if a.over[c] {
		return true, nil
	}
	if a.asked.of == c { // state has just read it
		return a.inUse(c, a.asked), nil
	}
	return a.opened(c)
}

func (a *applier) begins(d *database, first *Change) error {
	for _, c := range d.changes {
		if a.over[c] {
			continue
		}
		if st, err := a.state(c); err != nil {
			return err
		} else if st == altered {
			a.keep(c, Meanwhile)
		}
	}
	if err := a.holds(d); err != nil || d.held != "" {
		return err
	}
	d.begun = true
	return a.each(d.changes, func(c *Change) bool { return c != first && c.New == nil }, a.removeOne)
}

// retain keeps the path of a change.
func (a *applier) retain(c *Change, k Retained) {
	if a.over[c] {
		return
	}
	a.over[c], a.stays[c.Path] = true, true
	a.out.Retained = append(a.out.Retained, k)
	a.out.Taken = slices.DeleteFunc(a.out.Taken, func(t Retained) bool { return t.Path == k.Path })
}

// blocks reports whether the path of a change leads to or through one that somebody has open, or
// that stays with such a one.
func (a *applier) blocks(c *Change) bool {
	return slices.ContainsFunc(a.out.Retained, func(k Retained) bool {
		return (k.Why == InUse || k.Why == Together) && (strings.HasPrefix(k.Path, c.Path+"/") || strings.HasPrefix(c.Path, k.Path+"/"))
	})
}

// lookBeside retains, of the databases that the plan changes, the files that stand on the disk and
// that no checkpoint has, such as an ignored log, and those that were not asked for. Apply keeps the
// others because of them, and because of an ignored log that was there at the target and is gone. Of
// other databases an ignored file is nothing to name.
func (p *planner) lookBeside(s *Store, tree *Tree) error {
	d := descent{root: s.tree}
	defer d.cut(0)
	for _, file := range p.order {
		p.dropBeside(file)
		if c, ok := p.changes[file]; !ok || !isFile(c.Old) && !isFile(c.New) {
			continue
		}
		var stay []Retained
		for _, path := range filesOf(files.DatabaseOf(file)) {
			k, err := p.beside(&d, tree, path)
			if err != nil {
				return err
			}
			if k.Why != "" {
				stay = append(stay, k)
			}
		}
		if stay == nil || !s.isDatabase(&d, files.DatabaseOf(file), func(path string) *files.Fingerprint { return p.differ[path].was }) {
			continue
		}
		for _, k := range stay {
			p.retained[k.Path] = k
			if k.Why != Unasked {
				p.stands = append(p.stands, k.Path)
			}
		}
	}
	return nil
}

// dropBeside names an ignored file of a database no more if that does not change.
func (p *planner) dropBeside(file string) {
	of, d := files.DatabaseOf(file), p.differ[file]
	recorded := func(f *files.Fingerprint) bool { return f != nil && !unknown(f) }
	if of == file || p.retained[file].Why != Ignored || recorded(d.now) || recorded(d.was) {
		return
	}
	if _, goes := p.changes[of]; !goes {
		delete(p.retained, file)
	}
}

// beside returns why a file of a database stays that the plan neither changes nor retains.
func (p *planner) beside(d *descent, tree *Tree, path string) (k Retained, err error) {
	k.Path = path
	_, differs := p.differ[path]
	_, goes := p.changes[path]
	_, stays := p.retained[path]
	if differs || goes || stays {
		if !goes && !stays {
			k.Why = Unasked
		}
		return k, nil
	}
	if f, _, err := tree.Find(path); f != nil || err != nil {
		return k, err // it is as it was at the target
	}
	_, info, err := d.stat(path)
	switch {
	case barred(err) || writer.ClassOf(err) == writer.ClassDenied:
		err = nil
	case err != nil:
		err = writer.NewError("plan a rewind", path, writer.NotCommitted, err)
	case !info.Mode().IsRegular():
	case p.found.InForce.Ignored(path, false):
		k.Why = Ignored
	default:
		k.Why = Foreign // it was made after the checkpoint
	}
	return k, err
}
