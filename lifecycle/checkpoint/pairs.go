package checkpoint

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// pairUp finds the files and symlinks that were moved since the target: the plan makes one at a path
// and takes the same content from another path. Where that other path is empty somebody moved the file
// on, and to make it would double it: both paths are kept.
func (a *applier) pairUp() error {
	a.pairs, a.origins = map[*Change]*Change{}, map[*Change]*Change{}
	hollow := map[string]bool{}
	for _, to := range a.matches() {
		from := a.pairs[to]
		if !a.over[to] && a.over[from] {
			gone, err := a.gone(from)
			if err != nil {
				return a.failed(from.Path, err)
			}
			if gone {
				a.keepGone(from)
				a.keep(to, Meanwhile)
				for dir := parent(to.Path); dir != "."; dir = parent(dir) {
					hollow[dir] = true
				}
			}
		}
		if a.stays[to.Path] || a.stays[from.Path] {
			delete(a.pairs, to)
		} else {
			a.origins[from] = to
		}
	}
	return a.keepHollow(hollow)
}

// matches sets pairs, and returns the changes that make a file of one. Contents that stand at several
// paths are matched by their names first.
func (a *applier) matches() (makes []*Change) {
	makes, takes := a.makesAndTakes()
	named := func(f *files.Fingerprint) content { return content{f.Hash, base(f.Path)} }
	used := map[*Change]bool{}
	for _, key := range []func(*files.Fingerprint) content{named, contentOf} {
		left := map[content][]*Change{}
		for _, c := range takes {
			if !used[c] {
				left[key(c.Old)] = append(left[key(c.Old)], c)
			}
		}
		for _, c := range makes {
			k := key(c.New)
			if from := left[k]; a.pairs[c] == nil && len(from) > 0 && from[0].Old.Mode.Type() == c.New.Mode.Type() {
				a.pairs[c], used[from[0]], left[k] = from[0], true, from[1:]
			}
		}
	}
	return slices.DeleteFunc(makes, func(c *Change) bool { return a.pairs[c] == nil })
}

// makesAndTakes returns the changes that make a content, those first where nothing is, and those that
// take one away, the removals first. It leaves out what may be removed before anything is made: what is in the
// way of another kind, and, because a file system may fold names, of another spelling.
func (a *applier) makesAndTakes() (makes, takes []*Change) {
	turns, spelled := map[string]bool{}, map[string]bool{}
	for _, c := range a.changes {
		turns[c.Path] = c.Old != nil && c.New != nil && isDir(c.Old) != isDir(c.New)
		if c.Old == nil {
			spelled[strings.ToLower(c.Path)] = true
		}
	}
	var replaced []*Change
	for _, c := range a.changes {
		switch {
		case isDir(c.Old) || isDir(c.New) || c.Kind == KindMode || a.databases[c.Path] != nil || underOne(turns, c.Path):
		case c.Old == nil:
			makes = append(makes, c)
		case c.New != nil:
			replaced = append(replaced, c)
		case !underOne(spelled, strings.ToLower(c.Path)):
			takes = append(takes, c)
		}
	}
	return append(makes, replaced...), append(takes, replaced...)
}

// gone reports whether there is nothing at the path of a change.
func (a *applier) gone(c *Change) (bool, error) {
	_, _, err := a.descent.stat(c.Path)
	if unreachable(err) {
		return true, nil
	}
	return false, tolerable(err)
}

// keepGone keeps a path that is empty although the plan saw a file there.
func (a *applier) keepGone(c *Change) {
	if !a.stays[c.Path] {
		a.over[c] = false
		a.keep(c, Meanwhile)
	}
}

// keepHollow keeps those of some folders that would be made and stay empty, because all that belongs
// into them is kept.
func (a *applier) keepHollow(hollow map[string]bool) error {
	if len(hollow) == 0 {
		return nil
	}
	for _, c := range a.deepestFirst() {
		if c.New == nil || a.stays[c.Path] || isDir(c.New) && hollow[c.Path] {
			continue
		}
		for dir := parent(c.Path); dir != "."; dir = parent(dir) {
			delete(hollow, dir)
		}
	}
	for _, c := range a.changes {
		if !hollow[c.Path] || c.Old != nil || !isDir(c.New) || a.over[c] {
			continue
		}
		gone, err := a.gone(c)
		if err != nil {
			return a.failed(c.Path, err)
		}
		if gone {
			a.keep(c, Meanwhile)
		}
	}
	return nil
}

// renames reports whether a file is moved back by one rename. The content of a file that has other
// names or another mode, or comes in the place of another file, is written anew.
func (a *applier) renames(to *Change) bool {
	from := a.pairs[to]
	if from == nil || from.New != nil || to.Old != nil || from.Old.Mode != to.New.Mode {
		return false
	}
	info := a.saw[from]
	return info != nil && !writer.Shared(info)
}

// moveFrom moves a file back by one rename. It returns pending if the content is to be written anew.
func (a *applier) moveFrom(from, to *Change) (state, error) {
	if a.over[from] {
		return a.keptFrom(from)
	}
	if err := a.reach(parent(to.Path)); err != nil && !unreachable(err) { // or the file would be lost with a folder that Apply has made
		return 0, err
	}
	a.descent, a.source = a.source, a.descent
	defer func() { a.descent, a.source = a.source, a.descent }()
	st, err := a.state(from)
	switch {
	case errors.Is(err, errMounted):
		return pending, nil
	case err != nil:
		return 0, err
	case a.saw[from] == nil:
		st = altered
	case st != pending || !a.renames(to):
		return pending, nil
	default:
		st, err = a.renameFrom(from, to)
	}
	if st == altered && err == nil {
		a.keepGone(from)
	}
	return st, err
}

// keptFrom is moveFrom where it is decided what becomes of from. If that is retained since somebody moved
// it on, it is not made a second time.
func (a *applier) keptFrom(from *Change) (state, error) {
	if !a.stays[from.Path] {
		return pending, nil
	}
	gone, err := a.gone(from)
	if gone && err == nil {
		return altered, nil
	}
	return pending, err
}

// renameFrom is the rename of moveFrom, which has exchanged the two descents. It replaces nothing.
func (a *applier) renameFrom(from, to *Change) (state, error) {
	if stays, err := a.spared(from); stays || err != nil {
		return pending, err
	}
	if is, err := a.still(from); !is || err != nil {
		return altered, err
	}
	at, err := a.descent.to(parent(from.Path))
	if err != nil {
		return 0, err
	}
	dir, err := a.source.again(parent(to.Path))
	if unreachable(err) {
		return altered, nil
	}
	if err != nil {
		return 0, err
	}
	switch err = writer.RenameTo(at, base(from.Path), dir, base(to.Path)); {
	case errors.Is(err, syscall.EXDEV), errors.Is(err, errors.ErrUnsupported):
		return pending, nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist):
		return altered, nil
	case err != nil:
		return 0, err
	}
	a.over[from] = true
	return finished, nil
}

// syncMade makes durable what was moved back, before the removal from the other path is. So if both
// paths are empty in the next Apply, somebody moved the file on.
func (a *applier) syncMade() error {
	dirs := map[string]bool{}
	for from, to := range a.origins {
		if from.New == nil && !a.stays[to.Path] {
			dirs[parent(to.Path)] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		at, err := a.descent.to(dir)
		if unreachable(err) {
			continue
		}
		if err == nil {
			err = at.SyncDir(".")
		}
		if err == nil {
			err = a.reach(dir)
		}
		if err != nil && !errors.Is(err, errMounted) && !(a.plan.Permitted && Refused(err)) {
			return a.failed(dir, err)
		}
	}
	return nil
}

// goes reports whether what state saw at a path may be removed, directly before that.
func (a *applier) goes(c *Change) (bool, error) {
	if stays, err := a.spared(c); stays || err != nil {
		return false, err
	}
	if is, err := a.apart(c); !is || err != nil {
		return false, err
	}
	return a.still(c)
}

// apart reports whether the content of a file that is to be removed stands at the path where the plan
// makes it, in another file. If it does not, the file is kept.
func (a *applier) apart(c *Change) (bool, error) {
	to := a.origins[c]
	if to == nil {
		return true, nil
	}
	_, info, err := a.descent.stat(to.Path)
	if err == nil && (!writer.SameFile(info, a.saw[c]) || writer.Shared(info)) {
		return true, nil
	}
	why := Retained{Path: c.Path, Why: Meanwhile}
	if i := slices.IndexFunc(a.out.Retained, func(k Retained) bool { return k.Path == to.Path }); i >= 0 {
		why = a.out.Retained[i]
		why.Path = c.Path
	}
	a.retain(c, why)
	if unreachable(err) || errors.Is(err, errMounted) {
		err = nil
	}
	return false, err
}

// still reports whether a path is what state saw there: nobody renamed it or a folder above it, put
// something else in its place, or wrote into it since.
func (a *applier) still(c *Change) (bool, error) {
	if moved, err := a.descent.moved(); moved || err != nil {
		return false, err
	}
	was := a.saw[c]
	_, info, err := a.descent.lstat(c.Path)
	if unreachable(err) {
		return was == nil, nil
	}
	if err != nil || was == nil || !writer.SameFile(was, info) {
		return false, err
	}
	return info.IsDir() || info.Size() == was.Size() && info.Mode() == was.Mode() && info.ModTime().Equal(was.ModTime()), nil
}
