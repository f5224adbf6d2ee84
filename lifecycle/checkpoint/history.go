package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/lopen-dev/lopen/cache/files"
	"github.com/lopen-dev/lopen/writer"
)

// A history maps each path that changed to the newest of its changes.
//
// The changes of a path are a linked list with the newest first. A value that a rewind brought
// back has the owners that it had at the rewind's target, so a search for owners continues
// from there. The changes of a path between two moments are those that lead to its value at
// one of them and not to its value at the other.
type history map[string]*change

// A change is a change of a path between two entries.
type change struct {
	span
	at        *Entry // at the end of the interval; it has the new value
	before    *change
	uncovered bool    // nothing changed, but a path appeared that had been ignored
	rewind    *Entry  // an entry of the rewind that made it; the span has others that may have made it
	then      *change // for a rewind: the newest change at its target
}

// A span has the tasks that were active in some intervals.
type span struct {
	who    []Active
	nobody bool       // an interval had no task
	doubt  bool       // an interval had several tasks, or one that ended without an entry
	by     [][]Active // the tasks of each interval that had some
}

func (x *span) quiet() bool { return len(x.who) == 0 && !x.nobody && !x.doubt }

// made returns the change before c on the way to a value.
func (c *change) made() *change {
	if c.rewind != nil {
		return c.then
	}
	return c.before
}

// settled returns the newest change on the way to a value that no rewind made.
func (c *change) settled() *change {
	for c != nil && c.rewind != nil {
		c = c.then
	}
	return c
}

// newest returns the newest change of a path. It skips rewinds that brought back the value of
// had. had is nil if it is not known.
func (h history) newest(had history, path string) *change {
	c := h[path]
	for had != nil && c != had[path] && c != nil && c.rewind != nil && c.quiet() {
		c = c.before
	}
	if had != nil && c == had[path] && c.settled() == h[path].settled() {
		return c
	}
	return h[path]
}

// since returns the changes that led to a path's value in h and not to that in then, the newest
// first. It leaves out rewinds of the session, for which own is true. A rewind of another
// session counts as its change, unless rewinds brought back the value that the session had.
// undone reports that since then only the session's rewinds changed the path.
func (h history) since(then, had history, path string, own func(*Entry) bool) (list []*change, undone bool) {
	known := map[*change]bool{}
	for c := then[path]; c != nil; c = c.made() {
		known[c] = true
	}
	for c := h.newest(had, path); c != nil; c = c.made() {
		if !known[c] && !(c.quiet() && (c.rewind == nil || own(c.rewind))) {
			list = append(list, c)
		}
	}
	undone = true
	for c := h[path]; c != then[path] && undone; c = c.before {
		undone = c.rewind != nil && c.quiet() && own(c.rewind)
	}
	return list, undone
}

// add adds the interval that ends with e.
func (x *span) add(e *Entry, cut map[Active]bool) {
	x.nobody = x.nobody || len(e.By) == 0
	x.doubt = x.doubt || e.Contested()
	if len(e.By) > 0 {
		x.by = append(x.by, e.By)
	}
	for _, a := range e.By {
		x.doubt = x.doubt || cut[a]
		if !slices.Contains(x.who, a) {
			x.who = append(x.who, a)
		}
	}
}

// A historian computes histories from the chain.
type historian struct {
	s       *Store
	entries []*Entry // up to the one whose history is wanted
	tree    *Tree    // of the last one
	rewinds []rewinding
	lost    map[*Entry]bool
	cut     map[Active]bool // tasks that ended without an entry, so that it is unknown when

	now  history
	then map[uint64]history // histories at the targets of rewinds, and at the wanted entries
}

// histories returns the histories at the target, at entry number own (nil if it is not known),
// and at the last of the entries, whose tree is given.
func (s *Store) histories(ctx context.Context, entries []*Entry, target *Entry, own uint64, tree *Tree) (then, had, now history, err error) {
	h := historian{s: s, entries: entries, tree: tree, rewinds: rewindings(entries), lost: map[*Entry]bool{}, cut: map[Active]bool{}}
	for _, e := range entries {
		for _, a := range e.By {
			if e.Cut && !slices.Contains(e.Active, a) {
				h.cut[a] = true
			}
		}
	}
	last := entries[len(entries)-1]
	for {
		damaged, err := h.walk(ctx, target.Number, own)
		if err == nil {
			return h.then[target.Number], h.then[own], h.now, nil
		}
		if damaged == nil || damaged.Number == target.Number || damaged == last {
			return nil, nil, nil, err
		}
		h.lost[damaged] = true
	}
}

// walk computes the histories. If an error is caused by one damaged entry, it returns the entry
// as well.
func (h *historian) walk(ctx context.Context, target, own uint64) (*Entry, error) {
	h.now, h.then = history{}, map[uint64]history{target: nil, own: nil}
	start := target
	for _, w := range slices.Backward(h.rewinds) {
		if w.end >= start && h.has(w.by) && w.by.Target > 0 {
			start = min(start, w.by.Target)
			h.then[w.by.Target] = nil
		}
	}
	from := slices.IndexFunc(h.entries, func(e *Entry) bool { return e.Number >= start })
	var seen *Entry    // the newest entry so far whose tree can be read
	var since []*Entry // later entries with another root, which even removed entries have
	for i, e := range h.entries[from:] {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("plan a rewind: %w", context.Cause(ctx))
		}
		if seen != nil && e.Root != h.entries[from+i-1].Root {
			since = append(since, e)
		}
		if !h.has(e) {
			continue
		}
		if seen != nil {
			if err := h.step(seen, e, since); err != nil {
				return h.blame(seen, e, err), err
			}
		}
		seen, since = e, nil
		if _, ok := h.then[e.Number]; ok {
			h.then[e.Number] = maps.Clone(h.now)
		}
	}
	return nil, nil
}

func (h *historian) has(e *Entry) bool { return e.Removed == "" && !h.lost[e] }

func (h *historian) treeOf(e *Entry) *Tree {
	if e == h.entries[len(h.entries)-1] {
		return h.tree
	}
	return h.s.Tree(e.Root)
}

// span returns the span of the intervals that end with some entries, up to number until.
func (h *historian) span(ends []*Entry, until uint64) (x span) {
	for _, e := range ends {
		if e.Number <= until {
			x.add(e, h.cut)
		}
	}
	return x
}

// during returns the rewindings that include the interval before an entry, and whose target's
// history is known.
func (h *historian) during(e *Entry) []rewinding {
	return slices.DeleteFunc(slices.Clone(h.rewinds), func(w rewinding) bool {
		return w.begin >= e.Number || w.end < e.Number || w.by.Target > 0 && h.then[w.by.Target] == nil
	})
}

// step adds the changes from one entry to a later one, in the intervals that end with some
// entries.
func (h *historian) step(a, b *Entry, ends []*Entry) error {
	all, rewinds := h.span(ends, b.Number), h.during(b)
	for i, w := range rewinds {
		to := h.byNumber(w.by.Target)
		if to == nil { // an imported checkpoint, which may be gone
			to = w.by
		}
		rewinds[i].back = h.treeOf(to)
	}
	return paths(h.treeOf(a), h.treeOf(b), func(path string, old, next *files.Fingerprint) error {
		for _, w := range rewinds {
			f, known, err := w.back.Find(path)
			if err != nil {
				return err
			}
			if known && same(f, next) { // the value gets its owners at the target back
				h.now[path] = &change{span: h.span(ends, w.begin), at: b, before: h.now[path], rewind: w.by, then: h.then[w.by.Target][path]}
				return nil
			}
		}
		c := &change{span: all, at: b, before: h.now[path]}
		h.now[path] = c
		if next == nil || unknown(next) || old != nil && !unknown(old) {
			return nil
		}
		if unknown(old) { // its changes meanwhile were not recorded
			why := files.Reason(old.Target)
			c.uncovered = why == files.Ignored || why == files.Nested
			c.doubt = true
			return nil
		}
		rules, err := h.s.Rules(a)
		c.uncovered = err == nil && rules.InForce.Ignored(path, likeFolder(next))
		return err
	})
}

// blame returns the entry of a step that cannot be read, or nil if all can.
func (h *historian) blame(a, b *Entry, err error) *Entry {
	if writer.ClassOf(err) != writer.ClassCorrupt && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	all := []*Entry{a}
	for _, w := range h.during(b) {
		all = append(all, h.byNumber(w.by.Target))
	}
	for _, e := range append(all, b) {
		if e != nil && h.has(e) && h.readable(e) != nil {
			return e
		}
	}
	return nil
}

func (h *historian) readable(e *Entry) error {
	for _, err := range h.treeOf(e).All() {
		if err != nil {
			return err
		}
	}
	_, err := h.s.Rules(e)
	return err
}

func (h *historian) byNumber(n uint64) *Entry {
	for _, e := range h.entries {
		if e.Number == n {
			return e
		}
	}
	return nil
}

// A rewinding is the time in which a rewind changed files: the intervals of the entries after
// begin up to end. Entries of other sessions may be among them.
type rewinding struct {
	by         *Entry // the entry at its end, or at its begin if it is not finished
	begin, end uint64
	back       *Tree // at its target
}

// rewindings returns the rewindings among the entries, in the order of their ends.
func rewindings(entries []*Entry) (all []rewinding) {
	begun, newest := map[uint64]bool{}, map[string]*Entry{}
	for _, e := range entries {
		newest[e.Session] = e
		switch e.Reason {
		case BeforeRewind:
			begun[e.Number] = true
		case AfterRewind:
			w := rewinding{by: e, begin: e.Number - 1, end: e.Number}
			if begun[e.Parent] {
				w.begin = e.Parent
			}
			all = append(all, w)
		}
	}
	for _, e := range entries {
		if e.Reason == BeforeRewind && e == newest[e.Session] && e.Target > 0 {
			all = append(all, rewinding{by: e, begin: e.Number, end: math.MaxUint64})
		}
	}
	return all
}
