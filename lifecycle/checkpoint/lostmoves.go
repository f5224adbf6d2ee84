package checkpoint

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// A Moved is what a rewind moved into movedDir, as one path.
type Moved struct {
	Path string
	files.Listing
	Before *Entry // before the rewind; its tree has the path
	Name   string // in .lopen, with a slash
	There  bool   // LostMoves: something is there, and not what was moved
}

// LostMoves returns what rewinds of this chain moved away and no later one moved back, and what is not
// there any more as it was. No undo brings it back. root is the .lopen folder. What went with an entry that
// was removed is not lost, and what another project moved away was never here. It reads no content.
func (s *Store) LostMoves(ctx context.Context, root writer.FS) ([]Moved, error) {
	if root == nil || ctx == nil {
		return nil, absent("look for what was moved away", "folder or context")
	}
	all, err := s.movedAway(math.MaxUint64)
	if len(all) == 0 || err != nil {
		return nil, err
	}
	names, dir, err := movedNames(root)
	if dir != nil {
		defer dir.Close()
	}
	if err != nil {
		return nil, writer.NewError("look for what was moved away", movedDir, writer.NotCommitted, err)
	}
	gone := slices.DeleteFunc(all, func(m Moved) bool { return m.stands(ctx, dir, names) })
	if len(gone) == 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	still, err := s.movedAway(math.MaxUint64) // it may have been removed or moved back meanwhile
	is := func(m Moved) bool {
		return slices.ContainsFunc(still, func(o Moved) bool { return o.Name == m.Name && o.Path == m.Path })
	}
	for i := range gone {
		gone[i].There = slices.ContainsFunc(names, func(n movedName) bool { return n.hash == gone[i].Hash })
	}
	return slices.DeleteFunc(gone, func(m Moved) bool { return !is(m) }), err
}

// stands reports whether one of the names is what was moved, as it was.
func (m *Moved) stands(ctx context.Context, dir writer.FS, names []movedName) bool {
	return slices.ContainsFunc(names, func(n movedName) bool {
		if n.hash != m.Hash {
			return false
		}
		l, err := files.Measure(ctx, dir, n.name, m.Path, nil)
		return err == nil && l.Hash == m.Hash
	})
}

// movedAway returns what the rewinds before an entry moved into movedDir, as far as it is known that none
// moved it back. A tree that cannot be read is passed over.
func (s *Store) movedAway(before uint64) (all []Moved, err error) {
	c, err := s.load()
	if err != nil || s.Imported() {
		return nil, err
	}
	until, _ := c.find(before)
	entries := c.entries[:until]
	for i, after := range entries {
		if after.Reason != AfterRewind || after.Removed != "" || after.Number <= c.brought {
			continue
		}
		at, ok := c.find(after.Parent)
		if !ok || entries[at].Removed != "" || entries[at].Reason != BeforeRewind || entries[at].Hidden == 0 {
			continue
		}
		some, err := s.movedBy(entries[at], after)
		if err != nil && !lost(err) {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(some, func(m Moved) bool { return s.perhapsBack(m, entries[i+1:]) })...)
	}
	return all, nil
}

// movedBy returns what is hidden in the tree before a rewind and not in that after it.
func (s *Store) movedBy(before, after *Entry) (all []Moved, err error) {
	skipped, err := s.Tree(before.Root).Skipped()
	is := s.Tree(after.Root)
	for _, k := range skipped {
		if k.Reason != files.Hidden {
			continue
		}
		it, ferr := is.find(k.Path)
		if err = errors.Join(err, ferr); it != nil || ferr != nil {
			continue
		}
		name := movedDir + "/" + nameOfMoved(k.Fingerprint(k.Path), before.ID.String())
		all = append(all, Moved{Path: k.Path, Listing: k.Listing, Before: before, Name: name})
	}
	return all, err
}

// perhapsBack reports whether a rewind may have moved back what was moved away before these entries: a
// tree has it, the entry after a rewind was removed, or a rewind has not ended.
func (s *Store) perhapsBack(m Moved, entries []*Entry) bool {
	for i, e := range entries {
		rewind := e.Reason == BeforeRewind && i == len(entries)-1
		if e.Removed != "" {
			rewind = e.Reason == AfterRewind
		} else if e.Hidden > 0 {
			it, err := s.Tree(e.Root).find(m.Path)
			rewind = rewind || err != nil || it != nil && it.kind == kindHidden && it.hash == m.Hash
		}
		if rewind {
			return true
		}
	}
	return false
}
