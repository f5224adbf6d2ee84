package checkpoint

import (
	"context"
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
	Changes int    // that stand now, those of an earlier Apply included
	Kept    []Kept // what was changed meanwhile, or cannot be reached, in addition to the plan's
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
// changed since the plan was made is kept.
func (s *Store) Apply(ctx context.Context, p *Plan) (Applied, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &applier{s: s, plan: p, chain: chain{root: s.tree}, over: map[*Change]bool{}, linked: map[*Change]bool{}, temps: map[*Change]staged{}, makes: map[string]bool{}, touched: map[string]bool{}}
	defer a.chain.cut(0)
	defer a.closeFolders()
	defer a.discard()
	for i := range p.Changes {
		c := &p.Changes[i]
		a.changes = append(a.changes, c)
		if c.New != nil && c.New.Mode.IsDir() {
			a.makes[c.Path] = true
		}
	}
	for _, step := range []func() error{
		a.clear, a.skipFinished, a.room, a.openFolders, func() error { return a.stage(ctx) }, a.tryFolders,
		a.begin, a.clearTheWay, a.makeFolders, a.moveIn, a.changeModes, a.remove, a.folderModes, a.sync,
	} {
		if err := step(); err != nil {
			if !a.begun {
				err = fmt.Errorf("%w: %w", ErrUnchanged, err)
			}
			return a.out, err
		}
	}
	a.out.Changes = len(p.Changes) - len(a.out.Kept)
	return a.out, nil
}

// An applier is one Apply.
type applier struct {
	s       *Store
	plan    *Plan
	chain   chain
	changes []*Change          // the plan's, sorted by Path
	over    map[*Change]bool   // those that are finished or kept
	linked  map[*Change]bool   // files with another name, whose mode changes
	temps   map[*Change]staged // made, not in its place yet
	makes   map[string]bool    // folders of the plan
	touched map[string]bool    // folders with other names than before
	opened  []*Change          // folders that let us in only since openFolders
	denied  []string           // paths that may not be changed
	begun   bool               // something may be seen
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

// each calls fn with the changes that are not over and that it is for. fn says how
// far it came; what it finds altered is kept and reported.
func (a *applier) each(changes []*Change, wants func(*Change) bool, fn func(*Change) (state, error)) error {
	for _, c := range changes {
		if a.over[c] || !wants(c) {
			continue
		}
		st, err := fn(c)
		if err != nil {
			if err := a.permitted(c, err); err != nil {
				return err
			}
			continue
		}
		if st == altered {
			a.out.Kept = append(a.out.Kept, Kept{Path: c.Path, Why: a.why(c)})
		}
		a.over[c] = st != pending
	}
	return nil
}

// permitted is nil for what is reported in place of an error, as the plan says.
func (a *applier) permitted(c *Change, err error) error {
	if !a.plan.Permitted || writer.ClassOf(err) != writer.ClassDenied {
		return a.failed(c.Path, err)
	}
	a.over[c] = true
	a.denied = append(a.denied, c.Path)
	a.out.Kept = append(a.out.Kept, Kept{Path: c.Path, Why: Denied})
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

// skipFinished sets aside what an earlier Apply did and what somebody changed.
func (a *applier) skipFinished() error {
	return a.each(a.changes, func(*Change) bool { return true }, func(c *Change) (state, error) {
		a.touched[parent(c.Path)] = true // its name may not be durable
		st, err := a.state(c)
		if st == pending && c.Kind == KindMode && c.New.Mode.IsRegular() {
			var dir writer.FS
			if dir, err = a.chain.to(parent(c.Path)); err == nil {
				var info fs.FileInfo
				info, err = dir.Lstat(base(c.Path))
				a.linked[c] = err == nil && writer.Shared(info)
			}
		}
		if st == finished && c.New != nil && (c.New.Mode.IsDir() || c.Kind == KindMode) {
			st = pending // nor its mode
		}
		return st, err
	})
}

// stages says whether a file or symlink is made beside its place first. So is one whose
// mode alone changes, if it is a hard link: the other name may be outside.
func (a *applier) stages(c *Change) bool { return c.stages() || a.linked[c] }

// clearTheWay removes what has another kind than what is to come: a file or symlink
// where a folder is wanted, and a folder, with what is known of it, where a file is.
func (a *applier) clearTheWay() error {
	turns := map[string]bool{} // folders that become something else
	for _, c := range a.changes {
		if !a.over[c] && c.Old != nil && c.New != nil && c.Old.Mode.IsDir() && !c.New.Mode.IsDir() {
			turns[c.Path] = true
		}
	}
	inOne := func(c *Change) bool {
		for dir := parent(c.Path); dir != "." && len(turns) > 0; dir = parent(dir) {
			if turns[dir] {
				return c.New == nil
			}
		}
		return false
	}
	if err := a.each(a.deepestFirst(), inOne, a.removeOne); err != nil {
		return err
	}
	inTheWay := func(c *Change) bool {
		return c.Old != nil && c.New != nil && c.Old.Mode.IsDir() != c.New.Mode.IsDir()
	}
	return a.each(a.deepestFirst(), inTheWay, func(c *Change) (state, error) {
		st, err := a.state(c)
		if err != nil || st != pending {
			return st, err
		}
		if st, err = a.removeOne(c); st == finished {
			st = pending // the new one is still to come
		}
		return st, err
	})
}

func (a *applier) deepestFirst() []*Change {
	list := slices.Clone(a.changes)
	slices.Reverse(list)
	return list
}

// removeOne removes what stands in a change's place. A folder with anything in it
// stays, and is reported.
func (a *applier) removeOne(c *Change) (state, error) {
	if c.New == nil {
		if st, err := a.state(c); err != nil || st != pending {
			return st, err
		}
	}
	a.chain.forget(c.Path)
	dir, err := a.chain.to(parent(c.Path))
	if err == nil {
		err = writer.Retry(func() error { return dir.Remove(base(c.Path)) })
	}
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return finished, nil
	case c.Old.Mode.IsDir() && errors.Is(err, fs.ErrExist): // not empty
		return altered, nil
	}
	return 0, err
}

// makeFolders makes the new folders, those above first. Until all is in them their
// mode is one that lets us in.
func (a *applier) makeFolders() error {
	wants := func(c *Change) bool { return c.New != nil && c.New.Mode.IsDir() && c.Kind != KindMode }
	return a.each(a.changes, wants, func(c *Change) (state, error) {
		dir, err := a.chain.to(parent(c.Path))
		if unreachable(err) {
			return altered, nil
		}
		if err == nil {
			err = writer.Retry(func() error { return dir.Mkdir(base(c.Path), 0o700) })
		}
		if errors.Is(err, fs.ErrExist) {
			info, lerr := dir.Lstat(base(c.Path))
			if lerr != nil {
				return 0, lerr
			}
			if !info.IsDir() {
				return altered, nil
			}
			err = nil
		}
		return pending, err // its mode is still to come
	})
}

// unreachable says that a folder is not there, or is none any more.
func unreachable(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder)
}

// moveIn renames what was staged into its place, after one more look at what it
// replaces.
func (a *applier) moveIn() error {
	return a.each(a.changes, a.stages, func(c *Change) (state, error) {
		st, err := a.state(c)
		if err != nil || st != pending {
			return st, err
		}
		if _, err := a.chain.to(parent(c.Path)); unreachable(err) { // what os.Root would follow is looked at here
			return altered, nil
		} else if err != nil {
			return 0, err
		}
		t := a.temps[c]
		dir, err := a.chain.to(t.dir)
		if err != nil {
			return 0, err
		}
		to := c.Path
		if t.dir != "." {
			to = c.Path[len(t.dir)+1:]
		}
		if err := writer.Retry(func() error { return dir.Rename(t.name, to) }); err != nil {
			return 0, err
		}
		a.touched[t.dir] = true
		delete(a.temps, c)
		return finished, nil
	})
}

// changeModes changes the modes of files, each synced.
func (a *applier) changeModes() error {
	return a.each(a.changes, func(c *Change) bool { return c.Kind == KindMode && !c.New.Mode.IsDir() }, func(c *Change) (state, error) {
		st, err := a.state(c)
		if err != nil || st == altered {
			return st, err
		}
		dir, err := a.chain.to(parent(c.Path))
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
		if err = f.Chmod(c.New.Mode.Perm() | info.Mode()&specialBits); err == nil {
			err = f.Sync()
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return finished, err
	})
}

// remove removes what is not wanted any more, what is in a folder before it.
func (a *applier) remove() error {
	return a.each(a.deepestFirst(), func(c *Change) bool { return c.New == nil }, a.removeOne)
}

// folderModes gives the folders their modes, at last and the deepest first: they
// may forbid what was done in them.
func (a *applier) folderModes() error {
	return a.each(a.deepestFirst(), func(c *Change) bool { return c.New != nil && c.New.Mode.IsDir() }, func(c *Change) (state, error) {
		if err := a.syncFolder(c.Path); err != nil { // as long as it can be opened
			return 0, err
		}
		a.chain.forget(c.Path)
		dir, err := a.chain.to(parent(c.Path))
		if unreachable(err) {
			return altered, nil
		}
		if err != nil {
			return 0, err
		}
		return finished, chmodFolder(dir, base(c.Path), c.New.Mode)
	})
}

// sync makes the names durable: one sync for each folder.
func (a *applier) sync() error {
	dirs := make([]string, 0, len(a.touched))
	for dir := range a.touched {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if err := a.syncFolder(dir); err != nil {
			return a.failed(dir, err)
		}
	}
	return nil
}

// syncFolder syncs a folder that is there, once.
func (a *applier) syncFolder(dir string) error {
	if !a.touched[dir] {
		return nil
	}
	delete(a.touched, dir)
	at, err := a.chain.to(dir)
	if unreachable(err) {
		return nil // it was removed, which the folder above will say
	}
	if err != nil {
		return err
	}
	return at.SyncDir(".")
}
