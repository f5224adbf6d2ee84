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
	Changes  int        // that stand now, those of an earlier Apply included
	Retained []Retained // what was changed meanwhile, or cannot be reached, in addition to the plan's
}

// ErrUnchanged says that an Apply failed before anything of the tree was changed.
var ErrUnchanged = errors.New("no file was changed")

// Apply brings the tree to where the plan wants it, durably. It may be called again
// with the same plan, after an error, a crash, or for nothing.
//
// Up to the first change that can be seen an error, ctx's end included, leaves the
// tree as it was and is an [ErrUnchanged]: no room (class no-space), damaged or missing
// blobs and folders that may not be written (class denied) are found there. After it ctx is not looked at any more, and an error leaves a part of the
// changes to the next Apply, for which it has outcome NotDurable. What somebody
// changed since the plan was made is left as it is.
func (s *Store) Apply(ctx context.Context, p *Plan) (Applied, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &applier{s: s, plan: p, id: p.id, descent: descent{root: s.tree}, over: map[*Change]bool{}, linked: map[*Change]bool{},
		temps: map[*Change]staged{}, found: map[*Change]fs.FileMode{}, turns: map[string]bool{}, touched: map[string]bool{}}
	if a.id == "" {
		a.id = rand.Text()
	}
	defer a.descent.cut(0)
	defer a.closeFolders()
	defer a.discard()
	for i := range p.Changes {
		c := &p.Changes[i]
		switch {
		case Reserved(c.Path):
			a.keep(c, Nested)
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
	for _, step := range []func() error{
		a.openFolders, a.list, a.look, a.room, func() error { return a.stage(ctx) }, a.tryFolders,
		a.begin, a.clearTheWay, a.makeFolders, a.moveIn, a.changeModes, a.remove, a.settle,
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
	id      string // of the temporary names
	descent descent
	changes []*Change               // the plan's, sorted by Path
	folders []*Change               // what is or becomes a folder, and what is opened for the others, sorted by Path
	over    map[*Change]bool        // those that are finished or retained
	linked  map[*Change]bool        // files with another name, whose mode changes
	temps   map[*Change]staged      // made, not in its place yet
	found   map[*Change]fs.FileMode // of folders that stand open: the modes that they had
	turns   map[string]bool         // paths that are removed before anything is made
	touched map[string]bool         // folders with other names than before
	denied  []string                // paths that may not be changed
	begun   bool                    // something may be seen
	out     Applied
}

// begin is the step from which on changes can be seen.
func (a *applier) begin() error {
	a.begun = true
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

func (a *applier) keep(c *Change, why Why) {
	a.over[c] = true
	a.out.Retained = append(a.out.Retained, Retained{Path: c.Path, Why: why})
}

// each calls fn with the changes that are not over and that it is for. fn says how
// far it came; what it finds altered is retained and reported.
func (a *applier) each(changes []*Change, wants func(*Change) bool, fn func(*Change) (state, error)) error {
	for _, c := range changes {
		if a.over[c] || !wants(c) {
			continue
		}
		st, err := fn(c)
		switch {
		case err != nil:
			if err := a.permitted(c, err); err != nil {
				return err
			}
		case st == altered:
			a.keep(c, a.why(c))
		default:
			a.over[c] = st == finished
		}
	}
	return nil
}

// permitted is nil for what is reported in place of an error, as the plan says.
func (a *applier) permitted(c *Change, err error) error {
	if !a.plan.Permitted || writer.ClassOf(err) != writer.ClassDenied {
		return a.failed(c.Path, err)
	}
	a.denied = append(a.denied, c.Path)
	a.keep(c, Denied)
	return nil
}

// why says what keeps a change from being made that finds something else than the
// plan saw: often that one above or beneath it was not allowed.
func (a *applier) why(c *Change) Why {
	for _, path := range a.denied {
		if strings.HasPrefix(path, c.Path+"/") || strings.HasPrefix(c.Path, path+"/") {
			return Denied
		}
	}
	return Meanwhile
}

// look excludes what an earlier Apply did and what somebody changed.
func (a *applier) look() error {
	return a.each(a.changes, func(*Change) bool { return true }, func(c *Change) (state, error) {
		a.touched[parent(c.Path)] = true // its name may not be durable
		st, err := a.state(c)
		if err != nil || c.Kind != KindMode || isDir(c.New) {
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

// stages says whether a file or symlink is made under a temporary name first. So is one whose
// mode alone changes, if it is a hard link: the other name may be outside.
func (a *applier) stages(c *Change) bool { return c.stages() || a.linked[c] }

// clearTheWay removes what has another kind than what is to come, with what is known of
// a folder, and what has the place of a name that differs in case only.
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

// removeOne removes what the plan saw in a change's place. A folder with anything in it
// stays, and is reported.
func (a *applier) removeOne(c *Change) (state, error) {
	st, err := a.state(c)
	if err != nil || st != pending {
		return st, err
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

// makeFolders makes the new folders, those above first. Until all is in them their
// mode is one that lets us in.
func (a *applier) makeFolders() error {
	return a.each(a.changes, func(c *Change) bool { return isDir(c.New) && !isDir(c.Old) }, func(c *Change) (state, error) {
		dir, err := a.descent.to(parent(c.Path))
		if unreachable(err) {
			return altered, nil
		}
		if err == nil {
			err = writer.Retry(func() error { return dir.Mkdir(base(c.Path), letsIn) })
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return 0, err
		}
		info, err := dir.Lstat(base(c.Path))
		if err == nil && !info.IsDir() {
			return altered, nil
		}
		if err == nil && info.Mode()&letsIn != letsIn { // an odd umask
			err = dir.Chmod(base(c.Path), info.Mode()|letsIn)
		}
		return vacant, err // its mode is still to come
	})
}

// moveIn renames what was staged into its place, after one more look at what it
// replaces.
func (a *applier) moveIn() error {
	return a.each(a.changes, a.stages, func(c *Change) (state, error) {
		st, err := a.state(c)
		if err != nil || st == altered || st == finished {
			return st, err
		}
		if _, err := a.descent.to(parent(c.Path)); unreachable(err) { // what os.Root would follow is looked at here
			return altered, nil
		} else if err != nil {
			return 0, err
		}
		t := a.temps[c]
		dir, err := a.descent.to(t.dir)
		if err != nil {
			return 0, err
		}
		to := strings.TrimPrefix(c.Path, t.dir+"/")
		if err := writer.Retry(func() error { return dir.Rename(t.name, to) }); err != nil {
			return 0, err
		}
		delete(a.temps, c)
		return finished, nil
	})
}

// changeModes changes the modes of files, each synced.
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
		if st == pending && writer.Shared(info) { // linked since
			return altered, f.Close()
		}
		return finished, chmod(f, info, c.New.Mode)
	})
}

// remove removes what is not wanted any more, what is in a folder before it.
func (a *applier) remove() error {
	return a.each(a.deepestFirst(), func(c *Change) bool { return c.New == nil }, a.removeOne)
}
