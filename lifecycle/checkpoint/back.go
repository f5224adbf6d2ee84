package checkpoint

import (
	"context"
	"slices"
)

// Back returns the plan that takes back what an Apply of this one has changed: each path becomes
// what it was, if it is exactly what the plan wanted. What somebody changed since is retained.
func (p *Plan) Back() *Plan {
	back := &Plan{Changes: slices.Clone(p.Changes), id: p.id + " back", mounts: p.mounts, volumes: p.volumes, shut: p.shut, takes: p.id}
	for i := range back.Changes {
		c := &back.Changes[i]
		c.Old, c.New = c.New, c.Old
		switch c.Kind {
		case KindCreate:
			c.Kind = KindDelete
		case KindDelete:
			c.Kind = KindCreate
		case KindAway:
			c.Kind = KindBack
		case KindBack:
			c.Kind = KindAway
		}
	}
	return back
}

// Stand is how far a plan has come whose Apply was interrupted. All are sorted.
type Stand struct {
	Changed []string // paths that are what the plan wants
	Left    []string // paths that are what the plan saw
	Other   []string // paths that are neither, or cannot be read
}

// Stand compares the tree with a plan. It changes nothing of the tree except for what an Apply
// of the plan has left: temporary files, and folders that it had opened.
func (s *Store) Stand(ctx context.Context, p *Plan) Stand {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.applier(ctx, p)
	defer a.descent.cut(0)
	_ = a.openFolders()
	_ = a.list()
	var st Stand
	put := func(c *Change, is state) {
		list := &st.Other
		switch is {
		case finished:
			list = &st.Changed
		case pending:
			list = &st.Left
		}
		*list = append(*list, c.Path)
	}
	for _, c := range a.changes {
		put(c, a.standing(c))
	}
	for _, c := range a.moves {
		put(c, a.standingMoved(c))
	}
	for _, list := range [][]string{st.Changed, st.Left, st.Other} {
		slices.Sort(list)
	}
	a.closeFolders()
	return st
}

// standing returns finished, pending, or anything else for a path that is neither. It reads the
// contents.
func (a *applier) standing(c *Change) state {
	a.begun = true
	st, err := a.state(c)
	a.begun = false
	if err != nil {
		return altered
	}
	_, info, err := a.descent.stat(c.Path)
	switch {
	case err != nil && st == vacant && c.Old == nil, isDir(c.Old) && c.New == nil && st == pending:
		return pending
	case err == nil && isDir(c.New) && info.IsDir():
		mode := info.Mode()
		for f, was := range a.found { // the mode before openFolders
			if f.Path == c.Path {
				mode = was
			}
		}
		switch {
		case mode&modeBits == c.New.Mode || !isDir(c.Old):
			return finished
		case mode&modeBits == c.Old.Mode:
			return pending
		}
		return altered
	}
	return st
}
