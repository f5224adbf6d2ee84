package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
)

// defaultBudget bounds what is stored of each task although rules that are not in force ignore it.
var defaultBudget = files.Budget{Files: 1000, Bytes: 16 << 20}

// The modes of an item of kindHidden.
const (
	hiddenFolder fs.FileMode = 1 << iota
	hiddenFixed
)

// hiddenItem returns the item of a hidden path.
func hiddenItem(name string, l files.Listing) item {
	it := item{name: name, kind: kindHidden, size: l.Bytes, count: l.Files, hash: l.Hash}
	if l.Folder {
		it.mode |= hiddenFolder
	}
	if l.Fixed {
		it.mode |= hiddenFixed
	}
	return it
}

// listing returns the Listing of an item of kindHidden.
func (it *item) listing() files.Listing {
	return files.Listing{Folder: it.mode&hiddenFolder != 0, Fixed: it.mode&hiddenFixed != 0, Files: it.count, Bytes: it.size, Hash: it.hash}
}

// hidden reports whether a fingerprint stands for what is hidden: it was not stored, because only
// rules that are not in force ignore it, and it exceeded the budget.
func hidden(f *files.Fingerprint) bool {
	_, is := f.Hidden()
	return is
}

// inHidden reports whether one of two fingerprints of a path stands for a hidden folder above it.
func inHidden(path string, some ...*files.Fingerprint) bool {
	return slices.ContainsFunc(some, func(f *files.Fingerprint) bool { return hidden(f) && f.Path != path })
}

// likeFolder reports whether a fingerprint is a folder, or a hidden one.
func likeFolder(f *files.Fingerprint) bool {
	l, _ := f.Hidden()
	return isDir(f) || l.Folder
}

// hiddenAt adds the hidden paths of an entry's tree. base is the tracker's snapshot.
func (s *Store) hiddenAt(e *Entry, base *files.Snapshot, into map[string]bool) error {
	if e == nil || e.Hidden == 0 {
		return nil
	}
	skipped := base.Skipped
	if base.Stored != e.Root {
		var err error
		if skipped, err = s.Tree(e.Root).Skipped(); err != nil && !lost(err) {
			return err
		}
	}
	for _, k := range skipped {
		if k.Reason == files.Hidden {
			into[k.Path] = true
		}
	}
	return nil
}

// reveal completes a snapshot, within what the active tasks have left of their budget.
func (l *looker) reveal(ctx context.Context, c *chain, e *Entry, snapshot *files.Snapshot, opts files.Options) (_ *files.Snapshot, err error) {
	left := l.s.budget
	for _, p := range c.entries {
		if p.Taken != (files.Budget{}) && slices.ContainsFunc(p.By, func(a Active) bool {
			return slices.ContainsFunc(e.By, func(b Active) bool { return a.Session == b.Session && a.Task == b.Task })
		}) {
			left = left.Less(p.Taken)
		}
	}
	if snapshot, e.Taken, err = files.Reveal(ctx, l.s.tree, snapshot, opts, left); err != nil {
		return nil, err
	}
	e.Hidden = 0
	for _, k := range snapshot.Skipped {
		if k.Reason == files.Hidden {
			e.Hidden++
		}
	}
	return snapshot, nil
}

// hiddenText returns the line of a patch for a change of what is hidden.
func hiddenText(from, to *files.Fingerprint) string {
	kind, f := files.Modified, to
	switch {
	case from == nil:
		kind = files.Created
	case to == nil:
		kind, f = files.Deleted, from
	}
	l, is := f.Hidden()
	if !is {
		return fmt.Sprintf("%s %s (it was not stored before)\n", kind, quote(f.Path))
	}
	return fmt.Sprintf("%s %s (%s, not stored)\n", kind, quote(f.Path+f.Target), l)
}

// decideHidden decides a path that is hidden, or was at the target. It returns false for others.
func (p *planner) decideHidden(path string, now, was *files.Fingerprint) (k Retained, is bool) {
	k = Retained{Path: path}
	l, hiddenNow := now.Hidden()
	_, hiddenThen := was.Hidden()
	switch {
	case !hiddenNow && !hiddenThen:
		return k, false
	case inHidden(path, now, was):
		k.Why = Unstored
		for _, f := range []*files.Fingerprint{now, was} {
			if hidden(f) {
				k.Path = f.Path
			}
		}
	case now != nil && was != nil, p.apart, p.opts.Take != nil:
		k.Why = Unstored
	case l.Fixed:
		k.Why = Fixed
	}
	return k, true
}
