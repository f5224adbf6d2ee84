package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lopen-dev/lopen/writer"
)

// Applied is what Apply did.
type Applied struct {
	Changes  int        // number of changes that are in place, including those of an earlier Apply
	Retained []Retained // paths that were changed meanwhile, are in use or cannot be reached; those of the plan are not included
	Taken    []Retained // paths of Plan.InUse that were replaced or removed although somebody had them open for writing
}

// ErrUnchanged means that an Apply failed before it changed anything in the tree.
var ErrUnchanged = errors.New("no file was changed")

// Apply executes a plan, durably. It may be called again with the same plan, also after an
// error or a crash.
//
// Before the first visible change an error wraps [ErrUnchanged] and the tree is unchanged.
// Such errors are the end of ctx, a full disk (class no-space), damaged or missing blobs, and
// paths that may not be changed (class denied), unless [Plan.Permitted] is set. After the first
// visible change Apply ignores ctx, and an error has outcome NotDurable: the next Apply makes the remaining changes, and one
// of [Plan.Back] takes back those that are made. Paths that were changed since the plan was made are left as they are.
func (s *Store) Apply(ctx context.Context, p *Plan) (Applied, error) {
	if p == nil || ctx == nil {
		return Applied{}, absent("rewind", "plan or context")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.applier(ctx, p)
	defer a.descent.cut(0)
	defer func() { a.source.cut(0) }()
	defer a.closeFolders()
	defer a.discard()
	for _, step := range []func() error{
		a.openFolders, a.list, a.look, a.ask, a.askDatabases, a.pairUp, a.room, func() error { return a.stage(ctx) }, a.tryFolders, a.refuse,
		a.begin, a.moveAway, a.clearTheWay, a.makeFolders, a.moveBack, a.moveIn, a.changeModes, a.syncMade, a.remove, a.settle,
	} {
		if err := step(); err != nil {
			if !a.begun {
				err = fmt.Errorf("%w: %w", ErrUnchanged, err)
			}
			return a.out, err
		}
	}
	a.out.Changes = len(p.Changes) - len(a.out.Retained)
	return a.out, nil
}

// An applier is one Apply.
type applier struct {
	s       *Store
	plan    *Plan
	id      string          // of the temporary names
	ctx     context.Context //nolint:containedctx // of the one Apply, and without its end once begun
	descent descent
	changes []*Change               // the plan's, sorted by Path
	moves   []*Change               // of what is hidden
	reached map[string]bool         // folders whose names are durable, see reach
	folders []*Change               // folders, new folders, and folders to be opened; sorted by Path
	over    map[*Change]bool        // changes that are finished or retained
	linked  map[*Change]bool        // files with another hard link whose mode changes
	temps   map[*Change]staged      // staged files that are not renamed yet
	found   map[*Change]fs.FileMode // the original modes of folders that were opened
	turns   map[string]bool         // paths that are removed before anything is made
	touched map[string]bool         // folders whose names may have changed
	denied  []string                // paths that may not be changed
	mounted []string                // paths on mounts that the plan does not know
	refused error                   // why the first of them may not be
	begun   bool                    // a change may be visible
	out     Applied

	openers   writer.Openers
	asked     answer                     // of the last state that read what is to be taken away
	names     map[string]map[string]bool // in the folders of the plan, as list found them
	stays     map[string]bool            // paths that are retained
	databases map[string]*database       // by the paths of their files
	warned    map[*Change]bool           // changes that are noted in out.Taken

	saw     map[*Change]fs.FileInfo // what state found last, once changes are visible; nil for nothing
	pairs   map[*Change]*Change     // of a file that was moved: from where the plan takes it, by where it makes it
	origins map[*Change]*Change     // the reverse of pairs
	source  descent                 // to the paths of which files are moved back
	hoard   *hoard                  // open while something is moved into it or out of it
}

// applier returns the applier of a plan. The caller cuts its descent in the end.
func (s *Store) applier(ctx context.Context, p *Plan) *applier {
	a := &applier{s: s, ctx: ctx, plan: p, id: p.id, descent: p.descent(s.tree), source: p.descent(s.tree), over: map[*Change]bool{}, linked: map[*Change]bool{},
		temps: map[*Change]staged{}, found: map[*Change]fs.FileMode{}, turns: map[string]bool{}, touched: map[string]bool{},
		stays: map[string]bool{}, databases: map[string]*database{}, warned: map[*Change]bool{}, saw: map[*Change]fs.FileInfo{}}
	if a.id == "" {
		a.id = rand.Text()
	}
	for i := range p.Changes {
		c := &p.Changes[i]
		switch {
		case Reserved(c.Path):
			a.keep(c, Nested)
			continue
		case c.moves():
			a.moves = append(a.moves, c)
			continue
		case isDir(c.Old) || isDir(c.New):
			a.folders = append(a.folders, c)
		}
		a.changes = append(a.changes, c)
	}
	for _, f := range p.shut {
		a.folders = append(a.folders, &Change{Kind: KindMode, Path: f.Path, Old: f, New: f})
	}
	slices.SortFunc(a.folders, func(x, y *Change) int { return strings.Compare(x.Path, y.Path) })
	return a
}

// begin is the step after which changes are visible.
func (a *applier) begin() error {
	a.begun, a.ctx = true, context.WithoutCancel(a.ctx)
	return nil
}

func (a *applier) failed(path string, err error) error {
	if err == nil {
		return nil
	}
	outcome := writer.NotCommitted
	if a.begun {
		outcome = writer.NotDurable
	}
	return writer.NewError("rewind", filepath.Join(a.s.tree.Name(), path), outcome, err)
}

func (a *applier) keep(c *Change, why Why) { a.retain(c, Retained{Path: c.Path, Why: why}) }

// each calls fn with the changes that are not over and for which wants returns true. fn
// returns the state of the change; each retains those that are altered.
func (a *applier) each(changes []*Change, wants func(*Change) bool, fn func(*Change) (state, error)) error {
	for _, c := range changes {
		if a.over[c] || !wants(c) {
			continue
		}
		st, err := fn(c)
		switch {
		case err != nil && a.mountedSince(c, err):
			a.mounted = append(a.mounted, c.Path)
			a.keep(c, Mounted)
		case err != nil && !(a.begun && unreachable(err)): // or somebody renamed it in this moment
			if err := a.permitted(c, err); err != nil {
				return err
			}
		case err != nil || st == altered:
			a.keep(c, a.why(c))
		default:
			a.over[c] = st == finished
		}
	}
	return nil
}

// why returns the reason why a path is altered: it is that of a change above or beneath it.
func (a *applier) why(c *Change) Why {
	switch {
	case near(a.mounted, c.Path):
		return Mounted
	case near(a.denied, c.Path):
		return Denied
	case a.blocks(c):
		return Blocked
	}
	return Meanwhile
}

// look excludes changes that an earlier Apply made, and paths that were changed since.
func (a *applier) look() error {
	return a.each(a.changes, func(*Change) bool { return true }, func(c *Change) (state, error) {
		a.touched[parent(c.Path)] = true // its name may not be durable
		st, err := a.state(c)
		if err != nil || st == altered || c.Kind != KindMode || isDir(c.New) {
			return st, err
		}
		if st == finished {
			return pending, nil // its mode may not be durable
		}
		_, info, err := a.descent.stat(c.Path)
		a.linked[c] = err == nil && st == pending && writer.Shared(info)
		return st, err
	})
}

// stages reports whether a file or symlink is first made under a temporary name. This includes
// a file with another hard link whose mode changes, because the other name may be outside.
func (a *applier) stages(c *Change) bool { return c.stages() || a.linked[c] }

// clearTheWay removes a folder with its known contents where a file is wanted, a file where a
// folder is wanted, and a name that differs from the wanted one only in case.
func (a *applier) clearTheWay() error {
	for _, c := range a.changes {
		if !a.over[c] && c.Old != nil && c.New != nil && isDir(c.Old) != isDir(c.New) {
			a.turns[c.Path] = true
		}
	}
	inTheWay := func(c *Change) bool {
		return len(a.turns) > 0 && (a.turns[c.Path] || c.New == nil && underOne(a.turns, c.Path))
	}
	defer func() { a.descent.folded = nil }()
	return a.each(a.deepestFirst(), inTheWay, a.removeOne)
}

func (a *applier) deepestFirst() []*Change {
	list := slices.Clone(a.changes)
	slices.Reverse(list)
	return list
}

// removeOne removes what the plan saw at a path. A folder that is not empty is altered.
func (a *applier) removeOne(c *Change) (state, error) {
	st, err := a.state(c)
	if err != nil || st != pending {
		return st, err
	}
	if goes, err := a.goes(c); !goes || err != nil {
		return altered, err
	}
	a.descent.forget(c.Path)
	dir, err := a.descent.to(parent(c.Path))
	if err == nil {
		err = writer.Retry(func() error { return dir.Remove(base(c.Path)) })
	}
	switch {
	case err != nil && isDir(c.Old) && errors.Is(err, fs.ErrExist): // not empty
		return altered, nil
	case err != nil && !unreachable(err):
		return 0, err
	case c.New != nil:
		return vacant, nil // the new one is still to come
	}
	return finished, nil
}

// makeFolders makes the new folders, outer ones first. They have a mode with which names can be
// changed in them; settle sets the final mode.
func (a *applier) makeFolders() error {
	return a.each(a.changes, func(c *Change) bool { return isDir(c.New) && !isDir(c.Old) }, func(c *Change) (state, error) {
		if _, err := a.descent.moved(); err != nil {
			return 0, err
		}
		dir, err := a.descent.to(parent(c.Path))
		if err == nil {
			err = writer.Retry(func() error { return dir.Mkdir(base(c.Path), letsIn) })
		}
		var info fs.FileInfo
		if err == nil || errors.Is(err, fs.ErrExist) {
			info, err = dir.Lstat(base(c.Path))
		}
		if err == nil && !info.IsDir() {
			return altered, nil
		}
		if err == nil {
			err = a.descent.crossed(dir, c.Path)
		}
		if err == nil && info.Mode()&letsIn != letsIn { // because of the umask
			err = dir.Chmod(base(c.Path), info.Mode()|letsIn)
		}
		return vacant, err // settle sets its mode
	})
}

// moveIn renames the staged files to their names. It first compares once more what they replace
// with the plan.
func (a *applier) moveIn() error {
	return a.each(a.changes, a.stages, func(c *Change) (state, error) {
		st, err := a.state(c)
		if err != nil || st == altered || st == finished {
			return st, err
		}
		if from := a.pairs[c]; from != nil {
			if st, err := a.moveFrom(from, c); st != pending || err != nil {
				return st, err
			}
		}
		if stays, err := a.spared(c); stays || err != nil {
			return altered, err
		}
		return a.moveOneIn(c, st)
	})
}

// moveOneIn renames a staged file. Where nothing is it replaces nothing.
func (a *applier) moveOneIn(c *Change, st state) (state, error) {
	if is, err := a.still(c); !is || err != nil {
		return altered, err
	}
	dir, err := a.descent.to(parent(c.Path)) // os.Root would follow a symlink on the way
	if unreachable(err) {
		return altered, nil
	}
	if err != nil {
		return 0, err
	}
	t := a.temps[c]
	if t.name == "" {
		if t, err = a.stageLate(c); err != nil {
			return 0, err
		}
	}
	at := a.descent.above(t.dir)
	if st == vacant {
		err = writer.RenameTo(at, t.name, dir, base(c.Path))
	} else {
		err = writer.Retry(func() error { return at.Rename(t.name, strings.TrimPrefix(c.Path, t.dir+"/")) })
	}
	if st == vacant && errors.Is(err, fs.ErrExist) {
		return altered, nil
	}
	if err != nil {
		return 0, err
	}
	delete(a.temps, c)
	return finished, nil
}

// changeModes changes the modes of files, and syncs each.
func (a *applier) changeModes() error {
	return a.each(a.changes, func(c *Change) bool { return c.Kind == KindMode && !isDir(c.New) }, func(c *Change) (state, error) {
		st, err := a.state(c)
		if err != nil || st == altered {
			return st, err
		}
		dir, err := a.descent.to(parent(c.Path))
		if err != nil {
			return 0, err
		}
		f, info, err := writer.OpenRegular(dir, "change mode", base(c.Path), os.O_RDONLY)
		if err != nil {
			return 0, err
		}
		if st == pending && writer.Shared(info) { // it got another hard link since
			return altered, f.Close()
		}
		if err := a.descent.crossed(dir, c.Path); err != nil {
			return 0, errors.Join(err, f.Close())
		}
		if !writer.SameFile(info, a.saw[c]) { // somebody put another file there
			return altered, f.Close()
		}
		return finished, chmod(f, info, c.New.Mode)
	})
}

// remove removes what the plan deletes, the contents of a folder before the folder.
func (a *applier) remove() error {
	return a.each(a.deepestFirst(), func(c *Change) bool { return c.New == nil }, a.removeOne)
}
